// What is recorded inside of a program: the one tracer of its process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "recording/allocation_sink.h"
#include "recording/cuda/allocator_events.h"
#include "recording/journal.h"

namespace peakbench::recording {

class Tracer final : public recording::AllocationSink {
 public:
  static Tracer& one();

  bool open(const std::string& folder, bool with_times, std::uint64_t most_bytes);
  // torch.distributed's default process group says which rank this is.
  void join_group(std::int32_t rank, std::int32_t ranks);
  JournalWriter& journal() { return journal_; }
  bool is_recording() const { return journal_.is_open(); }

  // AllocationSink: of the CPU's allocator.
  int add_space(const std::string& name) override;
  void allocated(int space, std::uint64_t address, std::int64_t requested_bytes,
                 std::int64_t block_bytes, std::int64_t stream) override;
  void free_requested(int space, std::uint64_t address) override;
  void freed(int space, std::uint64_t address) override;
  void event(trace::EventKind kind, int space, std::uint64_t address, std::int64_t bytes,
             std::int64_t stream) override;

  // CUDA's caching allocator, once it is there; what it counted at the end.
  void attach_cuda();
  void count_cuda();

  // The calling thread's place.
  void enter_module(std::int32_t module);
  void exit_module();
  void mark(Mark mark, std::int32_t value);
  // Of the call that recorded the nodes which a backward runs.
  void mark_differentiated(std::int32_t call);
  void mark_copy(Copy copy, std::uint64_t storage);
  void mark_joined(bool is_first, std::uint64_t storage);
  // A range of the program's begins, and ends by its number: none is 0.
  std::uint64_t begin_range(std::int32_t name, RangeSource source);
  void end_range(std::uint64_t number);
  void name(std::uint64_t address, trace::Role role, std::int32_t name, std::int32_t shape,
            std::int32_t dtype);

 private:
  void look_for_rank();
  void on_cuda(const recording::AllocatorEvent& event);
  void add_event(Record& record, trace::EventKind kind, int space);

  JournalWriter journal_;
  bool with_times_ = false;
  std::int64_t start_ns_ = 0;
  int spaces_ = 0, first_cuda_ = -1, cuda_devices_ = 0;
  std::mutex pools_mutex_;  // devices have locks of their own
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int32_t> pools_;
  std::atomic<std::uint64_t> ranges_ = 0;
  std::atomic<std::int32_t> calls_ = 0;
};

// The record functions that say which operator runs; once, before the first operator.
void listen_to_operators();

// For the operators' side: of the calling thread.
std::int32_t current_module();
std::int32_t current_call();  // the model's that it is in; 0: none
// Whether allocations wait for the line that asks for them.
bool has_unplaced();
// `hook`: the stack of what Python runs within backward, where memory is the forward line's; or -1.
void place_allocations(std::int32_t stack, std::int32_t op, std::int32_t module,
                       std::int32_t hook = -1);
// Python asks within an operator, now: remembered for when what it asked for is placed.
void note_hook();
bool is_recomputing();
// A node of backward begins or ends on this thread.
void enter_node();
void exit_node();
int open_nodes();
void count_operator(int by);

}  // namespace peakbench::recording
