// Records a trace while a program runs: allocations from its allocators, operators from LibTorch's
// record functions, modules, scopes and names from its runner. One a process; thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "recording/allocation_sink.h"
#include "trace/phases.h"
#include "trace/trace.h"

namespace peakbench::recording {

// Where the code was that an exception left. Empty texts where it was in no module or operator.
struct FailurePlace {
  trace::Phase phase = trace::Phase::kBuild;
  std::int32_t step = trace::kNone;
  std::string module, op;
};

class Recorder final : public AllocationSink {
 public:
  // `device`: as in the case id; `own_space`: the name of the space that its figures are of.
  Recorder(std::string device, std::string own_space, bool emulated);

  // AllocationSink.
  int add_space(const std::string& name) override;
  void allocated(int space, std::uint64_t address, std::int64_t requested_bytes,
                 std::int64_t block_bytes, std::int64_t stream) override;
  void free_requested(int space, std::uint64_t address) override;
  void freed(int space, std::uint64_t address) override;
  void event(trace::EventKind kind, int space, std::uint64_t address, std::int64_t bytes,
             std::int64_t stream) override;

  // Says what the program is about to do. Events get their phase when the recording ends, from this
  // and from the scopes below (trace/phases.h), which are this thread's.
  void set_phase(trace::Phase phase, std::int32_t step);
  void enter_module(std::int32_t module);  // as intern_module numbered it; kNone where unknown
  void exit_module();
  void enter_update();  // a parameter update, also inside backward
  void exit_update();
  void enter_recompute();  // a checkpointed block runs again
  void exit_recompute();

  // Names the allocation that now backs `tensor`: that allocation, and not its address.
  void name_storage(const at::Tensor& tensor, trace::Role role, const std::string& name);
  // The same of memory that is no tensor's, by its address.
  void name_memory(std::uint64_t address, trace::Role role, const std::string& name);
  std::int32_t intern_module(const std::string& path);

  // For operator_labels: interned text, and this thread's place.
  std::int32_t intern_operator(const char* name);
  void push_operator(std::int32_t op);
  void pop_operator();
  std::int32_t current_module() const;
  trace::ScopePoint scope_point() const;
  // A node of backward, which belongs to the module of its forward operator. Returns what its end
  // is to be given: whether its scope is recorded.
  bool enter_backward_node(std::int32_t module);
  void exit_backward_node(bool recorded);

  std::int64_t allocated_bytes() const { return own_space_bytes_; }
  std::int64_t peak_bytes() const { return own_space_peak_; }  // since the process started
  // Where memory ran out last; nothing where it did not.
  std::optional<FailurePlace> out_of_memory_place() const;
  // The innermost module and operator that the last exception left, on whichever thread it was
  // thrown; nothing where it left none. To be asked where the exception is caught, before anything
  // else runs: the next module or operator entered forgets it.
  std::optional<FailurePlace> failure_place() const;

  // Ends the recording at the allocation that failed last in this step: what came after it was the
  // unwinding. Names given until now stay. Without such an event nothing is cut.
  void end_at_out_of_memory();
  // Ends the recording and hands it over, its phases decided; later events are dropped.
  trace::Trace take();

 private:
  trace::Event here(trace::EventKind kind, int space, std::uint64_t address) const;
  std::int32_t stream_index(std::int64_t stream);
  std::int32_t current_operator() const;
  void push_module(std::int32_t module);
  bool is_in_optimizer_step() const;
  void begin(trace::ScopeKind kind) { add_mark({.kind = kind}); }
  void end(trace::ScopeKind kind) { add_mark({.kind = kind, .ends = true}); }
  void add_mark(trace::ScopeMark mark);
  FailurePlace place_of(std::uint64_t event, std::int32_t module, std::int32_t op) const;
  void note_unwinding();
  void forget_failure();
  void add_name(std::uint64_t address, trace::Name name);

  mutable std::mutex mutex_;
  trace::Trace trace_;
  const std::string own_name_;
  std::atomic<int> own_space_{trace::kNone};  // until it was added
  bool recording_ = true;
  std::int64_t start_ns_;
  struct Live {
    std::uint64_t event;  // of the allocation
    bool free_requested = false;
    std::vector<std::size_t> names{};  // in the trace's
  };
  // Ends the block's life in `event` and returns true, or false for memory that was never seen
  // allocated.
  bool end_of_life(trace::Event& event);

  std::unordered_map<std::uint64_t, Live> live_;  // by address
  std::unordered_map<std::string, std::int32_t> modules_, operators_;
  std::unordered_map<std::int64_t, std::int32_t> streams_;
  std::atomic<bool> optimizer_step_{false};  // reported by the program
  std::atomic<std::int64_t> own_space_bytes_{0}, own_space_peak_{0};

  std::optional<FailurePlace> failure_;
  std::atomic<bool> has_failure_{false};  // what every operator asks, without the lock
};

}  // namespace peakbench::recording
