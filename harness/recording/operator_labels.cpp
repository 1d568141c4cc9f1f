#include "recording/operator_labels.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace peakbench::recording {
namespace {

struct Label {
  std::int64_t sequence;
  std::int32_t module;
};

// One a process, like the callback itself. Sequence numbers rise within a thread, so each list
// stays sorted.
struct Labels {
  Recorder* recorder = nullptr;
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::vector<Label>> by_thread;

  void note(std::uint64_t thread, std::int64_t sequence, std::int32_t module) {
    const std::lock_guard lock(mutex);
    std::vector<Label>& labels = by_thread[thread];
    if (!labels.empty() && labels.back().sequence == sequence) {
      labels.back().module = module;  // a composite operator and the one inside it
    } else if (labels.empty() || labels.back().sequence < sequence) {
      labels.push_back({sequence, module});
    }
  }

  // The last operator at or before this number: an operator may make more than one node.
  std::int32_t find(std::uint64_t thread, std::int64_t sequence) {
    const std::lock_guard lock(mutex);
    const auto list = by_thread.find(thread);
    if (list == by_thread.end()) return trace::kNone;
    auto after = std::upper_bound(
        list->second.begin(), list->second.end(), sequence,
        [](std::int64_t value, const Label& label) { return value < label.sequence; });
    return after == list->second.begin() ? trace::kNone : std::prev(after)->module;
  }
} labels;

// As the recorder numbered its name. An operator's name lies in the same place each time, and is
// looked up by that. Where another name lies there by now, and for nodes of backward, each of which
// has a text of its own, it is looked up by the text.
std::int32_t number_of(const at::RecordFunction& function, Recorder& recorder) {
  struct Known {
    std::string name;
    std::int32_t number;
  };
  static thread_local std::unordered_map<const char*, Known> known;
  static thread_local const Recorder* numbered_by = nullptr;
  if (std::exchange(numbered_by, &recorder) != &recorder) known.clear();
  const char* const name = function.name();
  if (function.scope() != at::RecordScope::FUNCTION) return recorder.intern_operator(name);
  const auto found = known.find(name);
  if (found != known.end() && found->second.name == name) return found->second.number;
  const auto number = recorder.intern_operator(name);
  known.insert_or_assign(name, Known{name, number});
  return number;
}

struct Frame : at::ObserverContext {
  bool is_backward_node = false, is_scope = false;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  Recorder& recorder = *labels.recorder;
  auto frame = std::make_unique<Frame>();
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    // Leaf nodes (AccumulateGrad) have no number of their own.
    const bool numbered = function.seqNr() >= 0;
    frame->is_scope = recorder.enter_backward_node(
        numbered ? labels.find(function.forwardThreadId(), function.seqNr()) : trace::kNone);
    frame->is_backward_node = true;
  } else if (function.seqNr() >= 0) {
    labels.note(function.threadId(), function.seqNr(), recorder.current_module());
  }
  recorder.push_operator(number_of(function, recorder));
  return frame;
}

void on_end(const at::RecordFunction&, at::ObserverContext* context) {
  labels.recorder->pop_operator();
  const auto& frame = *static_cast<Frame*>(context);
  if (frame.is_backward_node) labels.recorder->exit_backward_node(frame.is_scope);
}

}  // namespace

void install_operator_labels(Recorder& recorder) {
  labels.recorder = &recorder;
  at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

void forget_sequence_numbers() {
  const std::lock_guard lock(labels.mutex);
  labels.by_thread.clear();
}

}  // namespace peakbench::recording
