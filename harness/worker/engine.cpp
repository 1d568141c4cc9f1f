#include "worker/engine.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_set>

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

namespace {

// What hooks packed, of which later places took all that they wanted: null for what they left.
class Chained final : public SavedTensor {
 public:
  using Parts = std::vector<std::shared_ptr<SavedTensor>>;
  Chained(std::shared_ptr<SavedTensor> saved, Parts parts)
      : saved_(std::move(saved)), parts_(std::move(parts)) {}

  at::Tensor unpack() override {
    for_each_taken([](at::Tensor& held, SavedTensor& part) { held = part.unpack(); });
    at::Tensor tensor = saved_->unpack();
    for_each_taken([](at::Tensor& held, SavedTensor&) { held.reset(); });
    return tensor;
  }

 private:
  template <typename Function>
  void for_each_taken(Function&& function) {
    std::size_t shown = 0;
    saved_->visit_held([&](at::Tensor& held) {
      if (shown < parts_.size() && parts_[shown]) function(held, *parts_[shown]);
      ++shown;
    });
    if (shown != parts_.size())
      throw std::logic_error("visit_held showed " + std::to_string(parts_.size()) +
                             " tensors when one was packed and shows " + std::to_string(shown) +
                             " now; it shows the same in each call");
  }

  std::shared_ptr<SavedTensor> saved_;
  Parts parts_;
};

}  // namespace

SavedTensorChain::SavedTensorChain(const std::vector<Placed>& hooks) {
  std::map<SavedTensorPlace, std::vector<std::shared_ptr<SavedTensorHooks>>> by_place;
  for (const auto& [place, hook] : hooks) by_place[place].push_back(hook);
  for (auto& [place, list] : by_place) places_.push_back(std::move(list));
}

std::shared_ptr<SavedTensor> SavedTensorChain::pack(const at::Tensor& tensor,
                                                    const SavedTensorFacts& facts) {
  return pack_from(0, tensor, facts);
}

std::shared_ptr<SavedTensor> SavedTensorChain::pack_from(std::size_t place,
                                                         const at::Tensor& tensor,
                                                         const SavedTensorFacts& facts) {
  for (; place < places_.size(); ++place)
    for (const auto& hooks : places_[place])
      if (auto saved = hooks->pack(tensor, facts))
        return pack_held(place + 1, std::move(saved), facts);
  return nullptr;
}

std::shared_ptr<SavedTensor> SavedTensorChain::pack_held(std::size_t place,
                                                         std::shared_ptr<SavedTensor> saved,
                                                         const SavedTensorFacts& facts) {
  if (place == places_.size()) return saved;
  Chained::Parts parts;
  saved->visit_held([&](at::Tensor& held) {
    parts.emplace_back();
    if (!held.defined()) return;
    parts.back() = pack_from(place, held, {is_weight(held), facts.module, facts.op});
    if (parts.back()) held.reset();
  });
  const bool took_some =
      std::ranges::any_of(parts, [](const auto& part) { return part != nullptr; });
  if (!took_some) return saved;
  return std::make_shared<Chained>(std::move(saved), std::move(parts));
}

bool SavedTensorChain::asks_where() const {
  return std::ranges::any_of(places_, [](const auto& place) {
    return std::ranges::any_of(place, [](const auto& hooks) { return hooks->asks_where(); });
  });
}

}  // namespace peakbench::worker
