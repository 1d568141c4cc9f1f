#include "programs/ranges.h"

#include <algorithm>
#include <array>

#include "programs/phases.h"
#include "trace/lines.h"
#include "trace/phases.h"

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

// Whether PyTorch opens a range of this name around its own work.
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

}  // namespace

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

namespace {

using recording::Mark;
using trace::Phase;
using trace::ScopeKind;

// An annotation, before the event of this number.
struct Placed {
  std::uint64_t event = 0;
  const SnapshotAnnotation* annotation = nullptr;
};

// Of one microsecond, what begins is before the events, and what ends behind them.
std::vector<Placed> placed(const std::vector<SnapshotAnnotation>& annotations,
                           const std::vector<trace::Event>& events) {
  std::vector<Placed> list;
  for (const auto& one : annotations) {
    const auto at = one.ends
                        ? std::ranges::upper_bound(events, one.time_us, {}, &trace::Event::time_ns)
                        : std::ranges::lower_bound(events, one.time_us, {}, &trace::Event::time_ns);
    list.push_back({static_cast<std::uint64_t>(at - events.begin()), &one});
  }
  std::ranges::stable_sort(
      list, {}, [](const Placed& one) { return std::pair(one.event, one.annotation->time_us); });
  return list;
}

// An annotation does not say which one it ends: the last that began, of its name.
class OpenRanges {
 public:
  explicit OpenRanges(std::vector<trace::Range>& found) : ranges_(found) {}

  void follow(const SnapshotAnnotation& one) {
    auto& numbers = open_[one.name];
    if (!one.ends) {
      numbers.push_back(++last_);
      ranges_.begin(0, last_, one.name);
    } else if (!numbers.empty()) {
      ranges_.end(numbers.back());
      numbers.pop_back();
    }
  }
  std::int32_t innermost() const { return ranges_.at(0); }

 private:
  Ranges ranges_;
  std::uint64_t last_ = 0;
  std::map<std::string, std::vector<std::uint64_t>> open_;
};

void take_ranges(const std::vector<Placed>& annotations, trace::Trace& trace) {
  OpenRanges open(trace.ranges);
  auto next = annotations.begin();
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    for (; next != annotations.end() && next->event <= i; ++next)
      if (!is_name_of_pytorch(next->annotation->name)) open.follow(*next->annotation);
    trace.events[i].range = open.innermost();
  }
}

std::vector<TimedMark> updates_in(const std::vector<Placed>& annotations) {
  std::vector<TimedMark> marks;
  std::map<std::string, std::int32_t> optimizers;
  for (const auto& [event, one] : annotations) {
    if (!one->name.starts_with("Optimizer.step#")) continue;
    const auto number = static_cast<std::int32_t>(optimizers.size());
    const auto optimizer = optimizers.try_emplace(one->name, number).first->second;
    marks.push_back({.event = event,
                     .mark = one->ends ? Mark::kUpdateEnds : Mark::kUpdateBegins,
                     .value = optimizer});
  }
  return marks;
}

// The events behind which a step ends.
std::vector<std::uint64_t> ends_of_steps(const std::vector<Placed>& annotations,
                                         const std::vector<TimedMark>& updates) {
  std::vector<std::uint64_t> begins;
  for (const auto& [event, one] : annotations)
    if (!one->ends && one->name.starts_with("ProfilerStep#")) begins.push_back(event);
  if (begins.empty()) return step_ends(updates);
  begins.erase(begins.begin());
  return begins;
}

class AnnotatedPhases {
 public:
  AnnotatedPhases(const std::vector<TimedMark>& updates, const std::vector<std::uint64_t>& ends)
      : ends_(ends) {
    say(0);
    for (const auto& update : updates) {
      end_steps_until(update.event);
      const bool ends = update.mark == Mark::kUpdateEnds;
      if (ends && open_ == 0) continue;
      open_ += ends ? -1 : 1;
      scopes.push_back({.event = update.event, .kind = ScopeKind::kUpdate, .ends = ends});
      say(update.event);
    }
    end_steps_until(~std::uint64_t{0});
  }

  std::vector<trace::ScopeMark> scopes;

 private:
  void say(std::uint64_t event) {
    scopes.push_back({.event = event,
                      .phase = open_ > 0 ? Phase::kOptimizerStep : Phase::kBuild,
                      .step = step_});
  }
  void end_steps_until(std::uint64_t event) {
    for (; next_ < ends_.size() && ends_[next_] <= event; ++next_) {
      ++step_;
      say(ends_[next_]);
    }
  }

  const std::vector<std::uint64_t>& ends_;
  std::size_t next_ = 0;
  std::int32_t step_ = 0;
  int open_ = 0;
};

}  // namespace

void take_annotations(const std::vector<SnapshotAnnotation>& annotations, trace::Trace& trace) {
  const auto list = placed(annotations, trace.events);
  take_ranges(list, trace);
  const auto updates = updates_in(list);
  if (updates.empty()) return;
  trace.scopes = AnnotatedPhases(updates, ends_of_steps(list, updates)).scopes;
  trace::decide_phases(trace);
}

}  // namespace peakbench::programs
