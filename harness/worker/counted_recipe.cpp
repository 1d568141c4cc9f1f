#include "worker/counted_recipe.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "worker/counting.h"
#include "worker/losses.h"
#include "worker/progress.h"
#include "worker/recipe_members.h"

namespace peakbench::worker {
namespace {

class NamedSavedTensor final : public SavedTensor {
 public:
  NamedSavedTensor(std::shared_ptr<SavedTensor> inner, const Owner& owner)
      : inner_(std::move(inner)), owner_(owner) {}
  at::Tensor unpack() override {
    return call_plugin(owner_, "unpack", [&] { return inner_->unpack(); });
  }
  void visit_held(const HeldVisitor& visit) override {
    call_plugin(owner_, "visit_held", [&] { inner_->visit_held(visit); });
  }

 private:
  std::shared_ptr<SavedTensor> inner_;
  const Owner& owner_;  // a Contribution's, which outlives the steps
};

// Whether a runner asked for any, and kept its word on which is the last.
class NotedPasses final : public Passes {
 public:
  explicit NotedPasses(Passes& inner) : inner_(inner) {}
  at::Tensor forward(bool grad, const PassOptions& options) override {
    note(options);
    return call_of_nobody([&] { return inner_.forward(grad, options); });
  }
  void backward(const at::Tensor& loss) override {
    call_of_nobody([&] { inner_.backward(loss); });
  }
  at::Tensor forward_backward(const PassOptions& options) override {
    note(options);
    return call_of_nobody([&] { return inner_.forward_backward(options); });
  }
  bool asked() const { return asked_; }
  bool owes_another() const { return owes_another_; }

 private:
  void note(const PassOptions& options) {
    asked_ = true;
    owes_another_ = !options.last;
  }

  Passes& inner_;
  bool asked_ = false, owes_another_ = false;
};

}  // namespace

template <>
class Counting<LossHead> final : public Forwarding<LossHead> {
 public:
  using Forwarding::Forwarding;
  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    const SamplesSeen seen(hidden_states);
    auto loss = count(contribution_, "loss",
                      [&] { return scalar(inner_->loss(model, hidden_states, batch)); });
    if (hidden_states.dim() > 0 && hidden_states.size(0) == batch.input.size(0))
      need_all(seen.in(loss), hidden_states.size(0));
    return loss;
  }

 private:
  void need_all(std::int64_t seen, std::int64_t samples) {
    if (seen >= samples) return;
    around_.contributions.note_unlike_baseline(
        contribution_.owner, "makes its loss of " + std::to_string(seen) + " of " +
                                 std::to_string(samples) + " samples");
  }
};

template <>
class Counting<BlockWrapper> final : public Forwarding<BlockWrapper> {
 public:
  using Forwarding::Forwarding;
  std::vector<std::string> parts() const override {
    return call_plugin(contribution_.owner, "parts", [&] { return inner_->parts(); });
  }
  std::vector<at::Tensor> run(std::size_t index, std::size_t blocks, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    return watched({index, ""}, block, inputs, [&](const BlockFunction& named) {
      return inner_->run(index, blocks, named, inputs);
    });
  }
  std::vector<at::Tensor> run_part(const std::string& part, std::size_t index, std::size_t blocks,
                                   const BlockFunction& function,
                                   const std::vector<at::Tensor>& inputs) override {
    return watched({index, part}, function, inputs, [&](const BlockFunction& named) {
      return inner_->run_part(part, index, blocks, named, inputs);
    });
  }

 private:
  using Place = std::pair<std::size_t, std::string>;  // a block, and a part of it or none

  template <typename Run>
  std::vector<at::Tensor> watched(const Place& place, const BlockFunction& block,
                                  const std::vector<at::Tensor>& inputs, Run&& run) {
    // What goes wrong inside the block is the model's, although a wrapper runs it. By value: the
    // wrapper may keep the function until backward.
    const auto runs = std::make_shared<BlockRuns>(inputs, place.second);
    const BlockFunction named = [block, runs, model = around_.model,
                                 &owner = contribution_.owner](const std::vector<at::Tensor>& x) {
      runs->note(x);
      return given_by(
          owner, "run", model, [&] { return runs->unlike(x); },
          [&] { return call_in_block(model, "block", [&] { return block(x); }); });
    };
    contribution_.calls.fetch_add(1, std::memory_order_relaxed);
    auto outputs = call_in_block(contribution_.owner, "run", [&] {
      auto given = run(named);
      need_tensors(given);
      return given;
    });
    runs->end();
    if (runs->left_out()) contribution_.left_block_out = true;
    if (met_.insert(place).second) need_all(*runs, place.first);
    if (at::GradMode::is_enabled() && trained_.insert(place).second)
      around_.contributions.watch(contribution_.owner, place.first, runs);
    return outputs;
  }

  static void need_tensors(const std::vector<at::Tensor>& outputs) {
    const auto defined = [](const at::Tensor& one) { return one.defined(); };
    if (outputs.empty() || !std::ranges::all_of(outputs, defined))
      throw std::logic_error("it must return what the block would: one tensor at least");
  }
  // The first time alone: later ones may be in backward, or replay what was captured.
  void need_all(const BlockRuns& runs, std::size_t index) {
    if (const auto missing = runs.missing(index); !missing.empty())
      around_.contributions.note_unlike_baseline(contribution_.owner, missing);
  }

  std::set<Place> met_, trained_;
};

template <>
class Counting<ModelTransform> final : public Forwarding<ModelTransform> {
 public:
  using Forwarding::Forwarding;
  void apply(Model& model) override {
    std::set<std::string> before;
    for (const auto& item : model.module().named_modules()) before.insert(item.key());
    count(contribution_, "ModelTransform::apply", [&] { inner_->apply(model); });
    for (const auto& item : model.module().named_modules())
      if (!before.contains(item.key())) note_new(item.key());
  }

 private:
  // What runs inside a layer is the layer's module to the tracer, whoever put it there.
  void note_new(const std::string& path) const {
    note_changed_module(path, contribution_.owner.id);
    note_changed_module(path.substr(0, path.rfind('.')), contribution_.owner.id);
  }
};

template <>
class Counting<UpdateRule> final : public Forwarding<UpdateRule> {
 public:
  // `given`: the rule inside, of one that a wrapper made.
  Counting(std::shared_ptr<UpdateRule> inner, Contribution& contribution,
           const Surroundings& around, std::shared_ptr<GivenRule> given = nullptr)
      : Forwarding(std::move(inner), contribution, around), given_(std::move(given)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (given_) given_->begin(parameters);
    try {
      count_update(contribution_, "update", parameters,
                   [&] { inner_->update(parameters, grouping); });
    } catch (const PluginFailure&) {
      if (given_) given_->end();
      blame_gradient(parameters);
    }
    if (given_) given_->end();
  }
  void visit_state(const StateVisitor& visit) override {
    call_plugin(contribution_.owner, "visit_state", [&] { inner_->visit_state(visit); });
  }
  void forget(const at::Tensor& parameter) override {
    call_plugin(contribution_.owner, "forget", [&] { inner_->forget(parameter); });
  }

 private:
  // Rethrows: as a failure of whoever left a gradient that no rule can take.
  [[noreturn]] void blame_gradient(const std::vector<Parameter>& parameters) const {
    for (const Parameter& one : parameters) {
      const Call giver = gradient_fits(one) ? Call{} : around_.contributions.who_left_misfit(one);
      if (giver.owner == nullptr) continue;
      given_by(
          *giver.owner, giver.name, contribution_.owner, [&] { return misfit_in_words(one); },
          [] { throw; });
    }
    throw;
  }

  std::shared_ptr<GivenRule> given_;
};

template <>
class Counting<UpdateRuleWrapper> final : public Forwarding<UpdateRuleWrapper> {
 public:
  using Forwarding::Forwarding;
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    const Owner& rule_owner = around_.contributions.slot("update_rule")->owner;
    const auto given =
        std::make_shared<GivenRule>(std::move(inner), contribution_.owner, rule_owner,
                                    rule_owner.id == around_.contributions.baseline());
    auto rule = call_plugin(contribution_.owner, "wrap", [&] {
      auto wrapped = inner_->wrap(given);
      if (wrapped == nullptr) throw std::logic_error("wrap returned null");
      return wrapped;
    });
    return std::make_shared<Counting<UpdateRule>>(std::move(rule), contribution_, around_, given);
  }
};

template <>
class Counting<Schedule> final : public Forwarding<Schedule> {
 public:
  using Forwarding::Forwarding;
  void prepare(Training& training) override {
    call_plugin(contribution_.owner, "prepare", [&] { inner_->prepare(training); });
  }
  void after_backward(Training& training) override {
    count(contribution_, "after_backward", [&] { inner_->after_backward(training); });
  }
  KernelGrouping default_grouping() const override { return inner_->default_grouping(); }
};

template <>
class Counting<StepContext> final : public Forwarding<StepContext> {
 public:
  using Forwarding::Forwarding;
  std::shared_ptr<void> enter_step() override {
    return count(contribution_, "enter_step", [&] { return inner_->enter_step(); });
  }
  std::shared_ptr<void> enter_forward(const Pass& pass) override {
    return count(contribution_, "enter_forward", [&] { return inner_->enter_forward(pass); });
  }
};

template <>
class Counting<StepRunner> final : public Forwarding<StepRunner> {
 public:
  using Forwarding::Forwarding;
  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    return count(contribution_, "StepRunner::run", [&] {
      NotedPasses noted(passes);
      auto loss = inner_->run(training, noted, step);
      asked_before_ = asked_before_ || noted.asked();
      // One that replays what it captured asks for passes until then.
      const bool replays = asked_before_ && around_.contributions.has_capability(
                                                contribution_.owner, "replays_steps");
      if (!(noted.asked() || replays) || !loss.defined())
        throw std::logic_error("it must ask for a pass, and return a loss");
      if (noted.owes_another())
        throw std::logic_error("its last pass of the step was asked for with {.last = false}");
      return loss;
    });
  }

 private:
  bool asked_before_ = false;
};

template <>
class Counting<StepListener> final : public Forwarding<StepListener> {
 public:
  using Forwarding::Forwarding;
  void on_step_begin(Training& training, std::int64_t step) override {
    count(contribution_, "on_step_begin", [&] { inner_->on_step_begin(training, step); });
  }
};

template <>
class Counting<LossTransform> final : public Forwarding<LossTransform> {
 public:
  using Forwarding::Forwarding;
  at::Tensor apply(const at::Tensor& loss, const Pass& pass) override {
    return count(contribution_, "LossTransform::apply", [&] {
      auto transformed = inner_->apply(loss, pass);
      if (!transformed.defined() || transformed.dim() != 0)
        throw std::logic_error("it must return a scalar tensor");
      return transformed;
    });
  }
};

template <>
class Counting<EmbeddingWrapper> final : public Forwarding<EmbeddingWrapper> {
 public:
  using Forwarding::Forwarding;
  at::Tensor run(const EmbedFunction& embed, const Batch& batch) override {
    return count(contribution_, "EmbeddingWrapper::run", [&] {
      auto embedded = inner_->run(embed, batch);
      if (!embedded.defined()) throw std::logic_error("it must return the embeddings");
      return embedded;
    });
  }
  at::Tensor target(const at::Tensor& target) override {
    return call_plugin(contribution_.owner, "target", [&] { return inner_->target(target); });
  }
};

template <>
class Counting<GradientHook> final : public Forwarding<GradientHook> {
 public:
  using Forwarding::Forwarding;
  void on_gradient(const Parameter& parameter, const Pass& pass) override {
    count(contribution_, "on_gradient", [&] { inner_->on_gradient(parameter, pass); });
    if (!gradient_fits(parameter))
      around_.contributions.note_misfit(parameter, contribution_.owner, "on_gradient");
  }
};

template <>
class Counting<GradientTransform> final : public Forwarding<GradientTransform> {
 public:
  using Forwarding::Forwarding;
  bool apply(const std::vector<Parameter>& parameters) override {
    const bool updates = count_update(contribution_, "GradientTransform::apply", parameters,
                                      [&] { return inner_->apply(parameters); });
    if (!updates) contribution_.skipped_update = true;
    for (const Parameter& one : parameters)
      if (!gradient_fits(one))
        around_.contributions.note_misfit(one, contribution_.owner, "GradientTransform::apply");
    return updates;
  }
};

template <>
class Counting<SavedTensorHooks> final : public Forwarding<SavedTensorHooks> {
 public:
  using Forwarding::Forwarding;
  // A tensor that is left to others is no use of the hooks.
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override {
    auto saved =
        call_plugin(contribution_.owner, "pack", [&] { return inner_->pack(tensor, facts); });
    if (saved == nullptr) return nullptr;
    contribution_.calls.fetch_add(1, std::memory_order_relaxed);
    return std::make_shared<NamedSavedTensor>(std::move(saved), contribution_.owner);
  }
  bool asks_where() const override { return inner_->asks_where(); }
};

namespace {

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
  const Surroundings around{contributions, model};
  const auto replace = [&](auto& object, Contribution* contribution) {
    using Object = typename std::decay_t<decltype(object)>::element_type;
    if (object && contribution != nullptr)
      object = std::make_shared<Counting<Object>>(std::move(object), *contribution, around);
  };
  for_each_slot([&](const char* name, auto member) {
    auto& slot = recipe.*member;
    if constexpr (kHoldsObject<std::decay_t<decltype(slot)>>)
      replace(slot, contributions.slot(name));
  });
  for_each_wrapper_list([&](const char* name, auto member) {
    for (auto& entry : recipe.*member) {
      auto& object = object_of(entry);
      replace(object, contributions.wrapper(name, object.get()));
    }
  });
  count_freezing(recipe, contributions);
  return recipe;
}

}  // namespace peakbench::worker
