#include "ab/measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "ab/folder.h"
#include "launch/host.h"
#include "manifest/worker.h"

namespace peakbench::ab {
namespace {

result::AbRun describe(const Order& order, const manifest::Worker& worker) {
  const auto& request = order.base.request;
  result::AbRun run;
  run.base = order.base.folder;
  run.now = order.now.folder;
  run.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  run.command = order.command;
  run.environment = launch::host_environment(worker);
  if (double load = 0; getloadavg(&load, 1) == 1) run.environment["load_average"] = load;
  run.pairs = order.pairs;
  run.steps = request.steps;
  run.warmup = request.warmup;
  run.threads = request.threads;
  run.seed = order.seed;
  return run;
}

PairSide side(const Build& build, std::size_t index, const std::string& folder, const char* name) {
  PairSide side;
  side.order.planned = &build.plan.cases[index];
  side.order.request = &build.plan.request;
  side.order.run_directory = (std::filesystem::path(folder) / name).string();
  side.runner = build.runner.get();
  return side;
}

}  // namespace

Builds open_builds(const Order& order, const std::function<void(const std::string&)>& left_out) {
  Builds builds;
  builds.base = open_build(order.base, left_out);
  builds.now = open_build(order.now, left_out);
  check_pairs(builds.base.plan.cases, builds.now.plan.cases);
  return builds;
}

Measured measure(const Order& order, const Builds& builds,
                 const std::function<void(std::int64_t, const Pair&)>& done) {
  make_folder(order.folder);
  Measured found{describe(order, builds.base.plan.request.worker), false};
  const auto &base = builds.base, &now = builds.now;
  for (std::size_t i = 0; i < base.plan.cases.size() && !found.interrupted; ++i) {
    const PairsOrder pairs{side(base, i, order.folder, kBaseFolder),
                           side(now, i, order.folder, kNewFolder), order.pairs, order.seed};
    std::int64_t count = 0;
    auto end = run_pairs(pairs, [&](const Pair& pair) { done(++count, pair); });
    result::AbCase one{
        base.plan.cases[i].spec.id, now.plan.cases[i].spec.id, {}, std::move(end.problem)};
    for (const auto& pair : end.pairs)
      one.pairs.push_back({pair.base_first, pair.base.step_times_ns, pair.now.step_times_ns});
    found.run.cases.push_back(std::move(one));
    found.interrupted = end.interrupted;
  }
  return found;
}

}  // namespace peakbench::ab
