#include "worker/counted_recipe.h"

#include <exception>

namespace peakbench::worker {
namespace {

template <typename Function>
auto count(Part& part, const char* call, Function&& function) {
  part.calls.fetch_add(1, std::memory_order_relaxed);
  return call_plugin(part.owner, call, std::forward<Function>(function));
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
  Counted(std::shared_ptr<Interface> inner, Part& part) : inner_(std::move(inner)), part_(part) {}

 protected:
  std::shared_ptr<Interface> inner_;
  Part& part_;
};

class CountedTransform final : public Counted<ModelTransform> {
 public:
  using Counted::Counted;
  void apply(Model& model) override {
    count(part_, "ModelTransform::apply", [&] { inner_->apply(model); });
  }
};

class CountedRule final : public Counted<UpdateRule> {
 public:
  using Counted::Counted;
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    count(part_, "update", [&] { inner_->update(parameters, grouping); });
  }
  void visit_state(const StateVisitor& visit) override {
    call_plugin(part_.owner, "visit_state", [&] { inner_->visit_state(visit); });
  }
  void forget(const at::Tensor& parameter) override {
    call_plugin(part_.owner, "forget", [&] { inner_->forget(parameter); });
  }
};

class CountedRuleWrapper final : public Counted<UpdateRuleWrapper> {
 public:
  using Counted::Counted;
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    auto rule = call_plugin(part_.owner, "wrap", [&] {
      auto wrapped = inner_->wrap(std::move(inner));
      if (wrapped == nullptr) throw std::logic_error("wrap returned null");
      return wrapped;
    });
    return std::make_shared<CountedRule>(std::move(rule), part_);
  }
};

class CountedSchedule final : public Counted<Schedule> {
 public:
  using Counted::Counted;
  void prepare(Training& training) override {
    call_plugin(part_.owner, "prepare", [&] { inner_->prepare(training); });
  }
  void after_backward(Training& training) override {
    count(part_, "after_backward", [&] { inner_->after_backward(training); });
  }
  KernelGrouping default_grouping() const override { return inner_->default_grouping(); }
};

class CountedLossHead final : public Counted<LossHead> {
 public:
  using Counted::Counted;
  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    return count(part_, "loss", [&] { return inner_->loss(model, hidden_states, batch); });
  }
};

class CountedContext final : public Counted<StepContext> {
 public:
  using Counted::Counted;
  std::shared_ptr<void> enter_step() override {
    return count(part_, "enter_step", [&] { return inner_->enter_step(); });
  }
  std::shared_ptr<void> enter_forward() override {
    return count(part_, "enter_forward", [&] { return inner_->enter_forward(); });
  }
};

class CountedRunner final : public Counted<StepRunner> {
 public:
  // One that replays what it captured calls it until then.
  CountedRunner(std::shared_ptr<StepRunner> inner, Part& part, bool replays)
      : Counted(std::move(inner), part), replays_(replays) {}

  at::Tensor run(Training& training, const ForwardBackward& forward_backward,
                 std::int64_t step) override {
    return count(part_, "StepRunner::run", [&] {
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
    count(part_, "on_step_begin", [&] { inner_->on_step_begin(training, step); });
  }
};

class CountedLossTransform final : public Counted<LossTransform> {
 public:
  using Counted::Counted;
  at::Tensor apply(const at::Tensor& loss) override {
    return count(part_, "LossTransform::apply", [&] {
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
    count(part_, "on_gradient", [&] { inner_->on_gradient(parameter, last); });
  }
};

class CountedGradientTransform final : public Counted<GradientTransform> {
 public:
  using Counted::Counted;
  bool apply(const std::vector<Parameter>& parameters) override {
    const bool updates =
        count(part_, "GradientTransform::apply", [&] { return inner_->apply(parameters); });
    if (!updates) part_.skipped_update = true;
    return updates;
  }
};

class CountedBlockWrapper final : public Counted<BlockWrapper> {
 public:
  CountedBlockWrapper(std::shared_ptr<BlockWrapper> inner, Part& part, Owner model)
      : Counted(std::move(inner), part), model_(std::move(model)) {}
  at::Tensor run(std::size_t index, std::size_t count_of_blocks, const BlockFunction& block,
                 const std::vector<at::Tensor>& inputs) override {
    // What goes wrong inside the block is the model's, although a wrapper runs it. By value: the
    // wrapper may keep the function until backward.
    const BlockFunction named = [block, model = model_](const std::vector<at::Tensor>& x) {
      return call_in_block(model, "block", [&] { return block(x); });
    };
    part_.calls.fetch_add(1, std::memory_order_relaxed);
    return call_in_block(part_.owner, "run",
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
  const Owner& owner_;  // a Part's, which outlives the steps
};

class CountedHooks final : public Counted<SavedTensorHooks> {
 public:
  using Counted::Counted;
  // A tensor that is left to others is no use of the hooks.
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, bool is_weight) override {
    auto saved = call_plugin(part_.owner, "pack", [&] { return inner_->pack(tensor, is_weight); });
    if (saved == nullptr) return nullptr;
    part_.calls.fetch_add(1, std::memory_order_relaxed);
    return std::make_shared<NamedSavedTensor>(std::move(saved), part_.owner);
  }
};

template <typename CountedKind, typename Interface>
void replace_slot(std::shared_ptr<Interface>& slot, RecipeParts& parts, const char* name) {
  if (Part* part = parts.slot(name); slot && part)
    slot = std::make_shared<CountedKind>(std::move(slot), *part);
}

template <typename CountedKind, typename Interface>
void replace_wrappers(std::vector<std::shared_ptr<Interface>>& list, RecipeParts& parts,
                      const char* name) {
  for (auto& wrapper : list)
    if (Part* part = parts.wrapper(name, wrapper.get()))
      wrapper = std::make_shared<CountedKind>(std::move(wrapper), *part);
}

template <typename CountedKind, typename Place, typename Interface>
void replace_placed(std::vector<std::pair<Place, std::shared_ptr<Interface>>>& list,
                    RecipeParts& parts, const char* name) {
  for (auto& [place, wrapper] : list)
    if (Part* part = parts.wrapper(name, wrapper.get()))
      wrapper = std::make_shared<CountedKind>(std::move(wrapper), *part);
}

void count_freezing(Recipe& recipe, RecipeParts& parts) {
  for (std::size_t i = 0; i < recipe.freezing.size(); ++i) {
    Part* part = parts.freezing(i);
    if (part == nullptr) continue;
    recipe.freezing[i] = [inner = std::move(recipe.freezing[i]), part](const Parameter& parameter) {
      const bool frozen = call_plugin(part->owner, "freezing", [&] { return inner(parameter); });
      if (frozen) part->calls.fetch_add(1, std::memory_order_relaxed);
      return frozen;
    };
  }
}

}  // namespace

Recipe counted(Recipe recipe, RecipeParts& parts, const Owner& model) {
  replace_slot<CountedTransform>(recipe.base_weights, parts, "base_weights");
  replace_slot<CountedTransform>(recipe.adapters, parts, "adapters");
  replace_slot<CountedRule>(recipe.update_rule, parts, "update_rule");
  replace_slot<CountedSchedule>(recipe.schedule, parts, "schedule");
  replace_slot<CountedLossHead>(recipe.loss_head, parts, "loss_head");
  if (Part* part = parts.slot("step_runner"); recipe.step_runner && part)
    recipe.step_runner = std::make_shared<CountedRunner>(
        std::move(recipe.step_runner), *part, parts.has_capability(part->owner, "replays_steps"));
  replace_wrappers<CountedHooks>(recipe.saved_tensor_hooks, parts, "saved_tensor_hooks");
  replace_wrappers<CountedContext>(recipe.step_contexts, parts, "step_contexts");
  replace_wrappers<CountedGradientTransform>(recipe.gradient_transforms, parts,
                                             "gradient_transforms");
  replace_wrappers<CountedListener>(recipe.step_listeners, parts, "step_listeners");
  replace_wrappers<CountedLossTransform>(recipe.loss_transforms, parts, "loss_transforms");
  replace_placed<CountedGradientHook>(recipe.gradient_hooks, parts, "gradient_hooks");
  replace_placed<CountedRuleWrapper>(recipe.update_rule_wrappers, parts, "update_rule_wrappers");
  for (auto& [place, wrapper] : recipe.block_wrappers)
    if (Part* part = parts.wrapper("block_wrappers", wrapper.get()))
      wrapper = std::make_shared<CountedBlockWrapper>(std::move(wrapper), *part, model);
  count_freezing(recipe, parts);
  return recipe;
}

}  // namespace peakbench::worker
