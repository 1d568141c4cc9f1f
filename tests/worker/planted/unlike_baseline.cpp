// Strategies that promise the baseline's training and do something else, each in a way that needs
// no value to be seen; and some that train in ways of their own, which are none the worse for it.
// tests/worker/structure_test.py says which.
#include <ATen/ATen.h>

#include <unordered_map>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// Every second of them.
std::vector<Parameter> half_of(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> half;
  for (std::size_t i = 0; i < parameters.size(); i += 2) half.push_back(parameters[i]);
  return half;
}

// A rule around another that hands on some of the parameters, or all of them twice.
struct HandsOn : UpdateRule {
  HandsOn(std::shared_ptr<UpdateRule> inner, bool half, int times)
      : inner_(std::move(inner)), half_(half), times_(times) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    for (int i = 0; i < times_; ++i)
      inner_->update(half_ ? half_of(parameters) : parameters, grouping);
  }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

  std::shared_ptr<UpdateRule> inner_;
  bool half_;
  int times_;
};

struct MakesHandsOn : UpdateRuleWrapper {
  MakesHandsOn(bool half, int times) : half_(half), times_(times) {}
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<HandsOn>(std::move(inner), half_, times_);
  }
  bool half_;
  int times_;
};

struct UpdatesAgain : Schedule {
  void after_backward(Training& training) override {
    training.update_all();
    training.update_all();
  }
};

struct EverySecondStep : Schedule {
  void after_backward(Training& training) override {
    if (step_++ % 2 == 0) training.update_all();
  }
  int step_ = 0;
};

// Some of the gradients are gone before the update.
struct TakesAway : GradientHook {
  void on_gradient(const Parameter& parameter, const Pass&) override {
    if (parameter.name.ends_with("bias")) parameter.tensor.mutable_grad().reset();
  }
};

// The loss of the first half of the samples, or of all of them in two parts.
struct Head : LossHead {
  explicit Head(std::string id) : id_(std::move(id)) {}
  at::Tensor loss(Model& model, const at::Tensor& hidden, const Batch& batch) override {
    const std::int64_t half = hidden.size(0) / 2;
    const auto loss_of = [&](std::int64_t start) {
      const auto part = [&](const at::Tensor& tensor) {
        return tensor.defined() ? tensor.narrow(0, start, half) : tensor;
      };
      return model.loss(part(hidden), {part(batch.input), part(batch.target)});
    };
    if (id_ == "half-of-the-loss") return loss_of(0);
    if (id_ == "loss-in-parts") return loss_of(0) + loss_of(half);
    if (id_ == "picks-samples") {
      const at::Tensor chosen = at::arange(half, batch.input.options().dtype(at::kLong));
      return model.loss(hidden.index_select(0, chosen), batch);
    }
    return model.loss(hidden.detach(), batch);  // detached
  }
  std::string id_;
};

struct Blocks : BlockWrapper {
  explicit Blocks(std::string id) : id_(std::move(id)) {}
  std::vector<at::Tensor> run(std::size_t index, std::size_t, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    const at::Tensor& x = inputs.front();
    const auto part = [&](std::int64_t start) {
      auto parts = inputs;
      parts.front() = x.narrow(0, start, x.size(0) / 2);
      return block(parts).at(0);
    };
    if (id_ == "leaves-out" && index == 1) return {x};
    if (id_ == "half-of-a-block" && index == 1) {
      const at::Tensor first = part(0);
      return {at::cat({first, first})};
    }
    if (id_ == "cuts-graph" && index == 1) return block({x.detach()});
    if (id_ == "cuts-graph-later" && index == 1 && ++steps_ > 1) return block({x.detach()});
    if (id_ == "no-autograd" && index == 0) {
      const at::NoGradGuard no_grad;
      return block(inputs);
    }
    if (id_ == "half-without-autograd") {
      const at::Tensor first = part(0);
      const at::NoGradGuard no_grad;
      const at::Tensor second = part(x.size(0) / 2);
      const at::AutoGradMode grad(true);
      return {at::cat({first, second})};
    }
    if (id_ == "block-in-parts") return {at::cat({part(0), part(x.size(0) / 2)})};
    return block(inputs);
  }
  std::string id_;
  int steps_ = 0;
};

// The same of a part: an MLP, of which each position is by itself. x: (B, T, C)
struct Mlps : BlockWrapper {
  explicit Mlps(std::string id) : id_(std::move(id)) {}
  std::vector<std::string> parts() const override { return {"mlp"}; }
  std::vector<at::Tensor> run(std::size_t index, std::size_t, const BlockFunction& mlp,
                              const std::vector<at::Tensor>& inputs) override {
    const at::Tensor& x = inputs.front();
    const auto tile = [&](std::int64_t begin, std::int64_t end) {
      return mlp({x.slice(1, begin, end)}).at(0);
    };
    if (id_ == "leaves-mlp-out" && index == 1) return inputs;
    if (id_ == "half-of-an-mlp" && index == 1) return {at::cat({tile(0, 2), x.slice(1, 2)}, 1)};
    if (id_ == "mlp-in-tiles") return {at::cat({tile(0, 2), tile(2, 4), tile(4, x.size(1))}, 1)};
    return mlp(inputs);
  }
  std::string id_;
};

// Two passes whose gradients add up.
struct AddsUp : StepRunner {
  at::Tensor run(Training&, Passes& passes, std::int64_t) override {
    passes.forward_backward({.last = false});
    return passes.forward_backward();
  }
};

struct Pauses : StepListener {
  void on_step_begin(Training& training, std::int64_t step) override {
    if (step == 0) training.set_trainable(training.parameters().front(), false);
  }
};

// Plain descent, with what has no version counter of the parameter's own, or only from the second
// update on (as SOAP, whose first step prepares its bases).
struct Rule : UpdateRule {
  explicit Rule(std::string id) : id_(std::move(id)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    const bool prepares = id_ == "prepares-first" && updates_++ == 0;
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined() || prepares) continue;
      if (id_ == "through-data")
        parameter.data().add_(parameter.grad(), -1e-3);
      else
        parameter.add_(parameter.grad(), -1e-3);
    }
  }
  void visit_state(const StateVisitor&) override {}
  void forget(const at::Tensor&) override {}

  std::string id_;
  int updates_ = 0;
};

// MeZO (https://arxiv.org/abs/2305.17333): two forwards, and the runner moves the parameters
// itself.
struct Mezo : StepRunner {
  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    constexpr double kEps = 1e-3;
    move(training, step, kEps);
    const at::Tensor up = passes.forward(false, {.last = false});
    move(training, step, -2 * kEps);
    const at::Tensor down = passes.forward(false);
    move(training, step, kEps);
    move(training, step, -1e-6);  // a fixed size: nothing is read back
    return up + (down - down);
  }

 private:
  static void move(Training& training, std::int64_t step, double by) {
    at::NoGradGuard no_grad;
    auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
    for (const Parameter& parameter : training.parameters()) {
      const at::Tensor z = at::randn(parameter.tensor.sizes(), generator, at::kFloat);
      parameter.tensor.add_(z.to(parameter.tensor.options()), by);
    }
  }
};

// Takes every gradient as backward has it, and updates from what it kept.
struct Kept {
  std::unordered_map<const at::TensorImpl*, at::Tensor> signs;
};
struct KeepsSigns : GradientHook {
  explicit KeepsSigns(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}
  void on_gradient(const Parameter& parameter, const Pass&) override {
    kept_->signs[parameter.tensor.unsafeGetTensorImpl()] = parameter.tensor.grad().sign();
    parameter.tensor.mutable_grad().reset();
  }
  std::shared_ptr<Kept> kept_;
};
struct FromSigns : UpdateRule {
  explicit FromSigns(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    for (const auto& [name, parameter] : parameters)
      parameter.add_(kept_->signs.at(parameter.unsafeGetTensorImpl()), -1e-3);
  }
  void visit_state(const StateVisitor&) override {}
  void forget(const at::Tensor&) override {}
  std::shared_ptr<Kept> kept_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const std::string& id = context.id;
  const auto around = [&](bool half, int times) {
    recipe.update_rule_wrappers.emplace_back(UpdatePlace::kMaster,
                                             std::make_shared<MakesHandsOn>(half, times));
  };
  if (id == "half-of-the-parameters") around(true, 1);
  if (id == "rule-twice") around(false, 2);
  if (id == "updates-again") recipe.schedule = std::make_shared<UpdatesAgain>();
  if (id == "every-second-step") recipe.schedule = std::make_shared<EverySecondStep>();
  if (id == "takes-gradients-away")
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<TakesAway>());
  if (id == "half-of-the-loss" || id == "loss-in-parts" || id == "picks-samples" ||
      id == "detached")
    recipe.loss_head = std::make_shared<Head>(id);
  if (id == "leaves-out" || id == "half-of-a-block" || id == "block-in-parts" ||
      id.starts_with("cuts-graph") || id == "no-autograd" || id == "half-without-autograd")
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<Blocks>(id));
  if (id == "leaves-mlp-out" || id == "half-of-an-mlp" || id == "mlp-in-tiles")
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<Mlps>(id));
  if (id == "adds-up") recipe.step_runner = std::make_shared<AddsUp>();
  if (id == "pauses") recipe.step_listeners.push_back(std::make_shared<Pauses>());
  if (id == "freezes-some")
    recipe.freezing.emplace_back([](const Parameter& one) { return one.name.ends_with("bias"); });
  if (id == "through-data" || id == "prepares-first")
    recipe.update_rule = std::make_shared<Rule>(id);
  if (id == "mezo") recipe.step_runner = std::make_shared<Mezo>();
  if (id == "keeps-signs") {
    const auto kept = std::make_shared<Kept>();
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<KeepsSigns>(kept));
    recipe.update_rule = std::make_shared<FromSigns>(kept);
  }
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
