// Strategies that each do one thing that the worker must notice, or must carry out to the number.
// tests/worker/worker_test.py says which and what is expected.
#include <ATen/ATen.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

[[noreturn]] void raise() { throw std::runtime_error("on purpose"); }

struct NeverSteps : Schedule {
  void after_backward(Training&) override {}
};

struct UpdatesNothing : Schedule {
  void after_backward(Training& training) override { training.update({}); }
};

struct IdleRule : UpdateRule {
  void update(const std::vector<Parameter>&, KernelGrouping) override {}
  void visit_state(const StateVisitor&) override {}
  void forget(const at::Tensor&) override {}
};

struct ThrowingRule : IdleRule {
  explicit ThrowingRule(std::string what) : what_(std::move(what)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    for (const auto& [name, parameter] : parameters)
      if (parameter.grad().defined()) parameter.add_(parameter.grad(), -1e-3);
    if (++calls_ < 2) return;
    if (what_ == "throw-update") raise();
    if (what_ == "throw-number") throw 42;
    parameters.front().tensor.view({7, -1});  // LibTorch's own error
  }

 private:
  std::string what_;
  int calls_ = 0;
};

struct Prepares : Schedule {
  explicit Prepares(std::string what) : what_(std::move(what)) {}
  void prepare(Training& training) override {
    if (what_ == "throw-prepare") raise();
    if (what_ == "empty-hook") training.on_gradient(nullptr);
    if (what_ == "throw-hook")
      training.on_gradient([](const Parameter& parameter, const Pass&) {
        if (parameter.name == "heads.head.weight") raise();
      });
    if (what_ == "secret-updates")
      training.on_gradient(
          [&training](const Parameter& parameter, const Pass&) { training.update({parameter}); });
  }
  void after_backward(Training& training) override {
    if (what_ == "throw-schedule") raise();
    training.update_all();
  }

 private:
  std::string what_;
};

struct Counts {
  int contexts = 0, forwards = 0, packs = 0, transforms = 0, updates = 0, runs = 0, begins = 0,
      losses = 0, gradients = 0, complete = 0;
};
Counts counts;

struct Context : StepContext {
  std::shared_ptr<void> enter_step() override {
    ++counts.contexts;
    return std::make_shared<int>(0);
  }
  std::shared_ptr<void> enter_forward(const Pass&) override {
    ++counts.forwards;
    return std::make_shared<int>(0);
  }
};

struct Keep : SavedTensor {
  explicit Keep(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor unpack() override { return tensor_; }
  at::Tensor tensor_;
};

struct Hooks : SavedTensorHooks {
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override {
    if (facts.is_weight) return nullptr;
    ++counts.packs;
    return std::make_shared<Keep>(tensor);
  }
};

struct Transform : GradientTransform {
  bool apply(const std::vector<Parameter>&) override {
    ++counts.transforms;
    return true;
  }
};

// A rule that hands everything on to another, and what makes one around it.
struct AroundRule : UpdateRule {
  explicit AroundRule(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    ++counts.updates;
    inner_->update(parameters, grouping);
  }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }
  std::shared_ptr<UpdateRule> inner_;
};

struct Around : UpdateRuleWrapper {
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<AroundRule>(std::move(inner));
  }
};

struct Listener : StepListener {
  void on_step_begin(Training&, std::int64_t step) override {
    counts.begins += step == counts.begins;
  }
};

struct LossAsItIs : LossTransform {
  at::Tensor apply(const at::Tensor& loss, const Pass&) override {
    ++counts.losses;
    return loss * 1.0;
  }
};

struct SeesGradients : GradientHook {
  void on_gradient(const Parameter& parameter, const Pass& pass) override {
    counts.gradients += parameter.name == "heads.head.weight";
    counts.complete += parameter.name == "heads.head.weight" && pass.last_micro_batch;
  }
};

// Two passes a step, of which the first is forgotten.
struct Twice : StepRunner {
  at::Tensor run(Training& training, Passes& passes, std::int64_t) override {
    passes.forward_backward({.last = false});
    for (const Parameter& parameter : training.parameters())
      parameter.tensor.mutable_grad().reset();
    return passes.forward_backward();
  }
};

struct RunsNothing : StepRunner {
  at::Tensor run(Training&, Passes&, std::int64_t) override { return at::zeros({}); }
};
struct ThrowingRunner : StepRunner {
  at::Tensor run(Training&, Passes&, std::int64_t) override { raise(); }
};
struct ThrowingListener : StepListener {
  void on_step_begin(Training&, std::int64_t) override { raise(); }
};
struct ThrowingLossTransform : LossTransform {
  at::Tensor apply(const at::Tensor&, const Pass&) override { raise(); }
};
struct VectorLoss : LossTransform {
  at::Tensor apply(const at::Tensor& loss, const Pass&) override { return loss.expand({2}); }
};
struct ThrowingHook : GradientHook {
  void on_gradient(const Parameter& parameter, const Pass&) override {
    if (parameter.name == "heads.head.weight") raise();
  }
};
struct NullWrap : UpdateRuleWrapper {
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule>) override { return nullptr; }
};
// Trains the head and the rest in turns, and forgets what it leaves.
struct Alternates : StepListener {
  void on_step_begin(Training& training, std::int64_t step) override {
    for (const Parameter& parameter : training.parameters()) {
      const bool is_head = parameter.name.starts_with("heads.");
      const bool trains = is_head == (step % 2 == 0);
      training.set_trainable(parameter, trains);
      if (!trains) training.forget(parameter);
    }
  }
};

struct Blocks : BlockWrapper {
  std::vector<at::Tensor> run(std::size_t, std::size_t, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    ++counts.runs;
    return block(inputs);
  }
};

// Tells the counts when the worker's last step is over: stderr goes to worker.log.
struct Telling : Schedule {
  explicit Telling(std::int64_t steps) : steps_(steps) {}
  void after_backward(Training& training) override {
    training.update_all();
    if (++step_ < steps_) return;
    std::fprintf(stderr,
                 "contexts %d forwards %d packs %d transforms %d updates %d runs %d begins %d "
                 "losses %d gradients %d complete %d\n",
                 counts.contexts, counts.forwards, counts.packs > 0, counts.transforms,
                 counts.updates, counts.runs, counts.begins, counts.losses, counts.gradients,
                 counts.complete);
  }
  std::int64_t steps_, step_ = 0;
};

struct ThrowingContext : StepContext {
  std::shared_ptr<void> enter_forward(const Pass&) override { raise(); }
};
struct ThrowingPack : SavedTensorHooks {
  std::shared_ptr<SavedTensor> pack(const at::Tensor&, const SavedTensorFacts&) override {
    raise();
  }
};
struct NullPack : SavedTensorHooks {
  std::shared_ptr<SavedTensor> pack(const at::Tensor&, const SavedTensorFacts&) override {
    return nullptr;
  }
};
struct ThrowingUnpack : SavedTensorHooks {
  struct Saved : SavedTensor {
    at::Tensor unpack() override { raise(); }
  };
  std::shared_ptr<SavedTensor> pack(const at::Tensor&, const SavedTensorFacts&) override {
    return std::make_shared<Saved>();
  }
};
struct ThrowingTransform : GradientTransform {
  bool apply(const std::vector<Parameter>&) override { raise(); }
};
struct ThrowingAround : UpdateRuleWrapper {
  struct Rule : AroundRule {
    using AroundRule::AroundRule;
    void update(const std::vector<Parameter>&, KernelGrouping) override { raise(); }
  };
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Rule>(std::move(inner));
  }
};
struct ThrowingBlocks : BlockWrapper {
  std::vector<at::Tensor> run(std::size_t index, std::size_t, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    if (index == 1) raise();
    return block(inputs);
  }
};
// Hands the model's block something that it cannot take.
struct WrongInput : BlockWrapper {
  std::vector<at::Tensor> run(std::size_t, std::size_t, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    return block({inputs.front().slice(-1, 0, 7)});
  }
};
struct ThrowingHead : LossHead {
  at::Tensor loss(Model&, const at::Tensor&, const Batch&) override { raise(); }
};
// Takes weights as they lie there, without asking for them.
struct TakesWeights : ModelTransform {
  struct Taken : nn::LinearWeight {
    explicit Taken(const at::Tensor& weight) {
      weight_ = register_buffer("taken", weight.detach());
    }
    at::Tensor linear(const at::Tensor& x, const at::Tensor& bias) override {
      return at::linear(x, weight_, bias);
    }
    at::Tensor dense() override { return weight_; }
    at::Tensor weight_;
  };
  void apply(Model& model) override {
    for (const NamedLinear& linear : model.linears())
      linear.layer->replace_weight(std::make_shared<Taken>(linear.layer->weight));
  }
};
struct ThrowingTransformOfModel : ModelTransform {
  void apply(Model&) override { raise(); }
};
// As loss scaling does where a gradient is infinite.
struct Skips : GradientTransform {
  explicit Skips(std::int64_t steps) : steps_(steps) {}
  bool apply(const std::vector<Parameter>&) override { return ++step_ > steps_; }
  std::int64_t steps_, step_ = 0;
};
// Puts another tensor in every gradient's place.
struct Replaces : GradientTransform {
  bool apply(const std::vector<Parameter>& parameters) override {
    for (const Parameter& parameter : parameters)
      parameter.tensor.mutable_grad() = parameter.tensor.grad() * 0.5;
    return true;
  }
};

struct NanLoss : LossHead {
  at::Tensor loss(Model& model, const at::Tensor& hidden, const Batch& batch) override {
    return model.loss(hidden, batch) * std::numeric_limits<double>::quiet_NaN();
  }
};

// Changes parameters after the update of the last step.
class ChangesAtTheEnd : public Schedule {
 public:
  ChangesAtTheEnd(std::string how, std::int64_t steps) : how_(std::move(how)), steps_(steps) {}

  void after_backward(Training& training) override {
    training.update_all();
    if (++step_ < steps_) return;
    for (const Parameter& parameter : training.parameters()) {
      float* values = parameter.tensor.data_ptr<float>();
      if (parameter.name == "heads.head.weight") change(values, parameter.tensor.numel());
      // A finite difference after what is not a number must not hide it.
      const bool after = parameter.name == "heads.head.bias";
      if (after && (how_ == "nan" || how_ == "infinite")) values[0] += 0x1p-20F;
    }
  }

 private:
  static constexpr float kTolerance = 0x1p-10F;

  void change(float* values, std::int64_t count) const {
    if (how_ == "nan") values[3] = std::numeric_limits<float>::quiet_NaN();
    if (how_ == "infinite") values[3] = std::numeric_limits<float>::infinity();
    if (how_ == "flipped-bit") values[3] = std::nextafter(values[3], 1.0F);
    if (how_ == "exact") add_exactly(values, count, kTolerance);
    if (how_ == "just-over") add_exactly(values, count, kTolerance + 0x1p-20F);
  }

  // To a value that the sum of has no rounding.
  static void add_exactly(float* values, std::int64_t count, float amount) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float sum = values[i] + amount;
      if (static_cast<double>(sum) - values[i] != amount) continue;
      values[i] = sum;
      return;
    }
    throw std::logic_error("no weight to change");
  }

  std::string how_;
  std::int64_t steps_, step_ = 0;
};

// Step i takes at least this long.
struct Sleeps : Schedule {
  void after_backward(Training& training) override {
    training.update_all();
    const bool long_one = ++step_ == 5;
    std::this_thread::sleep_for(std::chrono::milliseconds(long_one ? 600 : 60));
  }
  int step_ = 0;
};

struct Thaws : Schedule {
  explicit Thaws(Model& model) : model_(model) {}
  void after_backward(Training& training) override {
    training.update_all();
    for (const auto& item : model_.module().named_parameters())
      item.value().set_requires_grad(true);
  }
  Model& model_;
};

void schedules(const StrategyContext& context, Recipe& recipe, Model& model) {
  const auto& [id, options] = context;
  if (id == "never-steps") recipe.schedule = std::make_shared<NeverSteps>();
  if (id == "updates-nothing") recipe.schedule = std::make_shared<UpdatesNothing>();
  if (id == "sleeps") recipe.schedule = std::make_shared<Sleeps>();
  if (id == "throw-prepare" || id == "throw-hook" || id == "throw-schedule" || id == "empty-hook" ||
      id == "secret-updates" || id == "same" || id == "unread")
    recipe.schedule = std::make_shared<Prepares>(id);
  if (id == "changes" || id == "changes-within")
    recipe.schedule =
        std::make_shared<ChangesAtTheEnd>(options.string("how"), options.integer("steps"));
  if (id == "thaws") recipe.schedule = std::make_shared<Thaws>(model);
}

void rules(const StrategyContext& context, Recipe& recipe) {
  const auto& [id, options] = context;
  if (id == "idle-rule") recipe.update_rule = std::make_shared<IdleRule>();
  if (id == "throw-update" || id == "throw-number" || id == "libtorch-error")
    recipe.update_rule = std::make_shared<ThrowingRule>(id);
  if (id == "micro") recipe.micro_batches = options.integer("parts");
  if (id == "nan-loss") recipe.loss_head = std::make_shared<NanLoss>();
  if (id == "throw-loss") recipe.loss_head = std::make_shared<ThrowingHead>();
  if (id == "throw-transform-of-model")
    recipe.adapters = std::make_shared<ThrowingTransformOfModel>();
  if (id == "same-grouping") recipe.kernel_grouping = {};
}

void wrappers(const StrategyContext& context, Recipe& recipe) {
  const auto& [id, options] = context;
  if (id == "every-wrapper") {
    recipe.step_contexts.push_back(std::make_shared<Context>());
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload, std::make_shared<Hooks>());
    recipe.gradient_transforms.push_back(std::make_shared<Transform>());
    recipe.update_rule_wrappers.emplace_back(UpdatePlace::kOffload, std::make_shared<Around>());
    recipe.step_listeners.push_back(std::make_shared<Listener>());
    recipe.loss_transforms.push_back(std::make_shared<LossAsItIs>());
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<SeesGradients>());
    recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint, std::make_shared<Blocks>());
    recipe.freezing.push_back([](const Parameter& p) { return p.name == "heads.head.bias"; });
    recipe.schedule = std::make_shared<Telling>(options.integer("steps"));
  }
  if (id == "clip") recipe.gradient_transforms.push_back(std::make_shared<Transform>());
  if (id == "skips")
    recipe.gradient_transforms.push_back(std::make_shared<Skips>(options.integer("steps")));
  if (id == "replaces") recipe.gradient_transforms.push_back(std::make_shared<Replaces>());
  if (id == "freezes-nothing") recipe.freezing.push_back([](const Parameter&) { return false; });
  if (id == "freezes-all") recipe.freezing.push_back([](const Parameter&) { return true; });
  if (id == "throw-freezing") recipe.freezing.push_back([](const Parameter&) -> bool { raise(); });
  if (id == "throw-enter") recipe.step_contexts.push_back(std::make_shared<ThrowingContext>());
  if (id == "throw-pack")
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload,
                                           std::make_shared<ThrowingPack>());
  if (id == "null-pack")
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload,
                                           std::make_shared<NullPack>());
  if (id == "throw-unpack")
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload,
                                           std::make_shared<ThrowingUnpack>());
  if (id == "throw-transform")
    recipe.gradient_transforms.push_back(std::make_shared<ThrowingTransform>());
  if (id == "throw-around")
    recipe.update_rule_wrappers.emplace_back(UpdatePlace::kMaster,
                                             std::make_shared<ThrowingAround>());
  if (id == "null-wrap")
    recipe.update_rule_wrappers.emplace_back(UpdatePlace::kMaster, std::make_shared<NullWrap>());
  if (id == "throw-begin") recipe.step_listeners.push_back(std::make_shared<ThrowingListener>());
  if (id == "alternates") recipe.step_listeners.push_back(std::make_shared<Alternates>());
  if (id == "throw-loss-transform")
    recipe.loss_transforms.push_back(std::make_shared<ThrowingLossTransform>());
  if (id == "vector-loss") recipe.loss_transforms.push_back(std::make_shared<VectorLoss>());
  if (id == "throw-gradient-hook")
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<ThrowingHook>());
  if (id == "takes-weights") recipe.base_weights = std::make_shared<TakesWeights>();
  if (id == "twice") recipe.step_runner = std::make_shared<Twice>();
  if (id == "runs-nothing") recipe.step_runner = std::make_shared<RunsNothing>();
  if (id == "throw-runner") recipe.step_runner = std::make_shared<ThrowingRunner>();
  if (id == "throw-run")
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<ThrowingBlocks>());
  if (id == "wrong-input")
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<WrongInput>());
}

void against_the_manifest(const std::string& id, Recipe& recipe, Model& model) {
  if (id == "secret-slot") recipe.micro_batches = 2;
  if (id == "secret-wrapper") recipe.step_contexts.push_back(std::make_shared<Context>());
  if (id == "clears-rule") recipe.update_rule = nullptr;
  if (id == "clears-schedule") recipe.schedule = nullptr;
  if (id == "null-context") recipe.step_contexts.push_back(nullptr);
  if (id == "null-blocks") recipe.block_wrappers.emplace_back(BlockPlace::kOffload, nullptr);
  if (id == "empty-freezing") recipe.freezing.emplace_back();
  if (id == "removes") recipe.gradient_transforms.clear();
  if (id == "freezes-in-apply")
    model.module().named_parameters()[0].value().set_requires_grad(false);
}

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  if (context.id == "throw-apply") raise();
  schedules(context, recipe, model);
  rules(context, recipe);
  wrappers(context, recipe);
  against_the_manifest(context.id, recipe, model);
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
