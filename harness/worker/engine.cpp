#include "worker/engine.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <unordered_set>

#include "peakbench/saved_tensor_hooks.h"
#include "worker/code_place.h"

namespace peakbench::worker {
namespace {

namespace autograd = torch::autograd;

std::unordered_set<const at::StorageImpl*>& weight_storages() {
  static std::unordered_set<const at::StorageImpl*> storages;
  return storages;
}

// A tensor that no hooks took.
class AsItIs final : public SavedTensor {
 public:
  explicit AsItIs(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor unpack() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

using Hooks = std::vector<std::shared_ptr<SavedTensorHooks>>;

std::shared_ptr<SavedTensor> pack(const Hooks& hooks, const at::Tensor& tensor) {
  const SavedTensorFacts facts{is_weight(tensor), current_module(), current_operator()};
  for (auto hook = hooks.rbegin(); hook != hooks.rend(); ++hook) {
    if (auto saved = (*hook)->pack(tensor, facts)) return saved;
  }
  return std::make_shared<AsItIs>(tensor);
}

// One saved tensor's hooks: what autograd stores in place of the tensor.
class SavedTensorAdapter final : public autograd::SavedVariableHooks {
 public:
  explicit SavedTensorAdapter(Hooks hooks) : hooks_(std::move(hooks)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    at::NoGradGuard no_grad;
    saved_ = pack(hooks_, tensor);
    hooks_.clear();
  }
  at::Tensor call_unpack_hook() override { return saved_->unpack(); }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  Hooks hooks_;
  std::shared_ptr<SavedTensor> saved_;
};

class HookedEngine final : public autograd::Engine {
 public:
  HookedEngine() = default;
  ~HookedEngine() override { stop(); }

  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    const Hooks& hooks = current_saved_tensor_hooks();
    if (hooks.empty()) return nullptr;
    return std::make_unique<SavedTensorAdapter>(hooks);
  }
};

autograd::Engine& the_engine() {
  static HookedEngine engine;
  return engine;
}

}  // namespace

bool is_weight(const at::Tensor& tensor) {
  return tensor.has_storage() &&
         weight_storages().contains(tensor.storage().unsafeGetStorageImpl());
}

void install_engine() { autograd::set_default_engine_stub(the_engine); }

void set_weights(const torch::nn::Module& module) {
  weight_storages().clear();
  const auto add = [](const at::Tensor& tensor) {
    if (tensor.has_storage()) weight_storages().insert(tensor.storage().unsafeGetStorageImpl());
  };
  for (const auto& item : module.named_parameters()) add(item.value());
  for (const auto& item : module.named_buffers()) add(item.value());
}

}  // namespace peakbench::worker
