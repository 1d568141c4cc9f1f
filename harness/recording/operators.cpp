// Which operator of PyTorch asks for memory, for whom: its line, its module; in backward those of
// the forward operator that the node belongs to.
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recording/factories.h"
#include "recording/python_calls.h"
#include "recording/storage_names.h"
#include "recording/tracer.h"

namespace peakbench::recording {
namespace {

constexpr std::int32_t kUnknown = -1, kNotLooked = -2;

struct Origin {
  std::int64_t sequence = -1;
  std::int32_t stack = kUnknown, module = kUnknown, call = 0;
};

// Sequence numbers rise within a thread, so that each list is sorted.
class Origins {
 public:
  void note(std::uint64_t thread, const Origin& origin) {
    const std::lock_guard lock(mutex_);
    auto& list = by_thread_[thread];
    if (!list.empty() && list.back().sequence >= origin.sequence) {
      if (list.back().sequence == origin.sequence) list.back() = origin;
      return;
    }
    list.push_back(origin);
    if (list.size() > kMost) list.pop_front();
  }
  // The last at or before this number: an operator may make more than one node.
  Origin find(std::uint64_t thread, std::int64_t sequence) {
    const std::lock_guard lock(mutex_);
    const auto list = by_thread_.find(thread);
    if (list == by_thread_.end()) return {};
    const auto after = std::upper_bound(
        list->second.begin(), list->second.end(), sequence,
        [](std::int64_t value, const Origin& origin) { return value < origin.sequence; });
    return after == list->second.begin() ? Origin{} : *std::prev(after);
  }

 private:
  static constexpr std::size_t kMost = 1 << 20;  // of what was forwarded before, nothing is known

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::deque<Origin>> by_thread_;
};
Origins& origins() {
  static auto* const all = new Origins;
  return *all;
}

struct Frame final : at::ObserverContext {
  std::string_view name;
  std::int32_t stack = kNotLooked;
  bool is_node = false;
  Origin origin;  // of a node
};
thread_local std::vector<Frame*> frames;
thread_local Origin last_node;  // that ended on this thread
thread_local std::int32_t last_differentiated = 0;
thread_local std::int32_t hook_stack = kNotLooked;

bool runs_no_python(const Frame& frame) {
  return !frame.is_node && frame.name.starts_with("aten::");
}

// What an operator of PyTorch calls is called by the same line.
std::int32_t stack_of(std::size_t at) {
  Frame& frame = *frames[at];
  if (frame.stack != kNotLooked) return frame.stack;
  if (at > 0 && runs_no_python(*frames[at - 1])) return frame.stack = stack_of(at - 1);
  return frame.stack = python_stack(Tracer::one().journal());
}

// Of the node that this thread is in.
const Origin* node_origin() {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    if ((*frame)->is_node) return &(*frame)->origin;
  return nullptr;
}

// What asked for memory and has no place yet: named after the operator `named`, in the line of
// `at`.
void place_here(std::size_t named, std::size_t at) {
  auto& journal = Tracer::one().journal();
  const auto op = journal.text(frames[named]->name);
  auto hook = std::exchange(hook_stack, kNotLooked);
  if (open_nodes() > 0 && !is_recomputing()) {
    if (const auto* origin = node_origin(); origin != nullptr && origin->stack >= 0) {
      if (hook == kNotLooked) hook = python_stack(journal);
      return place_allocations(origin->stack, op, origin->module, hook);
    }
  }
  const auto stack = stack_of(at);
  hook = std::max(hook, kUnknown);
  // The engine itself, on a thread of its own: it sums a gradient to the shape of what it is of. Or
  // what adds the gradient of the node before to a leaf.
  const auto* node = node_origin();
  if (stack < 0 && (node == nullptr || node->sequence < 0) && last_node.stack >= 0)
    return place_allocations(last_node.stack, op, last_node.module, hook);
  place_allocations(stack, op, current_module(), hook);
}

// Of what asked for memory before this operator began, by the one around it.
void place_before() {
  if (has_unplaced() && frames.size() > 1 && !is_factory(frames[frames.size() - 2]->name))
    place_here(frames.size() - 2, frames.size() - 2);
}

void note_differentiated(std::int32_t call) {
  if (call == 0 || call == last_differentiated) return;
  last_differentiated = call;
  Tracer::one().mark_differentiated(call);
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  if (!Tracer::one().is_recording()) return nullptr;
  auto frame = std::make_unique<Frame>();
  frame->name = function.name();
  frame->is_node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  frames.push_back(frame.get());
  count_operator(1);
  place_before();
  if (frame->is_node) {
    enter_node();
    if (function.seqNr() >= 0)
      frame->origin = origins().find(function.forwardThreadId(), function.seqNr());
    note_differentiated(frame->origin.call);
  } else if (function.seqNr() >= 0 && at::GradMode::is_enabled()) {
    const bool again = open_nodes() > 0 && !is_recomputing();
    const auto* outer = again ? node_origin() : nullptr;  // of a backward that is differentiated
    origins().note(function.threadId(),
                   outer != nullptr
                       ? Origin{function.seqNr(), outer->stack, outer->module, outer->call}
                       : Origin{function.seqNr(), stack_of(frames.size() - 1), current_module(),
                                current_call()});
  }
  return frame;
}

bool has_plain_storage(const at::Tensor& tensor) {
  return !tensor.unsafeGetTensorImpl()->key_set().has(at::DispatchKey::Python) &&
         tensor.has_storage();
}

void name_storage(const at::Tensor& tensor, trace::Role role) {
  if (!tensor.defined() || !has_plain_storage(tensor)) return;
  auto& tracer = Tracer::one();
  auto& journal = tracer.journal();
  tracer.name(reinterpret_cast<std::uint64_t>(tensor.storage().data()), role, journal.text(""),
              text_of_shape(tensor), journal.text(c10::toString(tensor.scalar_type())));
}

// The gradient that a leaf has now.
void name_gradient() {
  const auto node = torch::autograd::get_current_node();
  const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get());
  if (leaf != nullptr) name_storage(leaf->variable.grad(), trace::Role::kGradient);
}

void on_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;
  auto* const frame = static_cast<Frame*>(context);
  if (has_unplaced()) {
    const auto at = frames.size() - 1;
    if (at == 0 || !is_factory(frame->name))
      place_here(at, at);
    else if (!runs_no_python(*frames[at - 1]))  // a line of Python called it: by then it is another
      place_here(at - 1, at);
  }
  if (frame->is_node) {
    if (frame->name.ends_with("AccumulateGrad")) name_gradient();
    exit_node();
    last_node = frame->origin;
  }
  count_operator(-1);
  frames.pop_back();
}

struct NamedRange final : at::ObserverContext {
  std::uint64_t number = 0;
};

std::unique_ptr<at::ObserverContext> on_range_start(const at::RecordFunction& function) {
  auto& tracer = Tracer::one();
  if (!tracer.is_recording()) return nullptr;
  auto range = std::make_unique<NamedRange>();
  range->number =
      tracer.begin_range(tracer.journal().text(function.name()), RangeSource::kRecordFunction);
  return range;
}
void on_range_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr) Tracer::one().end_range(static_cast<NamedRange*>(context)->number);
}

// The tensors of a collective are in lists, or in lists of lists.
void name_communicated(const c10::IValue& value) {
  if (value.isTensor()) return name_storage(value.toTensor(), trace::Role::kCommunication);
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector())
      name_storage(tensor, trace::Role::kCommunication);
  } else if (value.isList()) {
    for (const c10::IValue& part : value.toListRef()) name_communicated(part);
  }
}

// What a buffer was before is the first or the last of what torch.cat joins to it.
void mark_joined(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensorList()) return;
  const auto tensors = inputs[0].toTensorVector();
  bool is_first = true;
  for (std::size_t i = 0; i < tensors.size(); i += std::max<std::size_t>(1, tensors.size() - 1)) {
    const auto& tensor = tensors[i];
    if (!tensor.defined() || !tensor.is_cuda() || !has_plain_storage(tensor)) continue;
    Tracer::one().mark_joined(is_first, reinterpret_cast<std::uint64_t>(tensor.storage().data()));
    is_first = false;
  }
}

struct CopyContext final : at::ObserverContext {};

// A copy to a floating-point dtype of another size: said until it ends.
std::unique_ptr<at::ObserverContext> begin_copy(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isInt()) return nullptr;
  const auto& source = inputs[0].toTensor();
  const auto type = inputs[1].toScalarType();
  if (!source.defined() || !source.is_floating_point() || !at::isFloatingType(type)) return nullptr;
  const auto from = source.element_size();
  const auto to = static_cast<std::int64_t>(c10::elementSize(type));
  if (from == to || (from > to && source.requires_grad())) return nullptr;
  if (!has_plain_storage(source)) return nullptr;
  Tracer::one().mark_copy(from < to ? Copy::kLarger : Copy::kSmallerOfFrozen,
                          reinterpret_cast<std::uint64_t>(source.storage().data()));
  return std::make_unique<CopyContext>();
}

// What operators are called with says of what copies are made, what is joined, and which memory is
// communicated:
// ProcessGroup's methods, which every collective goes through, are c10d::allreduce_, ...
std::unique_ptr<at::ObserverContext> on_arguments(const at::RecordFunction& function) {
  if (!Tracer::one().is_recording()) return nullptr;
  const std::string_view name = function.name();
  if (name == "aten::_to_copy") return begin_copy(function);
  if (name == "aten::cat") mark_joined(function);
  if (name.starts_with("c10d::"))
    for (const auto& input : function.inputs()) name_communicated(input);
  return nullptr;
}
void on_copied(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr) Tracer::one().mark(Mark::kCopyEnds, 0);
}

}  // namespace

void note_hook() {
  if (hook_stack == kNotLooked) hook_stack = python_stack(Tracer::one().journal());
}

void listen_to_operators() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  at::addGlobalCallback(at::RecordFunctionCallback(on_arguments, on_copied)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
  at::addGlobalCallback(at::RecordFunctionCallback(on_range_start, on_range_end)
                            .scopes({at::RecordScope::USER_SCOPE}));
}

}  // namespace peakbench::recording
