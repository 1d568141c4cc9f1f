// A strategy that works with any update rule: APOLLO (https://arxiv.org/abs/2412.05270, algorithm
// 1).
//
// A wrapper around the rule gives it another tensor in a matrix's place: a stand-in of low rank,
// zero before each update, with a random projection of the gradient as its own. How much the rule
// moves a channel of the stand-in, relative to its gradient, is how much the same channel of the
// whole gradient is scaled. The rule's state has the stand-in's size; the projection is made again
// from a seed when it is needed. Without the paper's limit to the growth of the update's norm.
#include <ATen/ATen.h>

#include <algorithm>

#include "peakbench/plugin.h"
#include "peakbench/stand_ins.h"

namespace {

using namespace peakbench;

struct ApolloOptions {
  std::int64_t rank, update_gap;
  double scale;
  std::vector<std::string> blocks;  // paths in the module tree; matrices in them are projected
};

bool is_projected(const Parameter& parameter, const ApolloOptions& options) {
  const at::Tensor& matrix = parameter.tensor;
  if (matrix.dim() != 2 || std::min(matrix.size(0), matrix.size(1)) <= options.rank) return false;
  return std::any_of(options.blocks.begin(), options.blocks.end(), [&](const std::string& block) {
    return parameter.name.starts_with(block + ".");
  });
}

// (rank, side) normal numbers of variance 1 / rank, the same for the same seed.
at::Tensor random_projection(std::int64_t rank, std::int64_t side, std::uint64_t seed,
                             const at::Tensor& like) {
  auto generator = at::globalContext().defaultGenerator(like.device()).clone();
  generator.set_current_seed(seed);
  return at::randn({rank, side}, generator, like.options().requires_grad(false))
      .div_(std::sqrt(static_cast<double>(rank)));
}

// One matrix. Between updates the stand-in holds no memory.
struct LowRank {
  at::Tensor tensor;
  std::uint64_t seed;
  std::int64_t updates = 0;
};

class ScaledGradients : public UpdateRule {
 public:
  ScaledGradients(std::shared_ptr<UpdateRule> inner, ApolloOptions options)
      : inner_(std::move(inner)), options_(std::move(options)) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<Parameter> given, projected;
    for (const auto& parameter : parameters) {
      if (!parameter.tensor.grad().defined()) continue;
      const bool projects = is_projected(parameter, options_);
      if (projects) projected.push_back(parameter);
      given.push_back(projects ? project(parameter) : parameter);
    }
    inner_->update(given, grouping);
    for (const auto& parameter : projected) apply(parameter.tensor);
  }

  void visit_state(const StateVisitor& visit) override { matrices_.visit_inner(*inner_, visit); }
  void forget(const at::Tensor& parameter) override { matrices_.forget(*inner_, parameter); }

 private:
  LowRank& low_rank_of(const at::Tensor& parameter) {
    return matrices_.of(parameter, [&] {
      return LowRank{at::empty({0}, parameter.options().requires_grad(false)), ++matrices_made_};
    });
  }

  // The longer side stays: channels are the columns of an (m, n) gradient with m <= n.
  static at::Tensor wide(const at::Tensor& matrix) {
    return matrix.size(0) <= matrix.size(1) ? matrix : matrix.t();
  }

  Parameter project(const Parameter& parameter) {
    LowRank& matrix = low_rank_of(parameter.tensor);
    if (matrix.updates++ % options_.update_gap == 0) matrix.seed += kNextSeed;
    const at::Tensor gradient = wide(parameter.tensor.grad());  // (m, n)
    const at::Tensor projection =
        random_projection(options_.rank, gradient.size(0), matrix.seed, gradient);
    matrix.tensor.mutable_grad() = at::matmul(projection, gradient);  // (rank, n)
    matrix.tensor.set_data(at::zeros_like(matrix.tensor.grad()));
    return {parameter.name, matrix.tensor};
  }

  void apply(const at::Tensor& parameter) {
    LowRank& matrix = low_rank_of(parameter);
    at::Tensor factors = at::linalg_vector_norm(matrix.tensor.grad(), 2, 0).add_(kAgainstZero);
    factors = at::linalg_vector_norm(matrix.tensor, 2, 0).div_(factors);  // (n)
    const at::Tensor scaled = wide(parameter.grad()) * factors;
    wide(parameter.detach()).sub_(scaled, options_.scale);
    matrix.tensor.mutable_grad().reset();
    matrix.tensor.set_data(at::empty({0}, parameter.options().requires_grad(false)));
  }

  static constexpr double kAgainstZero = 1e-8;
  static constexpr std::uint64_t kNextSeed = 1 << 20;  // more than a model has matrices

  std::shared_ptr<UpdateRule> inner_;
  ApolloOptions options_;
  std::uint64_t matrices_made_ = 0;
  StandIns<LowRank> matrices_;
};

class ScaleGradients : public UpdateRuleWrapper {
 public:
  explicit ScaleGradients(ApolloOptions options) : options_(std::move(options)) {}
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<ScaledGradients>(std::move(inner), options_);
  }

 private:
  ApolloOptions options_;
};

// A strategy without effect must say so: the figures would be another's under its name.
class NeedsAMatrix : public StepListener {
 public:
  explicit NeedsAMatrix(ApolloOptions options) : options_(std::move(options)) {}
  void on_step_begin(Training& training, std::int64_t step) override {
    const auto& parameters = training.parameters();
    const auto projects = [&](const auto& one) { return is_projected(one, options_); };
    if (step > 0 || std::any_of(parameters.begin(), parameters.end(), projects)) return;
    throw Unsupported("apollo: no trained matrix in the model's blocks has more than " +
                      std::to_string(options_.rank) + " rows and columns; choose a smaller rank");
  }

 private:
  ApolloOptions options_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  const ApolloOptions options{.rank = context.options.integer("rank"),
                              .update_gap = context.options.integer("update_gap"),
                              .scale = context.options.number("scale"),
                              .blocks = model.block_paths()};
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kProject,
                                           std::make_shared<ScaleGradients>(options));
  recipe.step_listeners.push_back(std::make_shared<NeedsAMatrix>(options));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
