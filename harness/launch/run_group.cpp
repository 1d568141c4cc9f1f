#include "launch/run_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "records/case.h"
#include "records/device.h"

namespace peakbench::launch {

bool is_interrupted(const GroupReport& report) {
  return std::ranges::count(report.ranks, CutShort::kByCtrlC, &WorkerReport::cut_short) > 0;
}

std::optional<std::size_t> first_failure(const std::vector<WorkerReport>& ranks) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& rank = ranks[i];
    if (rank.cut_short != CutShort::kNo || rank.result.status == records::Status::kOk) continue;
    if (!first || rank.ended < ranks[*first].ended) first = i;
  }
  return first;
}

namespace {

// What is doubtful of one rank is of the case: the others met it. The largest rank's, of equals.
const records::Verdict* worst_verdict(const std::vector<WorkerReport>& ranks,
                                      const records::WorkerResult& largest) {
  const auto of = [](const records::WorkerResult& rank) {
    return rank.emulation && rank.emulation->verdict ? &*rank.emulation->verdict : nullptr;
  };
  const auto* worst = of(largest);
  for (const auto& rank : ranks) {
    const auto* verdict = of(rank.result);
    if (verdict != nullptr &&
        (worst == nullptr || records::doubt(verdict->kind) > records::doubt(worst->kind)))
      worst = verdict;
  }
  return worst;
}

}  // namespace

records::WorkerResult group_outcome(const std::vector<WorkerReport>& ranks) {
  if (const auto failed = first_failure(ranks)) {
    auto outcome = ranks[*failed].result;
    if (ranks.size() > 1)
      outcome.reason = fmt::format("rank {} of {}: {}", *failed, ranks.size(), outcome.reason);
    return outcome;
  }
  std::vector<records::Rank> memories;
  for (const auto& rank : ranks) memories.emplace_back().memory = rank.result.memory;
  const auto& largest = ranks.at(records::largest_rank(memories)).result;
  auto outcome = ranks.front().result;
  outcome.memory = largest.memory;
  outcome.emulation = largest.emulation;
  if (const auto* verdict = worst_verdict(ranks, largest); verdict != nullptr && outcome.emulation)
    outcome.emulation->verdict = *verdict;
  return outcome;
}

namespace {

namespace fs = std::filesystem;
using records::JobMode;
using records::Status;

GroupReport not_run(const std::string& reason) {
  GroupReport report;
  report.ranks.emplace_back();
  report.ranks.front().result.status = Status::kHostFailure;
  report.ranks.front().result.reason = reason;
  return report;
}

// A worker that was killed left no word of what it had read.
bool was_killed(const records::WorkerResult& found) {
  return !found.emulation && (found.status == Status::kCrashed || found.status == Status::kTimeout);
}

// An emulated card computes nothing, but for programs, which have values from the first. Where the
// host read what is not known, sizes may rest on it, and so may a failure: a check that zeros do
// not pass, a loop that they do not end.
bool needs_values(const CaseOrder& order, const GroupReport& report) {
  const auto device = records::device_from(order.planned->spec.device);
  if (device.kind != records::DeviceKind::kEmulated || order.planned->program) return false;
  return std::ranges::any_of(report.ranks, [](const WorkerReport& rank) {
    const auto& emulation = rank.result.emulation;
    return was_killed(rank.result) || (emulation && !emulation->read_backs.empty());
  });
}

}  // namespace

GroupReport run_group(const CaseOrder& order, JobMode mode, Runner& runner,
                      const Listener& listener, const Prepare& prepare, const Emulated& how) {
  try {
    auto group = make_order(order, mode, how);
    if (prepare) prepare(group);
    return runner.run(group, listener);
  } catch (const HostError& error) {
    return not_run(error.what());
  } catch (const fs::filesystem_error& error) {
    return not_run(fmt::format("{}{}", error.what(), host_advice(error.code().value())));
  }
}

GroupReport run_memory(const CaseOrder& order, Runner& runner, const Listener& listener,
                       const Prepare& prepare, Emulated how) {
  const auto run = [&] {
    return run_group(order, JobMode::kMemory, runner, listener, prepare, how);
  };
  auto first = run();
  if (is_interrupted(first) || !needs_values(order, first)) return first;
  how.values = true;
  how.assume = order.request->assume;
  auto second = run();
  second.wall_ns += first.wall_ns;
  return second;
}

}  // namespace peakbench::launch
