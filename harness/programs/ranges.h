#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "recording/journal.h"
#include "trace/trace.h"

namespace peakbench::programs {

// The ranges that a program names: record_function, NVTX, peakbench.phase. Pure.

// Whether PyTorch opens a range of this name around its own work: Optimizer.step#AdamW.step.
bool is_name_of_pytorch(std::string_view name);

// Whether a range is the program's own (or that of a library that it uses), and not one that
// PyTorch opens around its own work (Optimizer.step#AdamW.step, enumerate(DataLoader)#...). Asked
// of who opened it: the innermost frame that does more than open ranges. peakbench.phase always is.
bool is_named_by_program(const trace::Trace& trace, recording::RangeSource source,
                         const std::string& name, std::int32_t stack);

// Which range each thread is in, while a program is read. A range is the thread's that opened it.
// Threads without one that run while autograd's engine works are in the range that called it.
class Ranges {
 public:
  // Those that occur are added to `found`, each once for what it is within.
  explicit Ranges(std::vector<trace::Range>& found) : found_(found) {}

  void begin(std::int32_t thread, std::uint64_t number, const std::string& name);
  void end(std::uint64_t number);  // in whatever order; of one that did not begin: nothing
  void begin_backward(std::int32_t thread) { backwards_.push_back(thread); }
  void end_backward(std::int32_t thread);

  std::int32_t at(std::int32_t thread) const;  // index in `found`, or trace::kNone
  // A range of this name within another, or within none.
  std::int32_t index_of(std::int32_t parent, const std::string& name);

 private:
  struct Open {
    std::uint64_t number;
    std::int32_t range;
  };

  std::vector<trace::Range>& found_;
  std::map<std::pair<std::int32_t, std::string>, std::int32_t> known_;
  std::unordered_map<std::int32_t, std::vector<Open>> open_;  // by thread, the innermost last
  std::unordered_map<std::uint64_t, std::int32_t> threads_;   // by number
  std::vector<std::int32_t> backwards_;                       // threads that called the engine
};

}  // namespace peakbench::programs
