#include "ab/pairs.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "launch/group_outcome.h"

namespace peakbench::ab {
namespace {

// False: the side did not end ok, or somebody pressed Ctrl-C; `end` says which.
bool run_side(const PairSide& side, const char* name, result::Throughput& found, PairsEnd& end) {
  const auto report = side.runner->run(launch::make_order(side.order, result::JobMode::kThroughput),
                                       launch::Listener{});
  if (launch::is_interrupted(report)) {
    end.interrupted = true;
    return false;
  }
  const auto result = launch::group_outcome(report.ranks);
  if (result.status != result::Status::kOk || !result.throughput ||
      result.throughput->step_ns.median <= 0) {
    const auto why = result.reason.empty() ? "the worker timed no step" : result.reason;
    end.problem = fmt::format("{}: {}: {}", name, to_string(result.status), why);
    return false;
  }
  found = *result.throughput;
  return true;
}

}  // namespace

std::vector<bool> base_first_order(std::int64_t count, std::uint64_t seed) {
  std::vector<bool> order;
  for (std::int64_t i = 0; i < count; ++i) order.push_back(i % 2 == 0);
  std::mt19937_64 random(seed);
  // std::shuffle differs from library to library.
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(random() % i);
    const bool value = order[i - 1];
    order[i - 1] = order[other];
    order[other] = value;
  }
  return order;
}

PairsEnd run_pairs(const PairsOrder& order, const std::function<void(const Pair&)>& done) {
  PairsEnd end;
  for (const bool base_first : base_first_order(order.pairs, order.seed)) {
    Pair pair;
    pair.base_first = base_first;
    const auto base = [&] { return run_side(order.base, "BASE", pair.base, end); };
    const auto now = [&] { return run_side(order.now, "NEW", pair.now, end); };
    if (!(base_first ? base() && now() : now() && base())) return end;
    done(pair);
    end.pairs.push_back(std::move(pair));
  }
  return end;
}

}  // namespace peakbench::ab
