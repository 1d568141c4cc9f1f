// What is recorded inside of a program: the one tracer of its process.
#pragma once

#include <cstdint>
#include <string>

#include "record/allocation_sink.h"
#include "record/cuda/allocator_events.h"
#include "tracer/journal_writer.h"

namespace peakbench::tracer {

class Tracer final : public record::AllocationSink {
 public:
  static Tracer& one();

  bool open(const std::string& folder, std::int32_t rank, bool with_times, std::uint64_t most_bytes);
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
  void name(std::uint64_t address, trace::Role role, std::int32_t name, std::int32_t shape,
            std::int32_t dtype);

 private:
  void on_cuda(const record::AllocatorEvent& event);
  void add_event(Record& record, trace::EventKind kind, int space);

  JournalWriter journal_;
  bool with_times_ = false;
  std::int64_t start_ns_ = 0;
  int spaces_ = 0, first_cuda_ = -1, cuda_devices_ = 0;
};

// The record functions that say which operator runs; once, before the first operator.
void listen_to_operators();

// For the operators' side: of the calling thread.
std::int32_t current_module();
// Whether allocations wait for the line that asks for them.
bool has_unplaced();
void place_allocations(std::int32_t stack, std::int32_t op, std::int32_t module);
bool is_recomputing();
// A node of backward begins or ends on this thread.
void enter_node();
void exit_node();
int open_nodes();
int open_operators();
void count_operator(int by);

}  // namespace peakbench::tracer
