#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peakbench/stand_ins.h"

namespace peakbench::galore {

// A matrix's gradient to low rank and back. Source: galore_torch/galore_projector.py (GaLore 1.0),
// proj_type "std".

// Of an (m, n) matrix, from the left where m < n, from the right otherwise: the shorter side
// becomes `rank`.
class Projection {
 public:
  Projection(const at::Tensor& matrix, std::int64_t rank);

  std::vector<std::int64_t> low_rank_shape() const;
  // The `rank` leading singular vectors of the gradient's shorter side. In fp32 whatever the
  // gradient's dtype; the decomposition's own results are gone when this returns (the original
  // keeps a view of them, and so all of them).
  void fit(const at::Tensor& gradient);
  at::Tensor project(const at::Tensor& gradient) const;  // (m, n) -> low_rank_shape()
  at::Tensor back(const at::Tensor& low_rank) const;     // low_rank_shape() -> (m, n)

  // (m, rank) or (rank, n), in the gradient's dtype; undefined before the first fit.
  at::Tensor vectors;

 private:
  std::int64_t rows_, columns_, rank_;
  bool from_left_;
};

// Any update rule on projected gradients.
//
// The rule is given a stand-in of low rank that is zero before each update, and its change is
// projected back to the weights: the paper's algorithm for any rule. A decay of the weights that is
// part of the rule acts on the stand-in, and so not at all. https://arxiv.org/abs/2403.03507

struct GaloreOptions {
  std::int64_t rank = 128, update_gap = 200;
  double scale = 0.25;
  std::vector<std::string> blocks;  // paths in the module tree; matrices in them are projected
};

bool is_projected(const Parameter& parameter, const GaloreOptions& options);

// One matrix. Between updates the stand-in holds no memory: only the projection and the rule's
// state stay.
struct LowRank {
  at::Tensor tensor;
  Projection projection;
  std::int64_t updates = 0;
};

class LowRankUpdates : public UpdateRule {
 public:
  LowRankUpdates(std::shared_ptr<UpdateRule> inner, GaloreOptions options);
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  Parameter project(const Parameter& parameter);
  void project_back(const Parameter& parameter);
  LowRank& low_rank_of(const at::Tensor& parameter);

  std::shared_ptr<UpdateRule> inner_;
  GaloreOptions options_;
  StandIns<LowRank> matrices_;
};

}  // namespace peakbench::galore
