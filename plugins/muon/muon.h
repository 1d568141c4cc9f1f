// torch.optim.Muon for the hidden layers' matrices, the same operators in the same order, so that
// state, temporaries and results are the same to the bit; another rule for everything else. Source:
// torch/optim/_muon.py, _single_tensor_muon. Method: https://kellerjordan.github.io/posts/muon/
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench::muon {

struct MuonOptions {
  double lr = 1e-3, momentum = 0.95;
  double weight_decay = 0.1;  // decoupled
  bool nesterov = true;
  std::int64_t newton_schulz_steps = 5;
  bool match_rms_adamw = false;  // scale by 0.2 sqrt(max(n, m)), not by sqrt(max(1, n / m))
};

class Muon : public UpdateRule {
 public:
  // `is_hidden`: whether a matrix is a hidden layer's; what is no matrix never is.
  using IsHidden = std::function<bool(const Parameter&)>;
  Muon(MuonOptions options, IsHidden is_hidden, std::shared_ptr<UpdateRule> rest)
      : options_(options), is_hidden_(std::move(is_hidden)), rest_(std::move(rest)) {}

  // Matrices one at a time whatever the grouping, as torch.optim.Muon has no other kernels; then
  // the rest, grouped.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  void update_matrices(const std::vector<at::Tensor>& matrices);
  double adjusted_lr(const at::Tensor& matrix) const;

  MuonOptions options_;
  IsHidden is_hidden_;
  std::shared_ptr<UpdateRule> rest_;
  StateMap<at::Tensor> momentum_buffers_;
};

}  // namespace peakbench::muon
