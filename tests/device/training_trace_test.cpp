// Training steps under the recorder: what becomes of optimizer state that moves, of a second
// forward and backward, and of a step that runs out of memory. One 4 x 4 layer: every byte has a
// closed form.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "peakbench/nn.h"
#include "recording/cpu_allocator.h"
#include "recording/operator_labels.h"
#include "recording/recorder.h"
#include "trace/lifetimes.h"
#include "trace/summary.h"
#include "trace/timeline.h"
#include "worker/recipe_training.h"
#include "worker/setup.h"

namespace peakbench::worker {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;
using trace::Category;
using trace::Phase;

constexpr std::int64_t kWeight = 4 * 4 * 4, kHidden = 2 * 4 * 4, kScalar = 4;
constexpr std::int64_t kLimit = 1 << 20;

// loss = sum(relu(x W^T)); x: (2, 4), W: (4, 4), both fp32.
class OneLayer final : public Model {
 public:
  OneLayer() {
    linear_ = module_.register_module(
        "linear", std::make_shared<nn::Linear>(4, 4, /*bias=*/false, at::kFloat));
    linear_->weight.detach().fill_(1);
  }
  torch::nn::Module& module() override { return module_; }
  Batch make_batch(const BatchShape&) override { return {at::ones({2, 4}), {}}; }
  at::Tensor hidden_states(const Batch& batch) override {
    ModuleScope scope(module_);
    return linear_->forward(batch.input).relu();
  }
  at::Tensor loss(at::Tensor hidden, const Batch&) override { return hidden.sum(); }
  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  std::vector<NamedLinear> linears() override { return {}; }
  std::vector<std::string> block_paths() const override { return {}; }

 private:
  torch::nn::Module module_;
  std::shared_ptr<nn::Linear> linear_;
};

class Momentum final : public UpdateRule {
 public:
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    parameter_ = parameters.at(0).tensor;
    if (!parameter_.grad().defined()) return;
    if (!state.defined()) state = at::zeros({4, 4});
    const at::Tensor scratch = at::zeros({8});
    if (asks_for > 0) at::empty({asks_for}, at::kByte);
    state.add_(parameter_.grad());
    parameter_.sub_(state);
  }
  void forget(const at::Tensor&) override { state.reset(); }
  void visit_state(const StateVisitor& visit) override {
    if (state.defined()) visit(parameter_, "momentum", state);
  }

  at::Tensor state;
  std::int64_t asks_for = 0;

 private:
  at::Tensor parameter_;
};

class AfterBackward : public Schedule {
 public:
  void after_backward(Training& training) override { training.update_all(); }
};

// Runs a second forward and backward by itself, of which the worker is told nothing.
class PassesOfItsOwn final : public Schedule {
 public:
  explicit PassesOfItsOwn(OneLayer& model) : model_(model) {}
  void after_backward(Training& training) override {
    const Parameter& weight = training.parameters().at(0);
    const Batch batch = model_.make_batch({});
    at::Tensor perturbation;
    {
      at::NoGradGuard no_grad;
      perturbation = weight.tensor.grad() * 0.05;
      model_.hidden_states(batch);  // a look at the model, as for a line search, is no forward
      weight.tensor.add_(perturbation);
    }
    weight.tensor.mutable_grad().reset();
    torch::autograd::backward({model_.loss(model_.hidden_states(batch), batch)}, {});
    {
      at::NoGradGuard no_grad;
      weight.tensor.sub_(perturbation);
    }
    training.update_all();
  }

 private:
  OneLayer& model_;
};

// Sharpness-aware minimization (Foret et al. 2020): the gradient at the perturbed weights.
class TwoPasses final : public StepRunner {
 public:
  explicit TwoPasses(OneLayer& model) : model_(model) {}
  at::Tensor run(Training& training, Passes& passes, std::int64_t) override {
    const Parameter& weight = training.parameters().at(0);
    passes.forward_backward({.last = false});
    at::NoGradGuard no_grad;
    const at::Tensor perturbation = weight.tensor.grad() * 0.05;
    model_.hidden_states(model_.make_batch({}));  // a look at the model, as for a line search
    weight.tensor.add_(perturbation);
    weight.tensor.mutable_grad().reset();
    const at::Tensor loss = passes.forward_backward();
    weight.tensor.sub_(perturbation);
    return loss;
  }

 private:
  OneLayer& model_;
};

// Keeps the state elsewhere between updates.
class Offloaded final : public UpdateRule {
 public:
  explicit Offloaded(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    move();
    inner_->update(parameters, grouping);
    move();
  }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

 private:
  void move() {
    inner_->visit_state(
        [](const at::Tensor&, const std::string&, at::Tensor& state) { state = state.clone(); });
  }
  std::shared_ptr<UpdateRule> inner_;
};

class Offload final : public UpdateRuleWrapper {
 public:
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Offloaded>(std::move(inner));
  }
};

class TrainingTrace : public testing::Test {
 protected:
  TrainingTrace()
      : recorder_(*new recording::Recorder("cpu", "cpu", /*emulated=*/false)),  // outlive tensors
        observer_(*new RecordObserver(recorder_)) {
    set_observer(&observer_);
    recording::trace_cpu_allocator(recorder_, kLimit, recording::CpuMemory::kDevice);
    recording::install_operator_labels(recorder_);
    model_ = std::make_unique<OneLayer>();
    rule_ = std::make_shared<Momentum>();
    recipe_.update_rule = rule_;
    recipe_.schedule = std::make_shared<AfterBackward>();
  }

  void build() {
    training_ = std::make_unique<RecipeTraining>(*model_, recipe_);
    batch_ = model_->make_batch({});
    observer_.name_modules(model_->module());
    observer_.name_storage(training_->parameters().at(0).tensor, StorageRole::kParameter,
                           "linear.weight");
    observer_.name_storage(batch_.input, StorageRole::kInput, "input");
  }
  void step(std::int32_t number) {
    training_->step(batch_, [&](Phase phase) { recorder_.set_phase(phase, number); });
  }

  // Bytes and category of what was allocated in the n-th stretch of this phase.
  static std::vector<std::pair<std::int64_t, Category>> made_in(const trace::Trace& trace,
                                                                Phase phase, std::size_t n) {
    std::vector<trace::PhaseSpan> spans;
    for (const auto& span : trace::phase_spans(trace))
      if (span.phase == phase) spans.push_back(span);
    std::vector<std::pair<std::int64_t, Category>> made;
    for (const auto& life : trace::lifetimes(trace))
      if (life.first >= spans.at(n).first && life.first < spans.at(n).last)
        made.emplace_back(trace.events[life.first].requested_bytes, life.category);
    return made;
  }
  static std::int64_t bytes_of(const trace::Trace& trace, Category category, std::int32_t step) {
    std::int64_t bytes = 0;
    for (const auto& life : trace::lifetimes(trace))
      if (life.category == category && trace.events[life.first].step == step)
        bytes += trace.events[life.first].requested_bytes;
    return bytes;
  }
  static std::vector<Phase> phases_of(const trace::Trace& trace) {
    std::vector<Phase> phases;
    for (const auto& span : trace::phase_spans(trace)) phases.push_back(span.phase);
    return phases;
  }

  recording::Recorder& recorder_;
  RecordObserver& observer_;
  std::unique_ptr<OneLayer> model_;
  std::shared_ptr<Momentum> rule_;
  Recipe recipe_;
  Batch batch_;
  std::unique_ptr<RecipeTraining> training_;
};

TEST_F(TrainingTrace, AScheduleWithPassesOfItsOwnIsSeenThrough) {
  recipe_.schedule = std::make_shared<PassesOfItsOwn>(*model_);
  build();
  step(0);
  const auto trace = recorder_.take();
  EXPECT_THAT(phases_of(trace),
              ElementsAre(Phase::kBuild, Phase::kForward, Phase::kBackward, Phase::kOptimizerStep,
                          Phase::kForward, Phase::kBackward, Phase::kOptimizerStep));
  const std::pair product(kHidden, Category::kTemporary), relu(kHidden, Category::kActivation),
      scalar(kScalar, Category::kActivation);
  EXPECT_THAT(made_in(trace, Phase::kForward, 0), UnorderedElementsAre(product, relu, scalar));
  // Of the second pass also the one that backward starts from, which is made before its first node.
  EXPECT_THAT(made_in(trace, Phase::kForward, 1),
              UnorderedElementsAre(product, relu, scalar, scalar));
  EXPECT_EQ(bytes_of(trace, Category::kGradient, 0), 2 * kWeight);
  // Both passes, nothing of the update: the weight, the input, the batch of the second pass, the
  // perturbation, and where the second forward has its most, its two hidden states.
  const auto memory = trace::summarise(trace);
  EXPECT_EQ(memory.phases.at("forward").peak_requested_bytes,
            2 * kWeight + 2 * kHidden + 2 * kHidden + kScalar);
  EXPECT_THAT(made_in(trace, Phase::kOptimizerStep, 1),
              UnorderedElementsAre(Pair(kWeight, Category::kOptimizerState),
                                   Pair(8 * 4, Category::kTemporary)));
}

TEST_F(TrainingTrace, ASecondForwardAndBackwardAreSeen) {
  recipe_.step_runner = std::make_shared<TwoPasses>(*model_);
  build();
  step(0);
  const auto trace = recorder_.take();
  EXPECT_THAT(phases_of(trace),
              ElementsAre(Phase::kBuild, Phase::kForward, Phase::kBackward, Phase::kOptimizerStep,
                          Phase::kForward, Phase::kBackward, Phase::kOptimizerStep));
  const std::pair product(kHidden, Category::kTemporary), relu(kHidden, Category::kActivation),
      scalar(kScalar, Category::kActivation);
  EXPECT_THAT(made_in(trace, Phase::kForward, 0), UnorderedElementsAre(product, relu, scalar));
  EXPECT_THAT(made_in(trace, Phase::kForward, 1), UnorderedElementsAre(product, relu, scalar));
  EXPECT_EQ(bytes_of(trace, Category::kGradient, 0), 2 * kWeight);
  // The weight, the input, the perturbation, and where the second forward has its most, its two
  // hidden states.
  const auto memory = trace::summarise(trace);
  EXPECT_EQ(memory.phases.at("forward").peak_requested_bytes, 2 * kWeight + 3 * kHidden);
  EXPECT_THAT(made_in(trace, Phase::kOptimizerStep, 1),
              UnorderedElementsAre(Pair(kWeight, Category::kOptimizerState),
                                   Pair(8 * 4, Category::kTemporary)));
}

// Elsewhere they change no phase, and there are many.
TEST_F(TrainingTrace, ModulesAndNodesOfBackwardAreScopesOnlyInAnOptimizerStep) {
  build();
  step(0);
  recorder_.set_phase(Phase::kOptimizerStep, 0);
  model_->hidden_states(batch_).sum().backward();
  recorder_.set_phase(Phase::kForward, 1);
  std::map<trace::ScopeKind, std::pair<int, int>> marks;  // beginnings and ends
  for (const auto& mark : recorder_.take().scopes)
    ++(mark.ends ? marks[mark.kind].second : marks[mark.kind].first);
  EXPECT_EQ(marks[trace::ScopeKind::kPhase], std::pair(5, 0));
  EXPECT_EQ(marks[trace::ScopeKind::kUpdate], std::pair(1, 1));
  EXPECT_EQ(marks[trace::ScopeKind::kModule], std::pair(2, 0)) << "the model and its layer";
  const auto [nodes, ends] = marks[trace::ScopeKind::kBackwardNode];
  EXPECT_GE(nodes, 4) << "of sum, relu, the product and the weight";
  EXPECT_EQ(nodes, ends);
}

TEST_F(TrainingTrace, ARecomputationInAnotherRestoresTheOuterOne) {
  build();
  recorder_.set_phase(Phase::kBackward, 0);
  std::vector<at::Tensor> made;
  const auto make = [&] { made.push_back(at::empty({1})); };
  {
    RecomputeScope outer;
    make();
    {
      RecomputeScope inner;
      make();
    }
    make();
  }
  make();
  std::vector<std::int32_t> recomputations;
  for (const auto& event : recorder_.take().events)
    if (event.phase == Phase::kBackward) recomputations.push_back(event.recompute);
  EXPECT_THAT(recomputations, ElementsAre(0, 1, 0, trace::kNone));
}

TEST_F(TrainingTrace, StateThatMovesInsideAnUpdateKeepsItsName) {
  recipe_.update_rule_wrappers.emplace_back(UpdatePlace::kOffload, std::make_shared<Offload>());
  build();
  step(0);
  step(1);
  const auto trace = recorder_.take();
  EXPECT_EQ(bytes_of(trace, Category::kOptimizerState, 0), 2 * kWeight) << "made, and moved away";
  EXPECT_EQ(bytes_of(trace, Category::kOptimizerState, 1), 2 * kWeight) << "moved in and out";
  for (const auto& name : trace.names) {
    if (name.role != trace::Role::kOptimizerState) continue;
    EXPECT_EQ(name.name, "linear.weight.momentum");
  }
}

// Zeroth order: two forwards, of which autograd keeps nothing.
class TwoForwards final : public StepRunner {
 public:
  at::Tensor run(Training& training, Passes& passes, std::int64_t) override {
    const at::NoGradGuard no_grad;
    const Parameter& weight = training.parameters().at(0);
    passes.forward(false, {.last = false});
    weight.tensor.add_(1);
    at::Tensor loss = passes.forward(false);
    weight.tensor.sub_(2);
    training.count_update();
    return loss;
  }
};

TEST_F(TrainingTrace, ForwardAloneKeepsNothing) {
  recipe_.step_runner = std::make_shared<TwoForwards>();
  build();
  step(0);
  training_->need_updates();
  EXPECT_TRUE(training_->runner_updates());
  const auto trace = recorder_.take();
  EXPECT_THAT(phases_of(trace), ElementsAre(Phase::kBuild, Phase::kForward, Phase::kOptimizerStep,
                                            Phase::kForward, Phase::kOptimizerStep));
  const std::pair hidden(kHidden, Category::kTemporary), loss(kScalar, Category::kActivation);
  for (const std::size_t pass : {0U, 1U})
    EXPECT_THAT(made_in(trace, Phase::kForward, pass), UnorderedElementsAre(hidden, hidden, loss));
  EXPECT_EQ(bytes_of(trace, Category::kGradient, 0), 0);
  EXPECT_EQ(bytes_of(trace, Category::kOptimizerState, 0), 0);
  // The weight, the input, the product and what relu makes of it: nothing of the pass before.
  const auto memory = trace::summarise(trace);
  EXPECT_EQ(memory.phases.at("forward").peak_requested_bytes, kWeight + 3 * kHidden);
}

// Forward and backward apart, with a loss of the runner's own in the first pass.
class Apart final : public StepRunner {
 public:
  at::Tensor run(Training& training, Passes& passes, std::int64_t) override {
    passes.backward(passes.forward(true, {.last = false, .loss_head = &squares_}));
    first = training.parameters().at(0).tensor.grad();
    training.parameters().at(0).tensor.mutable_grad().reset();
    const at::Tensor loss = passes.forward(true);
    EXPECT_TRUE(loss.requires_grad());
    passes.backward(loss);
    return loss.detach();
  }
  at::Tensor first;

 private:
  struct Squares : LossHead {
    at::Tensor loss(Model&, const at::Tensor& hidden, const Batch&) override {
      return hidden.square().sum();
    }
  } squares_;
};

// What parts of a recipe are told of the pass.
struct ToldPasses final : GradientHook, StepContext, LossTransform {
  void on_gradient(const Parameter&, const Pass& pass) override { note("gradient", pass); }
  std::shared_ptr<void> enter_forward(const Pass& pass) override {
    note("forward", pass);
    return nullptr;
  }
  at::Tensor apply(const at::Tensor& loss, const Pass& pass) override {
    note("loss", pass);
    return loss;
  }
  void note(const std::string& what, const Pass& pass) {
    told.push_back(what + " " + std::to_string(pass.index) + (pass.last ? " last" : ""));
    EXPECT_EQ(pass.micro_batch, 0);
    EXPECT_TRUE(pass.last_micro_batch);
  }
  std::vector<std::string> told;
};

TEST_F(TrainingTrace, ForwardAndBackwardApart) {
  const auto runner = std::make_shared<Apart>();
  const auto told = std::make_shared<ToldPasses>();
  recipe_.step_runner = runner;
  recipe_.gradient_hooks.emplace_back(GradientPlace::kReduce, told);
  recipe_.step_contexts.push_back(told);
  recipe_.loss_transforms.push_back(told);
  build();
  const at::Tensor weight = training_->parameters().at(0).tensor;
  const at::Tensor before = weight.detach().clone();
  step(0);
  // x and W are ones: h = 4 everywhere, and a column of h has two rows. The losses' derivatives by
  // W are the sums over rows of 2 h x = 16 and of x = 2.
  EXPECT_TRUE(at::equal(runner->first, at::full({4, 4}, 16.0)));
  EXPECT_TRUE(at::equal(weight, before - 2)) << "from the second pass alone";
  EXPECT_THAT(told->told, ElementsAre("forward 0", "loss 0", "gradient 0", "forward 1 last",
                                      "loss 1 last", "gradient 1 last"));
  const auto trace = recorder_.take();
  EXPECT_THAT(phases_of(trace),
              ElementsAre(Phase::kBuild, Phase::kForward, Phase::kBackward, Phase::kOptimizerStep,
                          Phase::kForward, Phase::kBackward, Phase::kOptimizerStep));
}

// Made by one call and held until another; named where it was made, whatever it is.
struct HoldsOne : HoldsMemory {
  HoldsOne(std::int64_t bytes, StorageRole role) : bytes_(bytes), role_(role) {}
  void hold() { held_ = at::zeros({bytes_}, at::kByte); }
  void visit_memory(const MemoryVisitor& visit) override {
    visit("held", held_, role_);
    visit("nothing", at::Tensor(), role_);
  }

 private:
  std::int64_t bytes_;
  StorageRole role_;
  at::Tensor held_;
};
struct HoldingContext final : StepContext {
  std::shared_ptr<void> enter_forward(const Pass&) override {
    own.hold();
    return nullptr;
  }
  void visit_memory(const MemoryVisitor& visit) override { own.visit_memory(visit); }
  HoldsOne own{100, StorageRole::kKept};
};
struct HoldingHook final : GradientHook {
  void on_gradient(const Parameter&, const Pass&) override { own.hold(); }
  void visit_memory(const MemoryVisitor& visit) override { own.visit_memory(visit); }
  HoldsOne own{200, StorageRole::kGradient};
};
struct HoldingWrapper final : UpdateRuleWrapper {
  struct Rule final : UpdateRule {
    explicit Rule(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}
    void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
      own.hold();
      inner_->update(parameters, grouping);
    }
    void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
    void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }
    void visit_memory(const MemoryVisitor& visit) override { own.visit_memory(visit); }
    std::shared_ptr<UpdateRule> inner_;
    HoldsOne own{300, StorageRole::kOptimizerState};
  };
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Rule>(std::move(inner));
  }
};

TEST_F(TrainingTrace, WhatPartsOfARecipeHoldHasTheirNames) {
  recipe_.step_contexts.push_back(std::make_shared<HoldingContext>());
  recipe_.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<HoldingHook>());
  recipe_.update_rule_wrappers.emplace_back(UpdatePlace::kMaster,
                                            std::make_shared<HoldingWrapper>());
  build();
  for (int i = 0; i < 2; ++i) {
    step(i);
    training_->name_state();
  }
  const auto trace = recorder_.take();
  std::map<std::int64_t, std::vector<Category>> found;  // by bytes
  for (const auto& life : trace::lifetimes(trace)) {
    if (life.name == trace::kNone) continue;
    if (trace.names[static_cast<std::size_t>(life.name)].name != "held") continue;
    found[trace.events[life.first].requested_bytes].push_back(life.category);
  }
  EXPECT_THAT(
      found,
      ElementsAre(Pair(100, ElementsAre(Category::kKept, Category::kKept)),
                  Pair(200, ElementsAre(Category::kGradient, Category::kGradient)),
                  Pair(300, ElementsAre(Category::kOptimizerState, Category::kOptimizerState))));
}

TEST_F(TrainingTrace, AnAllocationIsNamedOnce) {
  build();
  for (int i = 0; i < 3; ++i) step(i);
  const auto trace = recorder_.take();
  std::map<trace::Role, int> names;
  for (const auto& name : trace.names) ++names[name.role];
  EXPECT_EQ(names[trace::Role::kOptimizerState], 1) << "it lives as long as training";
  EXPECT_EQ(names[trace::Role::kGradient], 3) << "one a step";
}

TEST_F(TrainingTrace, OutOfMemoryEndsTheTraceAndStateKeepsItsName) {
  rule_->asks_for = 2 * kLimit;
  build();
  EXPECT_THROW(step(0), c10::OutOfMemoryError);
  training_->name_state();
  const at::Tensor later = at::ones({100});
  observer_.name_storage(later, StorageRole::kInput, "later");
  recorder_.end_at_out_of_memory();
  const auto trace = recorder_.take();
  EXPECT_EQ(trace.events.back().kind, trace::EventKind::kOutOfMemory);
  EXPECT_EQ(trace.events.back().requested_bytes, 2 * kLimit);
  EXPECT_EQ(trace.events.back().phase, Phase::kOptimizerStep);
  EXPECT_TRUE(trace.events.back().in_update);
  for (const auto& mark : trace.scopes) EXPECT_LT(mark.event, trace.events.size());
  std::vector<std::pair<std::int64_t, Category>> alive;
  for (const auto& life : trace::lifetimes(trace))
    if (life.last == trace.events.size())
      alive.emplace_back(trace.events[life.first].requested_bytes, life.category);
  EXPECT_THAT(alive,
              UnorderedElementsAre(
                  Pair(kWeight, Category::kParameter), Pair(kHidden, Category::kInput),
                  Pair(kScalar, Category::kActivation),  // the loss
                  Pair(kWeight, Category::kGradient), Pair(kWeight, Category::kOptimizerState),
                  Pair(8 * 4, Category::kTemporary)));  // freed by unwinding
}

// It was caught there, and the case goes on.
TEST_F(TrainingTrace, OutOfMemoryInAnEarlierStepCutsNothing) {
  build();
  recorder_.set_phase(Phase::kForward, 0);
  EXPECT_THROW(at::empty({2 * kLimit}, at::kByte), c10::OutOfMemoryError);
  recorder_.set_phase(Phase::kForward, 1);
  const at::Tensor later = at::empty({100});
  recorder_.end_at_out_of_memory();
  const auto trace = recorder_.take();
  EXPECT_EQ(trace.events.back().kind, trace::EventKind::kAlloc);
}

}  // namespace
}  // namespace peakbench::worker
