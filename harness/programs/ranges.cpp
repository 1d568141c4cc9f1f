#include "programs/ranges.h"

#include <algorithm>
#include <array>

#include "trace/lines.h"

namespace peakbench::programs {
namespace {

// Names that come from loops are cut off here; what is within is then in the range around it.
constexpr std::size_t kMostRanges = 100'000;

// What a range is opened through, whoever wanted it.
bool only_opens_ranges(std::string_view file) {
  constexpr std::array kFiles = {"/torch/autograd/profiler.py", "/torch/cuda/nvtx.py",
                                 "/torch/_ops.py", "/contextlib.py", "/torch/utils/_contextlib.py"};
  return file.find("/lib/peakbench/") != std::string_view::npos ||
         std::ranges::any_of(kFiles, [&](const char* end) { return file.ends_with(end); });
}

}  // namespace

bool is_name_of_pytorch(std::string_view name) {
  constexpr std::array kBeginnings = {"## Call CompiledFxGraph",
                                      "ProfilerStep#",
                                      "Optimizer.step#",
                                      "Optimizer.zero_grad#",
                                      "enumerate(DataLoader)#",
                                      "DistributedDataParallel.",
                                      "FullyShardedDataParallel.",
                                      "FSDP::",
                                      "TorchDynamo Cache Lookup",
                                      "Torch-Compiled Region",
                                      "nccl:",
                                      "gloo:",
                                      "Pregraph bytecode",
                                      "CompiledFunction"};
  return std::ranges::any_of(kBeginnings,
                             [&](const char* beginning) { return name.starts_with(beginning); });
}

bool is_named_by_program(const trace::Trace& trace, recording::RangeSource source,
                         const std::string& name, std::int32_t stack) {
  if (source == recording::RangeSource::kPhase) return true;
  if (is_name_of_pytorch(name)) return false;
  while (stack != trace::kNone) {
    const auto& frame = trace.frames[static_cast<std::size_t>(stack)];
    if (frame.file != trace::kNone) {
      const auto& file = trace.files[static_cast<std::size_t>(frame.file)];
      if (!only_opens_ranges(file)) return !trace::is_pytorch_file(file);
    }
    stack = frame.parent;
  }
  return false;  // opened by PyTorch's threads, which run no Python
}

std::int32_t Ranges::index_of(std::int32_t parent, const std::string& name) {
  const auto found = known_.find({parent, name});
  if (found != known_.end()) return found->second;
  if (found_.size() == kMostRanges) return parent;
  const auto index = static_cast<std::int32_t>(found_.size());
  found_.push_back({parent, name});
  known_.emplace(std::pair(parent, name), index);
  return index;
}

void Ranges::begin(std::int32_t thread, std::uint64_t number, const std::string& name) {
  const auto range = index_of(at(thread), name);
  open_[thread].push_back({number, range});
  threads_[number] = thread;
}

void Ranges::end(std::uint64_t number) {
  const auto thread = threads_.find(number);
  if (thread == threads_.end()) return;
  auto& open = open_[thread->second];
  std::erase_if(open, [&](const Open& range) { return range.number == number; });
  if (open.empty()) open_.erase(thread->second);
  threads_.erase(thread);
}

void Ranges::end_backward(std::int32_t thread) {
  const auto last = std::find(backwards_.rbegin(), backwards_.rend(), thread);
  if (last != backwards_.rend()) backwards_.erase(std::prev(last.base()));
}

std::int32_t Ranges::at(std::int32_t thread) const {
  if (open_.empty()) return trace::kNone;
  auto found = open_.find(thread);
  if (found == open_.end() && !backwards_.empty()) found = open_.find(backwards_.back());
  return found == open_.end() ? trace::kNone : found->second.back().range;
}

}  // namespace peakbench::programs
