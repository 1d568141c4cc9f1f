#include "launch/run_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "launch/group_outcome.h"
#include "result/device.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using result::JobMode;
using result::Status;

GroupReport not_run(const std::string& reason) {
  GroupReport report;
  report.ranks.emplace_back();
  report.ranks.front().result.status = Status::kHostFailure;
  report.ranks.front().result.reason = reason;
  return report;
}

// A worker that was killed left no word of what it had read.
bool was_killed(const result::WorkerResult& found) {
  return !found.emulation && (found.status == Status::kCrashed || found.status == Status::kTimeout);
}

// An emulated card computes nothing, but for programs, which have values from the first. Where the
// host read what is not known, sizes may rest on it, and so may a failure: a check that zeros do
// not pass, a loop that they do not end.
bool needs_values(const CaseOrder& order, const GroupReport& report) {
  const auto device = result::device_from(order.planned->spec.device);
  if (device.kind != result::DeviceKind::kEmulated || order.planned->program) return false;
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
