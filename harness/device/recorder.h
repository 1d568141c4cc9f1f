// Records a trace while the steps run: allocations from the device, places and names from the SDK's
// observer, operators from LibTorch's record functions. One a process; thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/tracing.h"
#include "peakbench/observer.h"
#include "trace/trace.h"

namespace peakbench::device {

// Where the code was that an exception left. Empty texts where it was in no module or operator.
struct FailurePlace {
  trace::Phase phase = trace::Phase::kBuild;
  std::int32_t step = trace::kNone;
  std::string module, op;
};

class Recorder final : public AllocationSink, public Observer {
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

  // Observer.
  void enter_module(const torch::nn::Module& module) override;
  void exit_module() override;
  void enter_update() override;
  void exit_update() override;
  void enter_recompute() override;
  void exit_recompute() override;
  void name_storage(const at::Tensor& tensor, StorageRole role, const std::string& name) override;

  // What the worker is about to do. Inside the optimizer step the recorder sees for itself where
  // another forward and backward begin and end (a second pass over the batch, as sharpness-aware
  // minimization takes): a module entered with grad mode on, outside of an update and of a
  // recomputation, begins a forward; a node of backward a backward; an update the optimizer step.
  void set_phase(trace::Phase phase, std::int32_t step);
  // Gives every module of the tree its path; modules entered before, or unknown, have none.
  void name_modules(const torch::nn::Module& root);

  // For operator_labels: interned text, and this thread's place.
  std::int32_t intern_operator(const char* name);
  void push_operator(std::int32_t op);
  void pop_operator();
  std::int32_t current_module() const;
  // A node of backward, which belongs to the module of its forward operator.
  void enter_backward_node(std::int32_t module);
  void exit_backward_node();

  std::int64_t allocated_bytes() const { return own_space_bytes_; }
  std::int64_t peak_bytes() const { return own_space_peak_; }  // since the process started
  // Where this thread is: phase, step, module and operator, for an out-of-memory record.
  void describe_place(result::OutOfMemory& record) const;
  // The innermost module and operator that the last exception left, on whichever thread it was
  // thrown; nothing where it left none. To be asked where the exception is caught, before anything
  // else runs: the next module or operator entered forgets it.
  std::optional<FailurePlace> failure_place() const;

  // Ends the recording at the allocation that failed last in this step: what came after it was the
  // unwinding. Names given until now stay. Without such an event nothing is cut.
  void end_at_out_of_memory();
  // Ends the recording and hands it over; later events are dropped.
  trace::Trace take();

 private:
  trace::Event here(trace::EventKind kind, int space, std::uint64_t address) const;
  std::int32_t stream_index(std::int64_t stream);
  std::int32_t current_operator() const;
  void push_module(std::int32_t module);
  bool is_in_optimizer_step() const;
  void see_forward();
  void see_backward();
  void note_unwinding();
  void forget_failure();

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
  std::unordered_map<const torch::nn::Module*, std::int32_t> modules_;
  std::unordered_map<std::string, std::int32_t> operators_;
  std::unordered_map<std::int64_t, std::int32_t> streams_;
  std::atomic<std::uint8_t> phase_{0};
  // The worker said optimizer step; phase_ may be what was seen in it.
  std::atomic<bool> optimizer_step_{false};
  std::atomic<int> updates_{0};  // on all threads: an update may itself run a backward
  std::atomic<std::int32_t> step_{trace::kNone};
  std::atomic<std::int32_t> recomputations_{0};
  std::atomic<std::int64_t> own_space_bytes_{0}, own_space_peak_{0};

  std::optional<FailurePlace> failure_;
  std::atomic<bool> has_failure_{false};  // what every operator asks, without the lock
};

}  // namespace peakbench::device
