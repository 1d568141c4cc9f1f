#include <ATen/ATen.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/errors.h"
#include "base/numbers.h"
#include "peakbench/errors.h"
#include "recording/cpu_allocator.h"
#include "recording/operator_labels.h"
#include "recording/recorder.h"
#include "records/run_files.h"
#include "trace/snapshot_export.h"
#include "trace/summary.h"
#include "trace/trace_file.h"
#include "worker/engine.h"
#include "worker/equivalence.h"
#include "worker/jobs.h"
#include "worker/ledger.h"
#include "worker/progress.h"
#include "worker/setup.h"

namespace peakbench::worker {
namespace {

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr std::int64_t kKibibyte = 1024;
  return usage.ru_maxrss * kKibibyte;
}

const char* word(trace::Phase phase) { return trace::to_string(phase); }

records::OutOfMemory in_result(const recording::OutOfMemory& failure,
                               const std::optional<recording::FailurePlace>& place) {
  records::OutOfMemory known;
  known.requested_bytes = failure.requested_bytes;
  known.allocated_bytes = failure.allocated_bytes;
  known.limit_bytes = failure.limit_bytes;
  known.reserved_bytes = failure.reserved_bytes;
  known.largest_free_block_bytes = failure.largest_free_block_bytes;
  known.retries = failure.retries;
  if (!place) return known;
  known.phase = word(place->phase);
  known.step = std::max(0, place->step);  // before the first step there is none
  known.module = place->module;
  known.op = place->op;
  return known;
}

std::string in_words(const records::OutOfMemory& failure) {
  std::string words = "asked for " + gib_text(failure.requested_bytes) + " in " + failure.phase;
  if (!failure.module.empty()) words += ", " + failure.module;
  if (!failure.op.empty()) words += ", " + failure.op;
  words += ", with " + gib_text(failure.allocated_bytes) + " allocated";
  // What the allocator holds is what the card is full of.
  if (failure.reserved_bytes) words += " and " + gib_text(*failure.reserved_bytes) + " reserved";
  if (failure.limit_bytes > 0) words += " of " + gib_text(failure.limit_bytes);
  return words;
}

// The case's steps under the recorder.
class TracedRun {
 public:
  TracedRun(const records::Job& job, records::WorkerResult& result)
      : job_(job),
        result_(result),
        device_(make_device(job)),
        recorder_(job.device, device_->torch_device().str(), device_->emulated()) {
    set_observer(&observer_);
    device_->trace(recorder_);
    name_workspaces_as_they_are_given();
    if (!device_->torch_device().is_cpu())
      recording::trace_cpu_allocator(recorder_, job.memory_limit_bytes,
                                     recording::CpuMemory::kHost);
    leave_out_own_work_of_values();
    recording::install_operator_labels(recorder_);
    result_.environment = device_->environment();
  }

  void run() {
    try {
      steps();
      result_.settings = device_->settings();
    } catch (const c10::OutOfMemoryError& error) {
      need_host();
      note_out_of_memory();
    } catch (...) {
      need_host();
      if (const auto place = recorder_.failure_place()) {
        set_place(place->phase, place->step, job_.steps);  // a strategy may run forward again
        note_failure(place->module, place->op);
      }
      throw;
    }
    need_host();
    if (setup_.batches && setup_.batches->changes())
      result_.settings["batches"] = "another for each step";
    if (!setup_.base_weights.empty()) result_.settings["base_weights"] = setup_.base_weights;
    note_emulation();
    finish();
  }

  // After a failure: what the card was asked for, and how far that can be relied on where
  // something of it is not known. Absent on other devices.
  std::optional<records::Emulation> emulation_until_failure() const {
    auto emulation = device_->emulation();
    if (emulation && !(emulation->read_backs.empty() && emulation->refused_calls.empty()))
      emulation->verdict = verdict(job_, recorder_.peak_bytes(), Ended::kBadly);
    return emulation;
  }

 private:
  // Where the machine had not what the card has, no outcome and no figure is the card's: PyTorch
  // may have gone on with what it had cached.
  void need_host() const {
    if (const auto refusal = device_->host_refusal(); !refusal.empty()) throw HostError(refusal);
  }

  void steps() {
    enter(trace::Phase::kBuild, trace::kNone);
    make_setup(job_, *device_, &observer_, setup_);
    device_->reset_peaks();
    // Replayed steps run none of the operators that were captured.
    if (!setup_.contributions->has_capability("replays_steps"))
      work_.emplace(recorder_, device_->torch_device(), job_.steps - 1);
    for (std::int64_t step = 0; step < job_.steps; ++step) one_step(step);
    need_effects(setup_, job_.steps);
    judge();
  }

  void one_step(std::int64_t step) {
    recording::forget_sequence_numbers();
    if (step > 0 && setup_.batches->changes())
      enter(trace::Phase::kForward, static_cast<std::int32_t>(step));
    const Batch& batch = setup_.batches->of_step(step);
    const bool counted = work_ && work_->counts(step);
    if (counted) work_->begin();
    const at::Tensor loss = setup_.training->step(batch, [&](trace::Phase phase) {
      if (counted) work_->end_part();
      enter(phase, static_cast<std::int32_t>(step));
    });
    if (counted) work_->end();
    setup_.training->name_state();  // where the schedule left it
    setup_.training->check_frozen();
    device_->synchronise();
    name_workspaces();
    device_->check(recorder_.allocated_bytes(), "the end of step " + std::to_string(step));
    // A loss on an emulated card is undefined, and reading it would be a read-back.
    if (!device_->emulated()) result_.losses.push_back(loss.item<double>());
  }

  void name_workspaces() {
    device_->visit_workspaces(
        [this](std::uint64_t address, const std::string& library) { name(address, library); });
  }

  // The recorder lives as long as the process does work.
  void name_workspaces_as_they_are_given() {
    device_->listen_to_workspaces(
        [this](std::uint64_t address, const std::string& library) { name(address, library); });
  }

  void name(std::uint64_t address, const std::string& library) {
    recorder_.name_memory(address, trace::Role::kWorkspace, library + " workspace");
  }

  void enter(trace::Phase phase, std::int32_t step) {
    if (step != trace::kNone)
      device_->check(recorder_.allocated_bytes(), std::string("before ") + word(phase));
    recorder_.set_phase(phase, step);
    set_place(phase, step, job_.steps);
    report({word(phase), std::max<std::int64_t>(step, 0), job_.steps, recorder_.allocated_bytes(),
            recorder_.peak_bytes()});
  }

  void note_out_of_memory() {
    result_.status = records::Status::kOutOfMemory;
    result_.out_of_memory =
        in_result(device_->last_out_of_memory(), recorder_.out_of_memory_place());
    result_.reason = in_words(*result_.out_of_memory);
    name_what_is_left();
    name_workspaces();
    recorder_.end_at_out_of_memory();
  }

  // The step that failed may have made state; it is still alive. A rule that was interrupted may
  // be unable to show it: the outcome stays what it is.
  void name_what_is_left() const {
    if (!setup_.training) return;
    try {
      setup_.training->name_state();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "optimizer state goes unnamed: %s\n", error.what());
    }
  }

  // A call that the emulated card refused leaves the case without a trustworthy figure.
  void note_emulation() {
    result_.emulation = emulation_until_failure();
    if (!result_.emulation || result_.emulation->refused_calls.empty()) return;
    if (result_.status != records::Status::kOk) return;
    result_.status = records::Status::kUnsupported;
    result_.reason =
        "the emulated card does not emulate " + result_.emulation->refused_calls.front();
  }

  // Promises are checked where values are defined and results repeat: on the CPU.
  void judge() {
    if (job_.promise.promise.empty()) return;
    records::Equivalence verdict = job_.promise;
    verdict.verdict = "not_checked";
    const auto& parameters = setup_.training->parameters();
    if (device_->emulated()) {
      verdict.reason = "values are undefined on an emulated card";
    } else if (!device_->torch_device().is_cpu()) {
      verdict.reason = "checked on the CPU only";
    } else if (is_reference(verdict)) {
      verdict.reason = "this is the reference case";
    } else if (verdict.promise == "different_problem") {
      verdict.reason = "promises a different optimization problem";
    } else if (job_.read_parameters_path.empty()) {
      verdict.reason = "the run has no reference case to compare with";
    } else {
      verdict =
          compare_with_reference(job_.read_parameters_path, verdict, parameters, result_.losses);
    }
    if (!job_.write_parameters_path.empty()) leave_as_reference(parameters);
    verdict.without_gradient = setup_.training->without_gradient();
    result_.equivalence = verdict;
    refute_by_structure(*result_.equivalence);
  }

  // On every device: which parameters had gradients and updates needs no values.
  void refute_by_structure(records::Equivalence& verdict) const {
    if (is_reference(verdict) || verdict.promise == "different_problem") return;
    const auto why = setup_.training->unlike_baseline();
    if (!why.empty()) verdict = refute(std::move(verdict), why);
  }

  // Of no other case, whatever others are compared with it.
  bool is_reference(const records::Equivalence& verdict) const {
    return verdict.reference_case == job_.case_id ||
           (!job_.write_parameters_path.empty() && job_.read_parameters_path.empty());
  }

  // That its parameters could not be written is no failure of its own: the cases that would read
  // them are not checked.
  void leave_as_reference(const std::vector<Parameter>& parameters) const {
    try {
      write_reference(job_.write_parameters_path, parameters, result_.losses);
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }

  void finish() {
    report({"write", 0, job_.steps, recorder_.allocated_bytes(), recorder_.peak_bytes()});
    const trace::Trace trace = recorder_.take();
    if (job_.trace_path.empty() && result_.status != records::Status::kOk) return;
    const auto lifetimes = lifetimes_of(trace);
    if (!job_.trace_path.empty()) write_files(trace, lifetimes);
    if (result_.status != records::Status::kOk) return;
    result_.memory = trace::summarise(trace, lifetimes);
    device_->check_peaks(*result_.memory);
    if (work_) result_.work = work_->work(trace);
    result_.memory->steps = job_.steps;
    result_.memory->context_bytes = device_->context_bytes();
    result_.memory->worker_peak_rss_bytes = peak_rss_bytes();
    result_.memory->period = setup_.period;
    result_.memory->replays_steps = setup_.contributions->has_capability("replays_steps");
    if (result_.emulation)
      result_.emulation->verdict = verdict(job_, result_.memory->peak_allocated_bytes);
  }

  // A trace that does not add up is kept as it is, with its error in it.
  std::vector<trace::Lifetime> lifetimes_of(const trace::Trace& trace) const {
    try {
      return trace::lifetimes(trace);
    } catch (const TraceError&) {
      if (!job_.trace_path.empty()) trace::write_trace(trace, job_.trace_path);
      throw;
    }
  }

  // The trace, and beside it the same for PyTorch's own tools.
  void write_files(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes) const {
    trace::write_trace(trace, lifetimes, job_.trace_path);
    trace::write_memory_snapshot(trace, lifetimes, records::snapshot_beside(job_.trace_path));
  }

  const records::Job& job_;
  records::WorkerResult& result_;
  std::unique_ptr<recording::Device> device_;
  recording::Recorder recorder_;
  RecordObserver observer_{recorder_};
  Setup setup_;
  std::optional<StepWorkCounter> work_;
};

}  // namespace

records::WorkerResult run_memory_job(const records::Job& job,
                                     std::optional<records::Emulation>& until_failure) {
  install_engine();
  records::WorkerResult result;
  // Never destroyed: allocators and record functions point into it until the process ends.
  auto* run = new TracedRun(job, result);
  try {
    run->run();
  } catch (...) {
    until_failure = run->emulation_until_failure();
    throw;
  }
  return result;
}

}  // namespace peakbench::worker
