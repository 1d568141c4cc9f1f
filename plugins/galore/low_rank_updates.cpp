#include "low_rank_updates.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "peakbench/observer.h"

namespace peakbench::galore {
namespace {

at::Tensor nothing_like(const at::Tensor& tensor) {
  return at::empty({0}, tensor.options().requires_grad(false));
}

}  // namespace

bool is_projected(const Parameter& parameter, const GaloreOptions& options) {
  const at::Tensor& matrix = parameter.tensor;
  if (matrix.dim() != 2 || std::min(matrix.size(0), matrix.size(1)) <= options.rank) return false;
  return std::any_of(options.blocks.begin(), options.blocks.end(), [&](const std::string& block) {
    return parameter.name.starts_with(block + ".");
  });
}

LowRankUpdates::LowRankUpdates(std::shared_ptr<UpdateRule> inner, GaloreOptions options)
    : inner_(std::move(inner)), options_(std::move(options)) {}

void LowRankUpdates::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
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

// The gradient goes; what is left of it is of low rank.
Parameter LowRankUpdates::project(const Parameter& parameter) {
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

void LowRankUpdates::project_back(const Parameter& parameter) {
  LowRank& matrix = low_rank_of(parameter.tensor);
  const at::Tensor change = matrix.projection.back(matrix.tensor);
  parameter.tensor.add_(change, options_.scale);
  matrix.tensor.set_data(nothing_like(parameter.tensor));
  matrix.tensor.mutable_grad().reset();
}

LowRank& LowRankUpdates::low_rank_of(const at::Tensor& parameter) {
  return matrices_.of(parameter, [&] {
    return LowRank{nothing_like(parameter), Projection(parameter, options_.rank)};
  });
}

void LowRankUpdates::visit_state(const StateVisitor& visit) {
  matrices_.visit_inner(*inner_, visit);
  for (auto& [parameter, matrix] : matrices_)
    if (matrix.projection.vectors.defined())
      visit(parameter, "projection", matrix.projection.vectors);
}

void LowRankUpdates::forget(const at::Tensor& parameter) { matrices_.forget(*inner_, parameter); }

}  // namespace peakbench::galore
