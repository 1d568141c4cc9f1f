#include "worker/engine.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "peakbench/saved_tensor_hooks.h"

namespace peakbench::worker {
namespace {

namespace autograd = torch::autograd;

// One saved tensor's hooks: what autograd stores in place of the tensor.
class SavedTensorAdapter final : public autograd::SavedVariableHooks {
 public:
  explicit SavedTensorAdapter(std::shared_ptr<SavedTensorHooks> hooks) : hooks_(std::move(hooks)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    at::NoGradGuard no_grad;
    saved_ = hooks_->pack(tensor);
    hooks_.reset();
  }
  at::Tensor call_unpack_hook() override { return saved_->unpack(); }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  std::shared_ptr<SavedTensorHooks> hooks_;
  std::shared_ptr<SavedTensor> saved_;
};

class HookedEngine final : public autograd::Engine {
 public:
  HookedEngine() = default;
  ~HookedEngine() override { stop(); }

  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    std::shared_ptr<SavedTensorHooks> hooks = current_saved_tensor_hooks();
    if (hooks == nullptr) return nullptr;
    return std::make_unique<SavedTensorAdapter>(std::move(hooks));
  }
};

autograd::Engine& the_engine() {
  static HookedEngine engine;
  return engine;
}

}  // namespace

void install_engine() { autograd::set_default_engine_stub(the_engine); }

}  // namespace peakbench::worker
