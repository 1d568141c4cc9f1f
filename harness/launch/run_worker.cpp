#include "launch/run_worker.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/errors.h"
#include "records/case.h"
#include "records/device.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using records::JobMode;
using records::Status;

WorkerReport not_run(const std::string& reason) {
  WorkerReport report;
  report.result.status = Status::kHostFailure;
  report.result.reason = reason;
  return report;
}

// A worker that was killed left no word of what it had read.
bool was_killed(const records::WorkerResult& found) {
  return !found.emulation && (found.status == Status::kCrashed || found.status == Status::kTimeout);
}

// An emulated card computes nothing, but for programs, which have values from the first. Where the
// host read what is not known, sizes may rest on it, and so may a failure: a check that zeros do
// not pass, a loop that they do not end.
bool needs_values(const CaseOrder& order, const records::WorkerResult& found) {
  const auto device = records::device_from(order.planned->spec.device);
  if (device.kind != records::DeviceKind::kEmulated || order.planned->program) return false;
  return was_killed(found) || (found.emulation && !found.emulation->read_backs.empty());
}

}  // namespace

WorkerReport run_worker(const CaseOrder& order, JobMode mode, Runner& runner,
                        const Listener& listener, const Prepare& prepare, const Emulated& how) {
  try {
    auto worker = make_order(order, mode, how);
    if (prepare) prepare(worker);
    return runner.run(worker, listener);
  } catch (const HostError& error) {
    return not_run(error.what());
  } catch (const fs::filesystem_error& error) {
    return not_run(fmt::format("{}{}", error.what(), host_advice(error.code().value())));
  }
}

WorkerReport run_memory(const CaseOrder& order, Runner& runner, const Listener& listener,
                        const Prepare& prepare, Emulated how) {
  const auto run = [&] {
    return run_worker(order, JobMode::kMemory, runner, listener, prepare, how);
  };
  auto first = run();
  if (first.interrupted || !needs_values(order, first.result)) return first;
  how.values = true;
  how.assume = order.request->assume;
  auto second = run();
  second.wall_ns += first.wall_ns;
  return second;
}

}  // namespace peakbench::launch
