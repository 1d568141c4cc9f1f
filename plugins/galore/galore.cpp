// GaLore: optimizer state of low rank, weights of full rank. A matrix's gradient to low rank and
// back. Source: galore_torch/galore_projector.py (GaLore 1.0), proj_type "std".
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/stand_ins.h"

namespace peakbench::galore {
namespace {

// Of an (m, n) matrix, from the left where m < n, from the right otherwise: the shorter side
// becomes `rank`.
class Projection {
 public:
  Projection(const at::Tensor& matrix, std::int64_t rank)
      : rows_(matrix.size(0)),
        columns_(matrix.size(1)),
        rank_(rank),
        from_left_(rows_ < columns_) {}

  std::vector<std::int64_t> low_rank_shape() const {
    return from_left_ ? std::vector{rank_, columns_} : std::vector{rows_, rank_};
  }
  // The `rank` leading singular vectors of the gradient's shorter side. In fp32 whatever the
  // gradient's dtype; the decomposition's own results are gone when this returns (the original
  // keeps a view of them, and so all of them).
  void fit(const at::Tensor& gradient) {
    const auto [left, values, right] =
        at::linalg_svd(gradient.to(at::kFloat), /*full_matrices=*/false);
    const at::Tensor leading = from_left_ ? left.narrow(1, 0, rank_) : right.narrow(0, 0, rank_);
    vectors = leading.to(gradient.scalar_type(), /*non_blocking=*/false, /*copy=*/true,
                         at::MemoryFormat::Contiguous);
  }
  // (m, n) -> low_rank_shape()
  at::Tensor project(const at::Tensor& gradient) const {
    return from_left_ ? at::matmul(vectors.t(), gradient) : at::matmul(gradient, vectors.t());
  }
  // low_rank_shape() -> (m, n)
  at::Tensor back(const at::Tensor& low_rank) const {
    return from_left_ ? at::matmul(vectors, low_rank) : at::matmul(low_rank, vectors);
  }

  // (m, rank) or (rank, n), in the gradient's dtype; undefined before the first fit.
  at::Tensor vectors;

 private:
  std::int64_t rows_, columns_, rank_;
  bool from_left_;
};

struct GaloreOptions {
  std::int64_t rank = 128, update_gap = 200;
  double scale = 0.25;
  std::vector<std::string> blocks;  // paths in the module tree; matrices in them are projected
};

bool is_projected(const Parameter& parameter, const GaloreOptions& options) {
  const at::Tensor& matrix = parameter.tensor;
  if (matrix.dim() != 2 || std::min(matrix.size(0), matrix.size(1)) <= options.rank) return false;
  return std::any_of(options.blocks.begin(), options.blocks.end(), [&](const std::string& block) {
    return parameter.name.starts_with(block + ".");
  });
}

// One matrix. Between updates the stand-in holds no memory: only the projection and the rule's
// state stay.
struct LowRank {
  at::Tensor tensor;
  Projection projection;
  std::int64_t updates = 0;
};

at::Tensor nothing_like(const at::Tensor& tensor) {
  return at::empty({0}, tensor.options().requires_grad(false));
}

// Any update rule on projected gradients.
//
// The rule is given a stand-in of low rank that is zero before each update, and its change is
// projected back to the weights: the paper's algorithm for any rule. A decay of the weights that is
// part of the rule acts on the stand-in, and so not at all. https://arxiv.org/abs/2403.03507
class LowRankUpdates : public UpdateRule {
 public:
  LowRankUpdates(std::shared_ptr<UpdateRule> inner, GaloreOptions options)
      : inner_(std::move(inner)), options_(std::move(options)) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<Parameter> given, projected;
    for (const Parameter& parameter : parameters) {
      if (!parameter.tensor.grad().defined()) continue;
      const bool projects = is_projected(parameter, options_);
      if (projects) projected.push_back(parameter);
      given.push_back(projects ? project(parameter) : parameter);
    }
    inner_->update(given, grouping);
    for (const Parameter& parameter : projected) project_back(parameter);
  }
  void visit_state(const StateVisitor& visit) override {
    matrices_.visit_inner(*inner_, visit);
    for (auto& [parameter, matrix] : matrices_)
      if (matrix.projection.vectors.defined())
        visit(parameter, "projection", matrix.projection.vectors);
  }
  void forget(const at::Tensor& parameter) override { matrices_.forget(*inner_, parameter); }

 private:
  // The gradient goes; what is left of it is of low rank.
  Parameter project(const Parameter& parameter) {
    LowRank& matrix = low_rank_of(parameter.tensor);
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    if (matrix.updates++ % options_.update_gap == 0) matrix.projection.fit(gradient);
    matrix.tensor.mutable_grad() = matrix.projection.project(gradient);
    gradient.reset();
    if (observer() != nullptr)
      observer()->name_storage(matrix.tensor.grad(), StorageRole::kGradient, parameter.name);
    matrix.tensor.set_data(at::zeros_like(matrix.tensor.grad()));
    return {parameter.name, matrix.tensor};
  }
  void project_back(const Parameter& parameter) {
    LowRank& matrix = low_rank_of(parameter.tensor);
    const at::Tensor change = matrix.projection.back(matrix.tensor);
    parameter.tensor.add_(change, options_.scale);
    matrix.tensor.set_data(nothing_like(parameter.tensor));
    matrix.tensor.mutable_grad().reset();
  }
  LowRank& low_rank_of(const at::Tensor& parameter) {
    return matrices_.of(parameter, [&] {
      return LowRank{nothing_like(parameter), Projection(parameter, options_.rank)};
    });
  }

  std::shared_ptr<UpdateRule> inner_;
  GaloreOptions options_;
  StandIns<LowRank> matrices_;
};

class ProjectGradients : public UpdateRuleWrapper {
 public:
  explicit ProjectGradients(GaloreOptions options) : options_(std::move(options)) {}
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<LowRankUpdates>(std::move(inner), options_);
  }

 private:
  GaloreOptions options_;
};

// Where no matrix is large enough nothing would be projected, and figures would be the baseline's.
class NeedsAMatrix : public StepListener {
 public:
  explicit NeedsAMatrix(GaloreOptions options) : options_(std::move(options)) {}
  void on_step_begin(Training& training, std::int64_t step) override {
    const auto& parameters = training.parameters();
    const auto projects = [&](const Parameter& one) { return is_projected(one, options_); };
    if (step > 0 || std::any_of(parameters.begin(), parameters.end(), projects)) return;
    throw Unsupported("galore: no trained matrix in the model's blocks has more than " +
                      std::to_string(options_.rank) +
                      " rows and columns, so that none is projected; choose a smaller rank");
  }

 private:
  GaloreOptions options_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  const GaloreOptions options{.rank = context.options.integer("rank"),
                              .update_gap = context.options.integer("update_gap"),
                              .scale = context.options.number("scale"),
                              .blocks = model.block_paths()};
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kProject,
                                           std::make_shared<ProjectGradients>(options));
  recipe.step_listeners.push_back(std::make_shared<NeedsAMatrix>(options));
}

}  // namespace
}  // namespace peakbench::galore

PEAKBENCH_STRATEGY_PLUGIN(peakbench::galore::apply)
