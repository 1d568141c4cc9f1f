#include "kept_outputs.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <stdexcept>

namespace peakbench::checkpointing {
namespace {

// Below autograd and above every device, and nobody else's: it was meant for a library that is no
// more (torchdistx).
constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

thread_local KeepScope* current = nullptr;

using Modes = c10::impl::TorchDispatchModeTLS;

// Whoever asks whether a mode is set sees these; no operator is sent to Python.
void set_modes(const Modes& modes) {
  Modes::set_state(modes);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Python, false);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::PythonTLSSnapshot, false);
}

// While an operator that was seen runs, its mode is put aside.
class WithoutModes {
 public:
  WithoutModes() : before_(Modes::get_state()) { set_modes({}); }
  ~WithoutModes() { set_modes(before_); }
  WithoutModes(const WithoutModes&) = delete;
  WithoutModes& operator=(const WithoutModes&) = delete;

 private:
  Modes before_;
};

// The same memory without a history, which autograd will give it anew.
at::Tensor detached(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const auto* impl = tensor.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(),
                                                  /*allow_tensor_metadata_change=*/false));
}

std::int64_t version_of(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined()
             ? static_cast<std::int64_t>(value.toTensor()._version())
             : 0;
}

}  // namespace

bool Selection::holds(const c10::OperatorHandle& op) const {
  const std::string& name = op.schema().name();
  const auto is = [&](const char* one) { return name == one; };
  if (matmuls && (is("aten::mm") || is("aten::addmm") || is("aten::bmm") || is("aten::baddbmm")))
    return true;
  return attention && name.starts_with("aten::_scaled_dot_product_");
}

void KeptOutputs::keep(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> outputs) {
  Kept kept{op.operator_name(), {}, {}};
  for (const c10::IValue& output : outputs) {
    kept.outputs.push_back(output.isTensor() ? c10::IValue(detached(output.toTensor())) : output);
    kept.versions.push_back(version_of(output));
  }
  kept_.push_back(std::move(kept));
}

std::vector<c10::IValue> KeptOutputs::take(const c10::OperatorHandle& op) {
  const std::string name = toString(op.operator_name());
  if (kept_.empty() || kept_.front().op != op.operator_name())
    throw std::runtime_error(
        "checkpointing: the block runs " + name + " where it ran " +
        (kept_.empty() ? std::string("nothing") : toString(kept_.front().op)) +
        " in forward. A block must do the same when it runs again, and what was kept of it serves "
        "one backward pass.");
  Kept kept = std::move(kept_.front());
  kept_.pop_front();
  for (std::size_t i = 0; i < kept.outputs.size(); ++i)
    if (version_of(kept.outputs[i]) != kept.versions[i])
      throw std::runtime_error("checkpointing: what " + name +
                               " returned in forward was changed in place before backward");
  return kept.outputs;
}

// What the fallback sees of the scope.
class Interception {
 public:
  static void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard not_what_it_calls(kKey);
    const WithoutModes without_modes;
    const bool chosen = current != nullptr && current->kept_.selection().holds(op);
    if (chosen && current->run_ == KeepScope::Run::kSecond) {
      torch::jit::drop(*stack, op.schema().arguments().size());
      for (c10::IValue& output : current->kept_.take(op)) stack->push_back(std::move(output));
      return;
    }
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
    if (chosen) current->kept_.keep(op, torch::jit::last(*stack, op.schema().returns().size()));
  }
};

KeepScope::KeepScope(KeptOutputs& kept, Run run) : outer_(current), kept_(kept), run_(run) {
  current = this;
  if (kept.selection().empty()) return;
  include_.emplace(kKey);
  modes_before_ = Modes::get_state();
  const auto no_object = std::make_shared<c10::impl::PyObject_TorchDispatchMode>(nullptr, nullptr);
  Modes::push_non_infra_mode_onto_stack(no_object);
  set_modes(Modes::get_state());
}

KeepScope::~KeepScope() {
  current = outer_;
  if (modes_before_) set_modes(*modes_before_);
}

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Interception::run>());
}

}  // namespace peakbench::checkpointing
