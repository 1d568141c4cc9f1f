// Strategies that run a step's passes in ways of their own, and what is told of passes, of saved
// tensors and of the memory that parts of a recipe hold. tests/worker/passes_test.py says what is
// found.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace {

using namespace peakbench;

// Sophia-G (https://arxiv.org/abs/2305.14342, algorithm 3 with the estimator of section 2.3; as
// https://github.com/Liuhong99/Sophia has it): every few steps one more pass, whose labels are
// drawn from the model's own logits, tells the curvature.
class SampledLabels : public LossHead {
 public:
  at::Tensor loss(Model& model, const at::Tensor& hidden, const Batch&) override {
    const auto head = model.output_head();
    const at::Tensor logits = head->logits(hidden);
    const at::Tensor flat = logits.flatten(0, -2).to(at::kFloat);
    const at::Tensor labels = at::multinomial(flat.detach().softmax(-1), 1).squeeze(-1);
    return at::cross_entropy_loss(flat, labels);
  }
};

class SophiaRule : public UpdateRule {
 public:
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    at::Tensor ratio;  // lives on into the next turn, as the name does in sophia.py
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      State& state = of(parameter);
      state.step.add_(1);
      parameter.mul_(1 - kLr * kWeightDecay);
      state.exp_avg.mul_(kBeta1).add_(parameter.grad(), 1 - kBeta1);
      ratio = at::clamp(to_curvature(state), {}, 1);
      parameter.addcmul_(state.exp_avg.sign(), ratio, -kLr);
    }
  }
  // From the gradients of a pass with sampled labels, which are taken away.
  void estimate(const std::vector<Parameter>& parameters) {
    const at::NoGradGuard no_grad;
    for (const auto& [name, parameter] : parameters)
      if (parameter.grad().defined())
        of(parameter).hessian.mul_(kBeta2).addcmul_(parameter.grad(), parameter.grad(), 1 - kBeta2);
    for (const auto& [name, parameter] : parameters) parameter.mutable_grad().reset();
  }
  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, state] : states_) {
      visit(parameter, "step", state.step);
      visit(parameter, "exp_avg", state.exp_avg);
      visit(parameter, "hessian", state.hessian);
    }
  }
  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  struct State {
    at::Tensor step, exp_avg, hessian;
  };
  static constexpr double kLr = 1e-4, kBeta1 = 0.965, kBeta2 = 0.99, kRho = 0.04,
                          kWeightDecay = 0.1, kAgainstZero = 1e-15;
  State& of(const at::Tensor& parameter) {
    return states_.of(parameter, [&] {
      return State{at::scalar_tensor(0.0, at::kFloat), at::zeros_like(parameter.detach()),
                   at::zeros_like(parameter.detach())};
    });
  }
  // A statement where Python lets go of what it needs no longer.
  static at::Tensor to_curvature(const State& state) {
    const at::Tensor magnitude = state.exp_avg.abs();
    at::Tensor curvature = state.hessian * kRho;
    curvature = curvature + kAgainstZero;
    return magnitude / curvature;
  }
  StateMap<State> states_;
};

class SophiaPasses : public StepRunner {
 public:
  explicit SophiaPasses(std::shared_ptr<SophiaRule> rule) : rule_(std::move(rule)) {}
  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    constexpr std::int64_t kEvery = 2;
    if (step % kEvery == 0) {
      passes.forward_backward({.last = false, .loss_head = &sampled_});
      rule_->estimate(training.parameters());
    }
    return passes.forward_backward();
  }

 private:
  std::shared_ptr<SophiaRule> rule_;
  SampledLabels sampled_;
};

// SOAP (https://arxiv.org/abs/2409.11321, as https://github.com/nikhilvyas/SOAP has it): Adam in
// the eigenbases of Shampoo's preconditioners, which are improved every second step. The first step
// prepares these and updates nothing.
class Soap : public UpdateRule {
 public:
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    at::Tensor gradient, denominator, direction;  // live on into the next turn, as in soap.py
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      State* known = states_.find(parameter);
      State& state = states_.of(parameter, [&] { return made(parameter); });
      if (known == nullptr) {
        accumulate(state, parameter.grad());
        continue;
      }
      gradient = projected(parameter.grad(), state, 0);
      ++state.step;
      state.exp_avg.mul_(kBeta1).add_(gradient, 1 - kBeta1);
      state.exp_avg_sq.mul_(kBeta2).add_(gradient.square(), 1 - kBeta2);
      denominator = state.exp_avg_sq.sqrt().add_(kEpsilon);
      direction = projected(state.exp_avg / denominator, state, 1);
      const double size =
          std::sqrt(1 - std::pow(kBeta2, state.step)) / (1 - std::pow(kBeta1, state.step));
      parameter.add_(direction, -kLr * size);
      accumulate(state, parameter.grad());
    }
  }
  void visit_state(const StateVisitor& visit) override {
    constexpr const char *kSides[] = {"left", "right"}, *kBases[] = {"left_basis", "right_basis"};
    for (auto& [parameter, state] : states_) {
      visit(parameter, "exp_avg", state.exp_avg);
      visit(parameter, "exp_avg_sq", state.exp_avg_sq);
      for (std::size_t i = 0; i < state.sides.size(); ++i) {
        if (!state.sides[i].defined()) continue;
        visit(parameter, kSides[i], state.sides[i]);
        visit(parameter, kBases[i], state.bases[i]);
      }
    }
  }
  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  struct State {
    std::int64_t step = 0;
    at::Tensor exp_avg, exp_avg_sq;  // as the parameter; in the bases
    // Of an (m, n) matrix: (m, m) and (n, n); undefined for a side that is too large.
    std::vector<at::Tensor> sides, bases;
  };
  static State made(const at::Tensor& parameter) {
    State state{0, at::zeros_like(parameter.grad()), at::zeros_like(parameter.grad()), {}, {}};
    if (parameter.dim() != 2) return state;
    for (const auto size : parameter.sizes())
      state.sides.push_back(
          size > kMost ? at::Tensor()
                       : at::zeros({size, size}, parameter.options().requires_grad(false)));
    return state;
  }
  static void accumulate(State& state, const at::Tensor& gradient) {
    if (state.step > 0) state.exp_avg = projected(state.exp_avg, state, 1);
    for (std::size_t i = 0; i < state.sides.size(); ++i) {
      const std::int64_t other = i == 0 ? 1 : 0;
      if (state.sides[i].defined())
        state.sides[i].lerp_(at::tensordot(gradient, gradient, {other}, {other}), 1 - kBeta2);
    }
    if (state.step == 0)
      for (const at::Tensor& side : state.sides) state.bases.push_back(eigenbasis(side));
    if (state.step > 0 && state.step % kFrequency == 0) state.bases = improved(state);
    if (state.step > 0) state.exp_avg = projected(state.exp_avg, state, 0);
  }
  // Into the bases, each dimension in turn, which goes last; out of them with `dimension` 1.
  static at::Tensor projected(at::Tensor x, const State& state, std::int64_t dimension) {
    for (const at::Tensor& basis : state.bases)
      x = basis.defined() ? at::tensordot(x, basis, {0}, {dimension}) : x.permute({1, 0});
    return x;
  }
  static at::Tensor eigenbasis(const at::Tensor& side) {
    if (!side.defined()) return {};
    const at::Tensor eye = at::eye(side.size(0), side.options());
    return eigenvectors(side, eye).flip({1});
  }
  static at::Tensor eigenvectors(const at::Tensor& side, const at::Tensor& eye) {
    const at::Tensor above_zero = side + eye * 1e-30;
    return std::get<1>(at::linalg_eigh(above_zero));
  }
  // One power iteration, and its QR decomposition.
  static std::vector<at::Tensor> improved(State& state) {
    std::vector<at::Tensor> found;
    at::Tensor eigenvalues, order, basis, iterated;  // as soap.py's names
    for (std::size_t i = 0; i < state.sides.size(); ++i) {
      const at::Tensor& side = state.sides[i];
      found.emplace_back();
      if (!side.defined()) continue;
      basis = state.bases[i];
      eigenvalues = at::diag(rotated(side, basis));
      order = at::argsort(eigenvalues, -1, true);
      state.exp_avg_sq = state.exp_avg_sq.index_select(static_cast<std::int64_t>(i), order);
      basis = basis.index({at::indexing::Slice(), order});
      iterated = side.mm(basis);
      found.back() = std::get<0>(at::linalg_qr(iterated));
    }
    return found;
  }
  static at::Tensor rotated(const at::Tensor& side, const at::Tensor& basis) {
    const at::Tensor half = basis.t().mm(side);
    return half.mm(basis);
  }
  static constexpr double kLr = 3e-3, kBeta1 = 0.95, kBeta2 = 0.95, kEpsilon = 1e-8;
  static constexpr std::int64_t kFrequency = 2, kMost = 10000;
  StateMap<State> states_;
};

// An update every second step, as strategies that train otherwise may have it.
struct ByTurns : Schedule {
  void after_backward(Training& training) override {
    if (step_++ % 2 == 0) training.update_all();
  }
  int step_ = 0;
};

// Says of which pass each part is told, once a micro-batch.
struct TellsPass {
  static void tell(const char* what, const Pass& pass) {
    std::fprintf(stderr, "%s pass %d%s micro-batch %d%s\n", what, static_cast<int>(pass.index),
                 pass.last ? " last" : "", static_cast<int>(pass.micro_batch),
                 pass.last_micro_batch ? " last" : "");
  }
};
struct TellingContext : StepContext {
  std::shared_ptr<void> enter_forward(const Pass& pass) override {
    TellsPass::tell("forward", pass);
    return nullptr;
  }
};
struct TellingTransform : LossTransform {
  at::Tensor apply(const at::Tensor& loss, const Pass& pass) override {
    TellsPass::tell("loss", pass);
    return loss;
  }
};
struct TellingHook : GradientHook {
  void on_gradient(const Parameter& parameter, const Pass& pass) override {
    if (parameter.name == "class_token") TellsPass::tell("gradient", pass);
  }
};

// A pass of each kind.
struct EveryKind : StepRunner {
  at::Tensor run(Training& training, Passes& passes, std::int64_t) override {
    passes.forward(false, {.last = false});
    const at::Tensor loss = passes.forward(true, {.last = false});
    passes.backward(loss);
    for (const Parameter& parameter : training.parameters())
      parameter.tensor.mutable_grad().reset();
    return passes.forward_backward();
  }
};

// Does not keep its word on which pass is the last.
struct MistakesLast : StepRunner {
  explicit MistakesLast(bool owes) : owes_(owes) {}
  at::Tensor run(Training&, Passes& passes, std::int64_t) override {
    if (!owes_) passes.forward_backward();
    return passes.forward_backward({.last = !owes_});
  }
  bool owes_;
};

// Changes parameters by no operator, and says so or not.
struct WritesItself : StepRunner {
  explicit WritesItself(bool counts) : counts_(counts) {}
  at::Tensor run(Training& training, Passes& passes, std::int64_t) override {
    at::Tensor loss = passes.forward(false);
    for (const Parameter& parameter : training.parameters()) {
      auto* values = static_cast<float*>(parameter.tensor.storage().mutable_data());
      for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i) values[i] += 1e-3F;
    }
    if (counts_) training.count_update();
    return loss;
  }
  bool counts_;
};

// Leaves all tensors, and says once from where each kind comes.
struct TellsWhere : SavedTensorHooks {
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override {
    const std::string line = std::string(facts.module) + " " + std::string(facts.op) +
                             (facts.is_weight ? " weight" : "");
    if (told_.insert(line).second) std::fprintf(stderr, "saved %s\n", line.c_str());
    struct Kept : SavedTensor {
      explicit Kept(at::Tensor tensor) : tensor_(std::move(tensor)) {}
      at::Tensor unpack() override { return tensor_; }
      at::Tensor tensor_;
    };
    return std::make_shared<Kept>(tensor);
  }
  bool asks_where() const override { return true; }
  std::set<std::string> told_;
};

// Memory of each kind of part, 1 KiB for the first, 2 for the second, ...: made in the first step,
// kept to the end.
template <typename Part, int kKibibytes>
struct Holds : Part {
  void hold() {
    if (!held_.defined()) held_ = at::zeros({kKibibytes * 1024}, at::kByte);
  }
  void visit_memory(const MemoryVisitor& visit) override {
    visit("part_" + std::to_string(kKibibytes), held_, StorageRole::kKept);
  }
  at::Tensor held_;
};
struct HoldingBlocks : Holds<BlockWrapper, 1> {
  std::vector<at::Tensor> run(std::size_t, std::size_t, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    hold();
    return block(inputs);
  }
};
struct HoldingContext : Holds<StepContext, 2> {
  std::shared_ptr<void> enter_step() override {
    hold();
    return nullptr;
  }
};
struct HoldingListener : Holds<StepListener, 3> {
  void on_step_begin(Training&, std::int64_t) override { hold(); }
};
struct HoldingTransform : Holds<LossTransform, 4> {
  at::Tensor apply(const at::Tensor& loss, const Pass&) override {
    hold();
    return loss;
  }
};
struct HoldingHook : Holds<GradientHook, 5> {
  void on_gradient(const Parameter&, const Pass&) override { hold(); }
};
struct HoldingGradients : Holds<GradientTransform, 6> {
  bool apply(const std::vector<Parameter>&) override {
    hold();
    return true;
  }
};
struct HoldingSaved : Holds<SavedTensorHooks, 7> {
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, const SavedTensorFacts&) override {
    hold();
    return tells_.pack(tensor, {});
  }
  TellsWhere tells_;
};
struct HoldingRule : Holds<UpdateRule, 8> {
  explicit HoldingRule(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    hold();
    inner_->update(parameters, grouping);
  }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }
  std::shared_ptr<UpdateRule> inner_;
};
struct HoldingWrapper : Holds<UpdateRuleWrapper, 9> {
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    hold();
    return std::make_shared<HoldingRule>(std::move(inner));
  }
};
struct HoldingSchedule : Holds<Schedule, 10> {
  void after_backward(Training& training) override {
    hold();
    training.update_all();
  }
};
struct HoldingRunner : Holds<StepRunner, 11> {
  at::Tensor run(Training&, Passes& passes, std::int64_t) override {
    hold();
    return passes.forward_backward();
  }
};
struct HoldingHead : Holds<LossHead, 12> {
  at::Tensor loss(Model& model, const at::Tensor& hidden, const Batch& batch) override {
    hold();
    return model.loss(hidden, batch);
  }
};

void add_holding(Recipe& recipe) {
  recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<HoldingBlocks>());
  recipe.step_contexts.push_back(std::make_shared<HoldingContext>());
  recipe.step_listeners.push_back(std::make_shared<HoldingListener>());
  recipe.loss_transforms.push_back(std::make_shared<HoldingTransform>());
  recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<HoldingHook>());
  recipe.gradient_transforms.push_back(std::make_shared<HoldingGradients>());
  recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload,
                                         std::make_shared<HoldingSaved>());
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kMaster,
                                           std::make_shared<HoldingWrapper>());
  recipe.schedule = std::make_shared<HoldingSchedule>();
  recipe.step_runner = std::make_shared<HoldingRunner>();
  recipe.loss_head = std::make_shared<HoldingHead>();
}

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const std::string& id = context.id;
  if (id == "sophia") {
    const auto rule = std::make_shared<SophiaRule>();
    recipe.update_rule = rule;
    recipe.step_runner = std::make_shared<SophiaPasses>(rule);
  }
  if (id == "soap") recipe.update_rule = std::make_shared<Soap>();
  if (id == "by-turns") recipe.schedule = std::make_shared<ByTurns>();
  if (id == "every-kind") recipe.step_runner = std::make_shared<EveryKind>();
  if (id == "pass-after-last") recipe.step_runner = std::make_shared<MistakesLast>(false);
  if (id == "owes-a-pass") recipe.step_runner = std::make_shared<MistakesLast>(true);
  if (id == "writes-itself") recipe.step_runner = std::make_shared<WritesItself>(false);
  if (id == "counts-its-update") recipe.step_runner = std::make_shared<WritesItself>(true);
  if (id == "tells-where")
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kCompress,
                                           std::make_shared<TellsWhere>());
  if (id == "tells-passes") {
    recipe.step_contexts.push_back(std::make_shared<TellingContext>());
    recipe.loss_transforms.push_back(std::make_shared<TellingTransform>());
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<TellingHook>());
  }
  if (id == "holds-listener") recipe.step_listeners.push_back(std::make_shared<HoldingListener>());
  if (id == "holds") add_holding(recipe);
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
