#include "worker/counted_recipe.h"

#include <exception>

namespace peakbench::worker {
namespace {

template <typename Function>
auto count(Contribution& contribution, const char* call, Function&& function) {
  contribution.calls.fetch_add(1, std::memory_order_relaxed);
  return call_plugin(contribution.owner, call, std::forward<Function>(function));
}

// As call_plugin, but what is no std::exception goes through: a wrapper may end a block with a
// throw of its own kind, which it catches itself (checkpointing, once all that backward wants is
// back).
template <typename Function>
at::Tensor call_in_block(const Owner& owner, const char* call, Function&& function) {
  std::exception_ptr own;
  at::Tensor result = call_plugin(owner, call, [&]() -> at::Tensor {
    try {
      return function();
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      own = std::current_exception();
      return {};
    }
  });
  if (own) std::rethrow_exception(own);
  return result;
}

// Each forwards to what a strategy put into the recipe.
template <typename Interface>
class Counted : public Interface {
 public:
  Counted(std::shared_ptr<Interface> inner, Contribution& contribution)
      : inner_(std::move(inner)), contribution_(contribution) {}

 protected:
  std::shared_ptr<Interface> inner_;
  Contribution& contribution_;
};

class CountedTransform final : public Counted<ModelTransform> {
 public:
  using Counted::Counted;
  void apply(Model& model) override {
    count(contribution_, "ModelTransform::apply", [&] { inner_->apply(model); });
  }
};

class CountedRule final : public Counted<UpdateRule> {
 public:
  using Counted::Counted;
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    count(contribution_, "update", [&] { inner_->update(parameters, grouping); });
  }
  void visit_state(const StateVisitor& visit) override {
    call_plugin(contribution_.owner, "visit_state", [&] { inner_->visit_state(visit); });
  }
  void forget(const at::Tensor& parameter) override {
    call_plugin(contribution_.owner, "forget", [&] { inner_->forget(parameter); });
  }
};

class CountedRuleWrapper final : public Counted<UpdateRuleWrapper> {
 public:
  using Counted::Counted;
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    auto rule = call_plugin(contribution_.owner, "wrap", [&] {
      auto wrapped = inner_->wrap(std::move(inner));
      if (wrapped == nullptr) throw std::logic_error("wrap returned null");
      return wrapped;
    });
    return std::make_shared<CountedRule>(std::move(rule), contribution_);
  }
};

class CountedSchedule final : public Counted<Schedule> {
 public:
  using Counted::Counted;
  void prepare(Training& training) override {
    call_plugin(contribution_.owner, "prepare", [&] { inner_->prepare(training); });
  }
  void after_backward(Training& training) override {
    count(contribution_, "after_backward", [&] { inner_->after_backward(training); });
  }
  KernelGrouping default_grouping() const override { return inner_->default_grouping(); }
};

class CountedLossHead final : public Counted<LossHead> {
 public:
  using Counted::Counted;
  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    return count(contribution_, "loss", [&] { return inner_->loss(model, hidden_states, batch); });
  }
};

class CountedContext final : public Counted<StepContext> {
 public:
  using Counted::Counted;
  std::shared_ptr<void> enter_step() override {
    return count(contribution_, "enter_step", [&] { return inner_->enter_step(); });
  }
  std::shared_ptr<void> enter_forward() override {
    return count(contribution_, "enter_forward", [&] { return inner_->enter_forward(); });
  }
};

class CountedRunner final : public Counted<StepRunner> {
 public:
  // One that replays what it captured calls it until then.
  CountedRunner(std::shared_ptr<StepRunner> inner, Contribution& contribution, bool replays)
      : Counted(std::move(inner), contribution), replays_(replays) {}

  at::Tensor run(Training& training, const ForwardBackward& forward_backward,
                 std::int64_t step) override {
    return count(contribution_, "StepRunner::run", [&] {
      bool called = replays_ && called_before_;
      const auto noted = [&] {
        called = called_before_ = true;
        return forward_backward();
      };
      auto loss = inner_->run(training, noted, step);
      if (!called || !loss.defined())
        throw std::logic_error("it must call forward_backward, and return a loss");
      return loss;
    });
  }

 private:
  bool replays_;
  bool called_before_ = false;
};

class CountedListener final : public Counted<StepListener> {
 public:
  using Counted::Counted;
  void on_step_begin(Training& training, std::int64_t step) override {
    count(contribution_, "on_step_begin", [&] { inner_->on_step_begin(training, step); });
  }
};

class CountedLossTransform final : public Counted<LossTransform> {
 public:
  using Counted::Counted;
  at::Tensor apply(const at::Tensor& loss) override {
    return count(contribution_, "LossTransform::apply", [&] {
      auto transformed = inner_->apply(loss);
      if (!transformed.defined() || transformed.dim() != 0)
        throw std::logic_error("it must return a scalar tensor");
      return transformed;
    });
  }
};

class CountedGradientHook final : public Counted<GradientHook> {
 public:
  using Counted::Counted;
  void on_gradient(const Parameter& parameter, bool last) override {
    count(contribution_, "on_gradient", [&] { inner_->on_gradient(parameter, last); });
  }
};

class CountedGradientTransform final : public Counted<GradientTransform> {
 public:
  using Counted::Counted;
  bool apply(const std::vector<Parameter>& parameters) override {
    const bool updates =
        count(contribution_, "GradientTransform::apply", [&] { return inner_->apply(parameters); });
    if (!updates) contribution_.skipped_update = true;
    return updates;
  }
};

class CountedBlockWrapper final : public Counted<BlockWrapper> {
 public:
  CountedBlockWrapper(std::shared_ptr<BlockWrapper> inner, Contribution& contribution, Owner model)
      : Counted(std::move(inner), contribution), model_(std::move(model)) {}
  at::Tensor run(std::size_t index, std::size_t count_of_blocks, const BlockFunction& block,
                 const std::vector<at::Tensor>& inputs) override {
    // What goes wrong inside the block is the model's, although a wrapper runs it. By value: the
    // wrapper may keep the function until backward.
    const BlockFunction named = [block, model = model_](const std::vector<at::Tensor>& x) {
      return call_in_block(model, "block", [&] { return block(x); });
    };
    contribution_.calls.fetch_add(1, std::memory_order_relaxed);
    return call_in_block(contribution_.owner, "run",
                         [&] { return inner_->run(index, count_of_blocks, named, inputs); });
  }

 private:
  Owner model_;
};

class NamedSavedTensor final : public SavedTensor {
 public:
  NamedSavedTensor(std::shared_ptr<SavedTensor> inner, const Owner& owner)
      : inner_(std::move(inner)), owner_(owner) {}
  at::Tensor unpack() override {
    return call_plugin(owner_, "unpack", [&] { return inner_->unpack(); });
  }

 private:
  std::shared_ptr<SavedTensor> inner_;
  const Owner& owner_;  // a Contribution's, which outlives the steps
};

class CountedHooks final : public Counted<SavedTensorHooks> {
 public:
  using Counted::Counted;
  // A tensor that is left to others is no use of the hooks.
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, bool is_weight) override {
    auto saved =
        call_plugin(contribution_.owner, "pack", [&] { return inner_->pack(tensor, is_weight); });
    if (saved == nullptr) return nullptr;
    contribution_.calls.fetch_add(1, std::memory_order_relaxed);
    return std::make_shared<NamedSavedTensor>(std::move(saved), contribution_.owner);
  }
};

template <typename CountedKind, typename Interface>
void replace_slot(std::shared_ptr<Interface>& slot, Contributions& contributions,
                  const char* name) {
  if (Contribution* contribution = contributions.slot(name); slot && contribution)
    slot = std::make_shared<CountedKind>(std::move(slot), *contribution);
}

template <typename CountedKind, typename Interface>
void replace_wrappers(std::vector<std::shared_ptr<Interface>>& list, Contributions& contributions,
                      const char* name) {
  for (auto& wrapper : list)
    if (Contribution* contribution = contributions.wrapper(name, wrapper.get()))
      wrapper = std::make_shared<CountedKind>(std::move(wrapper), *contribution);
}

template <typename CountedKind, typename Place, typename Interface>
void replace_placed(std::vector<std::pair<Place, std::shared_ptr<Interface>>>& list,
                    Contributions& contributions, const char* name) {
  for (auto& [place, wrapper] : list)
    if (Contribution* contribution = contributions.wrapper(name, wrapper.get()))
      wrapper = std::make_shared<CountedKind>(std::move(wrapper), *contribution);
}

void count_freezing(Recipe& recipe, Contributions& contributions) {
  for (std::size_t i = 0; i < recipe.freezing.size(); ++i) {
    Contribution* contribution = contributions.freezing(i);
    if (contribution == nullptr) continue;
    recipe.freezing[i] = [inner = std::move(recipe.freezing[i]),
                          contribution](const Parameter& parameter) {
      const bool frozen =
          call_plugin(contribution->owner, "freezing", [&] { return inner(parameter); });
      if (frozen) contribution->calls.fetch_add(1, std::memory_order_relaxed);
      return frozen;
    };
  }
}

}  // namespace

Recipe counted(Recipe recipe, Contributions& contributions, const Owner& model) {
  replace_slot<CountedTransform>(recipe.base_weights, contributions, "base_weights");
  replace_slot<CountedTransform>(recipe.adapters, contributions, "adapters");
  replace_slot<CountedRule>(recipe.update_rule, contributions, "update_rule");
  replace_slot<CountedSchedule>(recipe.schedule, contributions, "schedule");
  replace_slot<CountedLossHead>(recipe.loss_head, contributions, "loss_head");
  if (Contribution* contribution = contributions.slot("step_runner");
      recipe.step_runner && contribution)
    recipe.step_runner = std::make_shared<CountedRunner>(
        std::move(recipe.step_runner), *contribution,
        contributions.has_capability(contribution->owner, "replays_steps"));
  replace_wrappers<CountedHooks>(recipe.saved_tensor_hooks, contributions, "saved_tensor_hooks");
  replace_wrappers<CountedContext>(recipe.step_contexts, contributions, "step_contexts");
  replace_wrappers<CountedGradientTransform>(recipe.gradient_transforms, contributions,
                                             "gradient_transforms");
  replace_wrappers<CountedListener>(recipe.step_listeners, contributions, "step_listeners");
  replace_wrappers<CountedLossTransform>(recipe.loss_transforms, contributions, "loss_transforms");
  replace_placed<CountedGradientHook>(recipe.gradient_hooks, contributions, "gradient_hooks");
  replace_placed<CountedRuleWrapper>(recipe.update_rule_wrappers, contributions,
                                     "update_rule_wrappers");
  for (auto& [place, wrapper] : recipe.block_wrappers)
    if (Contribution* contribution = contributions.wrapper("block_wrappers", wrapper.get()))
      wrapper = std::make_shared<CountedBlockWrapper>(std::move(wrapper), *contribution, model);
  count_freezing(recipe, contributions);
  return recipe;
}

}  // namespace peakbench::worker
