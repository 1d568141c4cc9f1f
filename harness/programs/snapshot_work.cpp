#include "programs/snapshot_work.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "trace/lines.h"

namespace peakbench::programs {
namespace {

using trace::Event;
using trace::EventKind;

// A frame's names, and what is known of its callers.
class FrameRules {
 public:
  explicit FrameRules(const trace::Trace& trace) : trace_(trace) {}

  std::vector<FrameFacts> all() {
    for (std::size_t i = 0; i < trace_.frames.size(); ++i) add(static_cast<std::int32_t>(i));
    return std::move(facts_);
  }

 private:
  // How far a stack has come on its way into an optimizer's step().
  enum class Update : std::uint8_t { kNot, kWrapped, kSteps };

  void add(std::int32_t number) {
    const auto& frame = trace_.frames[static_cast<std::size_t>(number)];
    const std::string_view file = word(trace_.files, frame.file),
                           function = word(trace_.functions, frame.function);
    const bool has_caller = frame.parent != trace::kNone;
    const auto parent = static_cast<std::size_t>(frame.parent);
    FrameFacts facts = has_caller ? facts_[parent] : FrameFacts{};
    if (!has_caller) facts.root = number;
    if (is_module_call(file, function) && !std::exchange(facts.calls_module, true))
      facts.caller = frame.parent;
    const bool waits = waits_for_engine(file, function);
    facts.in_backward |= waits;
    facts.recomputes = !waits && (facts.recomputes || recomputes(file, function));
    const auto before = has_caller ? updates_[parent] : Update::kNot;
    const auto now = update(before, file, function);
    const bool is_its_code = before != Update::kSteps || trace::is_pytorch_file(file);
    facts.made_by_optimizer = now == Update::kSteps && is_its_code && !facts.in_backward &&
                              !is_module_call(file, function) &&
                              (before != Update::kSteps || facts.made_by_optimizer);
    facts_.push_back(facts);
    updates_.push_back(now);
  }

  static std::string_view word(const std::vector<std::string>& words, std::int32_t index) {
    return index == trace::kNone ? std::string_view() : words[static_cast<std::size_t>(index)];
  }
  static bool is_module_call(std::string_view file, std::string_view function) {
    return file.ends_with("/torch/nn/modules/module.py") &&
           (function == "_call_impl" || function == "_wrapped_call_impl");
  }
  static bool waits_for_engine(std::string_view file, std::string_view function) {
    if (file.ends_with("/torch/autograd/graph.py")) return function == "_engine_run_backward";
    return file.ends_with("/torch/autograd/__init__.py") &&
           (function == "backward" || function == "grad" || function == "_make_grads");
  }
  static bool recomputes(std::string_view file, std::string_view function) {
    return file.ends_with("/torch/utils/checkpoint.py") &&
           (function == "recompute_fn" || function == "unpack_hook" || function == "backward");
  }
  // Hooks are called by the wrapper, too.
  static Update update(Update before, std::string_view file, std::string_view function) {
    const bool is_base = file.ends_with("/torch/optim/optimizer.py");
    if (is_base && function == "wrapper") return Update::kWrapped;
    if (before == Update::kWrapped && is_base && function == "_use_grad") return Update::kWrapped;
    if (before == Update::kWrapped) return function == "step" ? Update::kSteps : Update::kNot;
    return before;
  }

  const trace::Trace& trace_;
  std::vector<FrameFacts> facts_;
  std::vector<Update> updates_;
};

std::vector<std::uint64_t> frees_of(const trace::Trace& trace) {
  std::vector<std::uint64_t> freed(trace.events.size(), trace.events.size());
  std::map<std::pair<std::int16_t, std::uint64_t>, std::uint64_t> alive;
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    if (event.kind == EventKind::kAlloc) alive[{event.space, event.address}] = i;
    if (event.kind != EventKind::kFreeRequested && event.kind != EventKind::kFree) continue;
    const auto found = alive.find({event.space, event.address});
    if (found == alive.end()) continue;
    freed[found->second] = i;
    alive.erase(found);
  }
  return freed;
}

class WorkReader {
 public:
  WorkReader(const trace::Trace& trace, SnapshotWork& found) : trace_(trace), found_(found) {
    for (const auto& event : trace.events) {
      if (event.time_ns == kBeginning) continue;
      const bool has_stack = event.stack != trace::kNone;
      frees_have_stacks_ |= has_stack && event.kind == EventKind::kFreeRequested;
      has_engine_ |= event.thread == kEngineThread;
      waits_ |= has_stack && found.facts(event).in_backward;
    }
  }

  void read() {
    for (std::uint64_t i = 0; i < trace_.events.size(); ++i) {
      const auto work = of(trace_.events[i]);
      found_.works.push_back(work);
      if (work != Work::kUnknown) extend(i, work);
    }
  }

 private:
  Work of(const Event& event) {
    const bool shows = event.kind == EventKind::kAlloc || event.kind == EventKind::kFreeRequested ||
                       event.kind == EventKind::kOutOfMemory;
    if (!shows || event.time_ns == kBeginning) return Work::kUnknown;
    if (event.thread == kEngineThread) return Work::kBackward;
    if (event.stack == trace::kNone) return of_no_stack(event);
    const auto& facts = found_.facts(event);
    if (facts.in_backward) return wait(event, facts), Work::kBackward;
    if (waiting_ && waiting_->root != facts.root) return Work::kBackward;  // a hook of it
    waiting_.reset();
    return facts.calls_module ? Work::kCall : Work::kOther;
  }

  Work of_no_stack(const Event& event) const {
    const bool would_have = event.kind != EventKind::kFreeRequested || frees_have_stacks_;
    return waiting_ || (would_have && !has_engine_ && waits_) ? Work::kBackward : Work::kUnknown;
  }

  // From the gradient that backward() makes until it is freed, its thread does nothing else.
  void wait(const Event& event, const FrameFacts& facts) {
    if (event.kind == EventKind::kAlloc && !waiting_)
      waiting_ = {event.address, facts.root};
    else if (event.kind == EventKind::kFreeRequested && waiting_ &&
             waiting_->address == event.address)
      waiting_.reset();
  }

  void extend(std::uint64_t event, Work work) {
    const auto caller =
        work == Work::kCall ? found_.facts(trace_.events[event]).caller : trace::kNone;
    if (open_ && found_.spans.back().work == work && found_.spans.back().caller == caller) {
      found_.spans.back().end = event + 1;
      return;
    }
    open_ = work != Work::kOther;
    if (open_) {
      const bool continues = in_line_ && found_.spans.back().caller == caller;
      found_.spans.push_back({work, event, event + 1, caller, continues, false});
    }
    in_line_ = work == Work::kCall ||
               (work == Work::kOther && in_line_ && is_made_at(event, found_.spans.back().caller));
  }

  // Between two calls in one line.
  bool is_made_at(std::uint64_t event, std::int32_t line) const {
    auto frame = trace_.events[event].stack;
    while (frame != trace::kNone && frame > line)  // callers come first
      frame = trace_.frames[static_cast<std::size_t>(frame)].parent;
    return frame != trace::kNone && frame == line;
  }

  struct Waiting {
    std::uint64_t address;
    std::int32_t root;
  };

  const trace::Trace& trace_;
  SnapshotWork& found_;
  bool frees_have_stacks_ = false, has_engine_ = false, waits_ = false, open_ = false;
  bool in_line_ = false;  // of the last call
  std::optional<Waiting> waiting_;
};

// Calls whose memory a backward frees, and those behind them; the last before a backward; those
// before one in its line; and, behind the last backward, those made where such a call is made.
void find_forwards(const trace::Trace& trace, SnapshotWork& work) {
  const auto is_freed_in_backward = [&](std::uint64_t event) {
    return trace.events[event].kind == EventKind::kAlloc && work.works[event] == Work::kCall &&
           work.freed[event] < work.works.size() &&
           work.works[work.freed[event]] == Work::kBackward;
  };
  std::vector<bool> is_caller(trace.frames.size());
  bool in_forward = false;
  WorkSpan* last_call = nullptr;  // behind the last backward
  for (auto& span : work.spans) {
    if (span.work == Work::kBackward) {
      if (last_call != nullptr) last_call->is_forward = true;
      last_call = nullptr;
      in_forward = false;
      continue;
    }
    last_call = &span;
    for (auto i = span.first; i < span.end && !span.is_forward; ++i)
      span.is_forward = is_freed_in_backward(i);
    if (span.is_forward && span.caller != trace::kNone)
      is_caller[static_cast<std::size_t>(span.caller)] = true;
    in_forward |= span.is_forward;
    span.is_forward = in_forward;
  }
  for (std::size_t i = work.spans.size(); i-- > 1;)
    if (work.spans[i].continues) work.spans[i - 1].is_forward |= work.spans[i].is_forward;
  for (auto span = work.spans.rbegin(); span != work.spans.rend() && span->work != Work::kBackward;
       ++span)
    span->is_forward |=
        span->caller != trace::kNone && is_caller[static_cast<std::size_t>(span->caller)];
}

}  // namespace

const FrameFacts& SnapshotWork::facts(const Event& event) const {
  static const FrameFacts kNothing;
  return event.stack == trace::kNone ? kNothing : frames[static_cast<std::size_t>(event.stack)];
}

bool SnapshotWork::has_backward() const {
  return std::ranges::any_of(spans,
                             [](const WorkSpan& span) { return span.work == Work::kBackward; });
}

SnapshotWork work_of(const trace::Trace& trace) {
  SnapshotWork work;
  work.frames = FrameRules(trace).all();
  work.freed = frees_of(trace);
  WorkReader(trace, work).read();
  find_forwards(trace, work);
  return work;
}

}  // namespace peakbench::programs
