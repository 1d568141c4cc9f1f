#include "recording/work_counter.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "recording/dtype_words.h"
#include "recording/flop_formulas.h"

namespace peakbench::recording {
namespace {

// What is the same for every call of an operator.
struct OperatorTraits {
  std::string name;
  FlopFormula formula = FlopFormula::kNone;
  // It is nothing but the operators that it calls, which therefore are counted, as a mode of
  // Python sees them. What any other one calls is a part of its own work.
  bool is_composite = false;
  bool moves_nothing = false, overwrites = false, looks_up = false;
  bool may_skip = false;  // parts of its arguments
  bool has_returns = true, writes_any = false;
  std::vector<bool> writes, reads;  // arguments; what is only written is not read
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Makes memory, or says something of a tensor.
bool moves_nothing(std::string_view name) {
  for (const auto* prefix : {"aten::empty", "aten::new_empty", "aten::resize"})
    if (name.starts_with(prefix)) return true;
  return is_one_of(name,
                   {"aten::set_", "aten::record_stream", "aten::requires_grad_", "aten::detach_",
                    "aten::retain_grad", "aten::squeeze_", "aten::unsqueeze_", "aten::transpose_",
                    "aten::t_", "aten::swapaxes_", "aten::swapdims_", "aten::as_strided_",
                    "aten::set_data", "aten::rename_", "aten::_backward"});
}

// What was there before does not matter.
bool overwrites(std::string_view name) {
  return is_one_of(
      name, {"aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_",
             "aten::bernoulli_", "aten::random_", "aten::exponential_", "aten::geometric_",
             "aten::cauchy_", "aten::log_normal_", "aten::_foreach_copy_", "aten::_foreach_zero_",
             "aten::eye", "aten::arange", "aten::randperm"});
}

// Which parts of the arguments it reads or writes depends on indices among them.
bool looks_up(std::string_view name) {
  for (const auto* prefix :
       {"aten::embedding", "aten::_embedding_bag", "aten::index", "aten::_index", "aten::gather",
        "aten::take", "aten::scatter", "aten::_unsafe_index", "aten::nll_loss", "aten::put",
        "aten::masked_select", "aten::masked_scatter", "aten::grid_sampler", "aten::max_unpool"})
    if (name.starts_with(prefix)) return true;
  return false;
}

// A window that steps over some of it, a triangle; what is not PyTorch's own, nobody knows.
bool may_skip(std::string_view name) {
  if (!name.starts_with("aten::")) return true;
  for (const auto* part : {"pool", "upsample", "convolution", "_slow_conv", "tril", "triu"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

// AdamW and its kin write the gradients only where they unscale them.
bool only_reads(std::string_view name, std::string_view argument) {
  return name.starts_with("aten::_fused_") && argument == "grads";
}

OperatorTraits traits_of(const c10::OperatorHandle& handle) {
  const c10::FunctionSchema& schema = handle.schema();
  OperatorTraits traits;
  traits.name = schema.name();
  traits.formula = flop_formula(traits.name);
  traits.is_composite = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  traits.moves_nothing = moves_nothing(traits.name);
  traits.overwrites = overwrites(traits.name);
  traits.looks_up = looks_up(traits.name);
  traits.may_skip = traits.looks_up || may_skip(traits.name);
  traits.has_returns = !schema.returns().empty();
  for (const c10::Argument& argument : schema.arguments()) {
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite() &&
                         !only_reads(traits.name, argument.name());
    traits.writes_any |= written;
    traits.writes.push_back(written);
    traits.reads.push_back(!written || !(argument.kwarg_only() || traits.overwrites));
  }
  return traits;
}

// nullptr: of something that is no operator, such as a function of autograd, whose operators are
// counted. By the name's address, which is the operator's as long as it is registered; the text of
// what is no operator may lie anywhere, and is asked for each time.
const OperatorTraits* traits_of(const at::RecordFunction& function) {
  static thread_local std::unordered_map<const char*, std::unique_ptr<OperatorTraits>> known;
  const char* const name = function.name();
  if (const auto found = known.find(name); found != known.end()) return found->second.get();
  const auto full_name = function.operator_name();
  if (!full_name) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema(*full_name);
  if (!handle) return nullptr;
  return known.emplace(name, std::make_unique<OperatorTraits>(traits_of(*handle)))
      .first->second.get();
}

struct Counting {
  std::mutex mutex;
  CountedWork work;
  Recorder* recorder = nullptr;
  c10::Device device{c10::kCPU};
  std::function<DeviceCounts()> read_counts;
};
Counting& counting() {
  static auto* const one = new Counting;
  return *one;
}

struct Bytes {
  std::int64_t all = 0, largest = 0;
  void add(std::int64_t bytes) {
    all += bytes;
    largest = std::max(largest, bytes);
  }
};

struct CountedOperator final : at::ObserverContext {
  const OperatorTraits* traits = nullptr;
  CountedOperator* outer = nullptr;
  int exceptions = std::uncaught_exceptions();  // when it began
  bool is_part = false;                         // of an operator that is no composite
  bool has_formula = false;                     // and its product is on the device that counts
  bool crosses = false;                         // between devices: copies may run beside other work
  bool inner_moved = false;                     // an operator inside of it read or wrote something
  Flops flops;
  std::int16_t precision = -1;
  Bytes read, written;
  std::int64_t added_bytes = 0;  // of addmm: not read where it is taken zero times
  struct Input {
    const c10::StorageImpl* storage;
    std::int64_t offset;
    bool written;
  };
  c10::SmallVector<Input, 8> inputs;
};
thread_local CountedOperator* innermost = nullptr;

bool is_counted(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device() == counting().device &&
         tensor.layout() == c10::kStrided && tensor.has_storage();
}

// As it is laid out: an expanded dimension takes no bytes.
std::int64_t bytes_of(const at::Tensor& tensor) {
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.stride(i) != 0 || tensor.size(i) == 0) elements *= tensor.size(i);
  return elements * static_cast<std::int64_t>(tensor.element_size());
}

template <typename Visit>
void visit_tensors(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& part : value.toListRef()) visit_tensors(part, visit);
  }
}

void take_inputs(CountedOperator& frame, c10::ArrayRef<c10::IValue> inputs) {
  const OperatorTraits& traits = *frame.traits;
  for (std::size_t i = 0; i < inputs.size() && i < traits.writes.size(); ++i) {
    visit_tensors(inputs[i], [&](const at::Tensor& tensor) {
      frame.crosses |= tensor.defined() && tensor.dim() > 0 && tensor.device() != counting().device;
      if (!is_counted(tensor)) return;
      const CountedOperator::Input input{tensor.storage().unsafeGetStorageImpl(),
                                         tensor.storage_offset(), traits.writes[i]};
      const bool again =
          std::ranges::any_of(frame.inputs, [&](const CountedOperator::Input& other) {
            return other.storage == input.storage && other.offset == input.offset;
          });
      frame.inputs.push_back(input);
      if (again) return;
      if (traits.reads[i]) frame.read.add(bytes_of(tensor));
      if (traits.writes[i] && !traits.has_returns) frame.written.add(bytes_of(tensor));
    });
  }
}

bool may_be_tf32(FlopFormula formula, const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat || !tensor.is_cuda()) return false;
  switch (formula) {
    case FlopFormula::kConvolution:
    case FlopFormula::kConvolutionBackward:
      return at::globalContext().allowTF32CuDNN();
    case FlopFormula::kAttention:
    case FlopFormula::kAttentionBackward:
    case FlopFormula::kPackedAttention:
    case FlopFormula::kPackedAttentionBackward:
      return true;  // its kernels make products of fp32 of several of TF32
    default:
      return at::globalContext().allowTF32CuBLAS();
  }
}

std::int16_t precision_number(const std::string& word) {
  auto& words = counting().work.precisions;
  const auto found = std::ranges::find(words, word);
  const auto number = static_cast<std::int16_t>(found - words.begin());
  if (found == words.end()) words.push_back(word);
  return number;
}

void take_flops(CountedOperator& frame, c10::ArrayRef<c10::IValue> inputs) {
  const auto formula = frame.traits->formula;
  const auto first = first_factor(formula);
  if (first >= inputs.size() || !inputs[first].isTensor()) return;
  const at::Tensor& factor = inputs[first].toTensor();
  if (!factor.defined() || factor.device() != counting().device) return;
  frame.has_formula = true;
  const bool adds = formula == FlopFormula::kAddedMatrices || formula == FlopFormula::kAddedBatches;
  if (adds && inputs[0].isTensor() && is_counted(inputs[0].toTensor()))
    frame.added_bytes = bytes_of(inputs[0].toTensor());
  const auto flops = flops_of(formula, inputs);
  const std::lock_guard lock(counting().mutex);
  if (!flops) {
    ++counting().work.without_formula[frame.traits->name];
    return;
  }
  frame.flops = *flops;
  frame.precision =
      precision_number(may_be_tf32(formula, factor) ? "tf32" : dtype_word(factor.scalar_type()));
}

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
  auto frame = std::make_unique<CountedOperator>();
  frame->outer = innermost;
  frame->traits = traits_of(function);
  const CountedOperator* outer = innermost;
  frame->is_part = outer != nullptr &&
                   (outer->is_part || (outer->traits != nullptr && !outer->traits->is_composite));
  innermost = frame.get();
  if (frame->traits == nullptr || frame->traits->moves_nothing) return frame;
  take_inputs(*frame, function.inputs());
  if (!frame->is_part && frame->traits->formula != FlopFormula::kNone)
    take_flops(*frame, function.inputs());
  return frame;
}

void add(OperatorWork work) {
  auto& now = counting();
  if (now.read_counts) work.device_counts = now.read_counts();
  work.place = now.recorder->scope_point();
  const std::lock_guard lock(now.mutex);
  now.work.operators.push_back(std::move(work));
}

// Whether it made something else than a view of an argument; its bytes are added.
bool take_outputs(CountedOperator& frame, const std::vector<c10::IValue>& outputs) {
  bool made = false;
  for (const c10::IValue& output : outputs) {
    visit_tensors(output, [&](const at::Tensor& tensor) {
      if (!is_counted(tensor)) return;
      const auto* storage = tensor.storage().unsafeGetStorageImpl();
      const auto input = std::ranges::find(frame.inputs, storage, &CountedOperator::Input::storage);
      const bool is_view =
          input != frame.inputs.end() &&
          std::ranges::none_of(frame.inputs, [&](const CountedOperator::Input& other) {
            return other.storage == storage && other.written;
          });
      if (is_view) return;
      made = true;
      frame.written.add(bytes_of(tensor));
    });
  }
  return made;
}

std::int64_t output_places(const std::vector<c10::IValue>& outputs) {
  if (outputs.empty() || !outputs[0].isTensor()) return 1;
  return places_of(outputs[0].toTensor().sizes());
}

// Rows of a table that go out, or that go into one: the table is the largest of its arguments.
void take_looked_up(const CountedOperator& frame, OperatorWork& work) {
  const auto rest = work.read_bytes - frame.read.largest;
  if (frame.traits->writes_any) {
    work.read_bytes = std::min(work.read_bytes, rest);
    work.written_bytes = std::min(work.written_bytes, rest);
  } else {
    work.read_bytes = std::min(work.read_bytes, rest + work.written_bytes);
  }
}

OperatorWork work_of(const CountedOperator& frame, const at::RecordFunction& function) {
  OperatorWork work;
  work.counts = true;
  work.precision = frame.precision;
  work.flops = frame.flops.count;
  if (frame.flops.each_output_place) work.flops *= output_places(function.outputs());
  work.read_bytes = frame.read.all;
  work.written_bytes = frame.written.all;
  if (frame.traits->looks_up) take_looked_up(frame, work);
  if (frame.crosses) return work;
  if (!frame.traits->may_skip)
    work.sure_read_bytes = std::max<std::int64_t>(0, work.read_bytes - frame.added_bytes);
  if (!(frame.traits->looks_up && frame.traits->writes_any))
    work.sure_written_bytes = work.written_bytes;
  return work;
}

bool is_done_by_parts(const CountedOperator& frame) {
  return frame.inner_moved && !frame.has_formula;
}

void finish(CountedOperator& frame, const at::RecordFunction& function) {
  if (frame.traits == nullptr || frame.traits->moves_nothing) return;
  // A recomputation ends by an exception from what its last operator saves, which then never runs.
  if (std::uncaught_exceptions() > frame.exceptions) return;
  const bool made = take_outputs(frame, function.outputs());
  const bool moves = made || frame.written.all > 0;
  if (!moves && !frame.inner_moved && !frame.has_formula) return;
  if (frame.outer != nullptr) frame.outer->inner_moved = true;
  // Of an operator with a formula, nothing inside is counted beside it.
  for (const CountedOperator* outer = frame.outer; outer != nullptr; outer = outer->outer)
    if (outer->has_formula) return;
  if (!is_done_by_parts(frame)) add(work_of(frame, function));
}

void end_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  auto& frame = *static_cast<CountedOperator*>(context);
  finish(frame, function);
  // What an operator that throws leaves has ended by then, too.
  innermost = frame.outer;
}

}  // namespace

WorkCounter::WorkCounter(Recorder& recorder, c10::Device device,
                         std::function<DeviceCounts()> read_counts) {
  auto& now = counting();
  now.recorder = &recorder;
  now.device = device;
  now.read_counts = std::move(read_counts);
}

void WorkCounter::begin() {
  counting().work = {};
  end_part();
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(begin_operator, end_operator)
                                      .needsInputs(true)
                                      .needsOutputs(true)
                                      .scopes({at::RecordScope::FUNCTION}));
}

void WorkCounter::end_part() { add({}); }

CountedWork WorkCounter::end() {
  end_part();
  at::removeCallback(handle_);
  return std::exchange(counting().work, {});
}

}  // namespace peakbench::recording
