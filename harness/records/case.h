#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "records/run_facts.h"
#include "records/setting.h"
#include "records/verdict.h"

namespace peakbench::records {

// What a step makes a device do, as counted: no times.

// What the host asked of an emulated card. Another device does not tell.
struct DeviceWork {
  std::int64_t kernel_launches = 0;  // and the calls of vendors' libraries that compute
  std::int64_t copies_to_device = 0, copies_to_device_bytes = 0;
  std::int64_t copies_to_host = 0, copies_to_host_bytes = 0;
  std::int64_t copies_in_device = 0, copies_in_device_bytes = 0;
};

struct WorkCounts {
  std::int64_t operators = 0;         // of PyTorch that did work; views and allocations do none
  std::int64_t flops = 0;             // by the formulas of torch.utils.flop_counter
  std::int64_t recomputed_flops = 0;  // of these, in a block that runs once more
  std::map<std::string, std::int64_t> flops_by_precision;  // "fp32", "tf32", "bf16", ...
  std::int64_t read_bytes = 0, written_bytes = 0;          // by these operators
  std::optional<DeviceWork> device;
};

// A lower bound of the step time, from the rates that the card's vendor publishes. It is neither a
// measurement nor a prediction.
struct StepBound {
  std::int64_t least_step_ns = 0;
  std::int64_t memory_bytes_per_second = 0;
  std::map<std::string, std::int64_t> flops_per_second;  // by precision
};

// Of one step, from its forward to the end of its optimizer step; making the batch is no part.
struct StepWork {
  std::int64_t step = 0;  // 0-based
  WorkCounts total;
  std::map<std::string, WorkCounts> phases;
  // Operators that multiply matrices and have no formula -> calls: their FLOPs are missing.
  std::map<std::string, std::int64_t> without_formula;
  std::optional<StepBound> bound;
};

// What one case of a run is, and what came out of it: plain records, written to run.json.
//
// A case is one setting of the axes (records/setting.h). Its outcome is a value: running out of
// memory, a timeout, a crash, an unsupported combination, a conflict and a part of a stack that did
// nothing are results. What the machine did to a case is one too, that says nothing of the case: it
// is run again.

// `id` and `slug` are derived (planning/selection.h); both are unique in a run.
struct CaseSpec : Setting {
  std::string id;    // MODEL[,options]/STACK/DEVICE/DTYPE/bN[/sN]
  std::string slug;  // a safe file name with a short hash
  std::optional<std::int64_t> global_batch_size = std::nullopt;  // of several ranks together
};

enum class Status {
  kOk,
  kOutOfMemory,
  kTimeout,
  kCrashed,
  kUnsupported,
  kConflict,
  kNoEffect,     // something that the stack declares was never called, or a step updated nothing
  kHostFailure,  // what the machine did (a full disk, no process, no memory): not measured
  kInterrupted,  // a user ended a program early: its figures are those until then
};

std::string to_string(Status status);           // "ok", "out_of_memory", ...
Status status_from_string(const std::string&);  // throws std::invalid_argument

// One phase's share of the measured steps: maxima over all steps, in the case's own space.
struct PhaseMemory {
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_requested_bytes = 0;
};

// One space (`cuda:0`, `cpu`, `pinned`) over the measured steps.
struct SpaceMemory {
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_requested_bytes = 0;
  std::optional<std::int64_t> peak_reserved_bytes;
};

// A part of the stack, and the number of steps until its memory has reached all of its maxima.
struct Period {
  std::string strategy;  // its id
  std::int64_t steps = 1;
};

// Peak memory of the case's own space over the measured steps; build is `phases.build`.
struct Memory {
  std::string space;  // the case's own: "cuda:1"; empty in files of schema 1.0
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_requested_bytes = 0;
  std::optional<std::int64_t> peak_reserved_bytes;  // CUDA only
  // It was seen to run in this much memory and in 2 MiB less not to; where that was looked for.
  std::optional<std::int64_t> least_memory_bytes = std::nullopt;
  std::map<std::string, std::int64_t> at_peak;  // category -> bytes; sums to peak_allocated_bytes
  std::string peak_phase;                       // build | forward | backward | optimizer_step
  std::int64_t peak_step = 0;                   // 0-based
  std::int64_t steps = 0;
  std::map<std::string, PhaseMemory> phases;
  std::map<std::string, SpaceMemory> spaces;
  std::optional<std::int64_t> context_bytes;  // card memory beyond reserved; real card only
  std::int64_t worker_peak_rss_bytes = 0;
  // Steps replay a captured graph, whose pool counts as reserved alone: what is allocated says less
  // than the card held.
  bool replays_steps = false;
  std::optional<Period> period;  // the longest that a manifest of the stack declares
};

struct StepTimes {  // nanoseconds over individually recorded steps, warm-up apart
  std::int64_t min = 0, median = 0, p90 = 0, count = 0;
};

// One throughput worker. The cases of a group take turns: round after round, each in its place.
struct TimingRound {
  std::int64_t round = 0, place = 0;  // both 0-based
  std::vector<std::int64_t> step_times_ns;
  // Cores that other processes kept busy meanwhile, on average; absent where the system does not
  // say.
  std::optional<double> other_busy_cores;
};

// Absent (nullopt in CaseResult) where nothing was timed: an emulated card never has one.
struct Throughput {
  StepTimes step_ns;
  std::vector<std::int64_t> step_times_ns;  // every timed step of every round, in order
  std::vector<TimingRound> rounds;          // empty in files of schema 1.0
  double samples_per_second = 0;            // batch_size / median
  std::optional<double> tokens_per_second;  // batch_size x sequence_length / median
  std::string clock;                        // steady_clock | cuda_event
  std::int64_t threads = 0;
};

// The result of checking a strategy's promise about training, against the losses and parameters of
// the reference case.
//
// A stack with a part that solves a different problem (lora+checkpointing) is compared with the
// stack of those parts alone (lora). Then `promise` is the promise of the other parts, and
// different_problem is true. A stack of only such parts promises `different_problem`.
struct Equivalence {
  std::string promise;  // bit_identical | within_tolerance | different_problem
  bool different_problem =
      false;                   // than the baseline; true whenever `promise` is different_problem
  std::string reference_case;  // case id, or empty
  std::string verdict;         // held | broken | not_checked
  std::optional<double> max_abs_difference;
  // within_tolerance: |a - b| <= tolerance + relative_tolerance * |b|, b being the reference's
  // value.
  std::optional<double> tolerance, relative_tolerance;
  std::string reason;  // why not_checked, or what broke
  // Trained parameters that some step gave no gradient to.
  std::vector<std::string> without_gradient = {};
};

// The facts of an out-of-memory outcome.
struct OutOfMemory {
  std::int64_t requested_bytes = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t limit_bytes = 0;
  std::optional<std::int64_t> reserved_bytes, largest_free_block_bytes, retries;
  std::string phase, module, op;
  std::int64_t step = 0;
  // Emulated card: the peaks, reserved and allocated, when run again without a limit.
  std::optional<std::int64_t> needed_bytes, needed_allocated_bytes = std::nullopt;
  // The least memory that it runs in, as in Memory; where that was looked for.
  std::optional<std::int64_t> least_memory_bytes = std::nullopt;
  std::string needed_note = {};  // of a program: why they are unknown after it was run again
};

// Calls of one function of NCCL by a rank.
struct NcclCalls {
  std::string call;  // "ncclAllGather"
  std::int64_t calls = 0;
  // Of all calls together, as nccl-tests counts them: of an all-gather what it gives, of a
  // reduce-scatter what it takes. Absent where the number of ranks is unknown.
  std::optional<std::int64_t> bytes;
};

// One process that ran the case: its worker, or one of a program's.
struct Rank {
  std::int64_t rank = 0;
  std::optional<Memory> memory;
  std::string trace;                       // path relative to the run folder, or empty
  std::vector<NcclCalls> nccl_calls = {};  // of an emulated card
};

// What an emulated card could not answer, and what was asked of it.
struct Emulation {
  std::string card;
  std::vector<std::string> refused_calls;
  std::map<std::string, std::int64_t> unmodelled;       // "cudnn engine workspace" -> calls
  nlohmann::json read_backs = nlohmann::json::array();  // {bytes, count, uncertain, caller, ...}
  // Of the case's figures; absent where it has none, and in files of before schema 1.4.
  std::optional<Verdict> verdict = std::nullopt;
};

// Why a run has a case that was not requested.
inline constexpr const char* kAddedForAblation = "ablation";  // to tell the parts of a stack apart

// In the settings of a program's case: how often it ran out of memory and continued.
inline constexpr const char* kCaughtOutOfMemory = "caught_out_of_memory";

// What one worker process finds out of a case.
struct WorkerResult {
  Status status = Status::kOk;
  std::string reason;  // one sentence; empty when ok
  std::optional<Memory> memory;
  std::optional<StepWork> work;  // of a case that ended ok, where its steps were counted
  std::optional<Throughput> throughput;
  std::optional<Equivalence> equivalence;
  std::optional<OutOfMemory> out_of_memory;
  std::optional<Emulation>
      emulation;               // present exactly when the figures come from an emulated card
  std::vector<double> losses;  // one a measured step
  std::vector<Rank> ranks;     // from a worker: of a program, whose processes are its own
  nlohmann::json settings =
      nlohmann::json::object();  // what the worker ran with: allocator, cudnn, tf32, threads
  nlohmann::json environment =
      nlohmann::json::object();  // where this case ran: libtorch, card, driver, cpu capability
};

struct CaseResult : WorkerResult {
  CaseSpec spec;
  std::string added_for;  // empty: asked for; else why the plan added it, like kAddedForAblation
  std::string throughput_reason;  // why throughput is absent
  // The model's first, then the strategies'. Empty if no process was started, or if the file has a
  // schema before 1.4.
  std::vector<PluginBuild> plugins;
  std::int64_t wall_ns = 0;  // start of the first process to the end of the last
};

// How far the case's figures can be relied on; nullptr if unknown (Emulation::verdict).
const Verdict* verdict_of(const CaseResult& result);

// The ranks of a case, and whose figures are the case's.

// The one with the highest peak of allocated memory, of equals the first. Where none has figures:
// the first with a trace, else the first. Its place in the list; 0 of none.
std::size_t largest_rank(const std::vector<Rank>& ranks);

// What is shown of a case, memory and trace, is its largest rank's. Empty where it has none.
const Rank& headline_rank(const CaseResult& result);

// Statistics of timed steps, one definition for the worker and for what joins workers.

// Nearest rank, so always a step that was measured. No step: zeros.
StepTimes step_times_of(std::vector<std::int64_t> step_times_ns);

}  // namespace peakbench::records
