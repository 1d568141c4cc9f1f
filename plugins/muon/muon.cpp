// Muon for the matrices of the model's blocks; the rule that was there (the baseline's Adam or
// AdamW) for embeddings, output heads, biases and norms.
//
// As torch.optim.Muon, the same operators in the same order, so that state, temporaries and results
// are the same to the bit. Source: torch/optim/_muon.py, _single_tensor_muon. Method:
// https://kellerjordan.github.io/posts/muon/
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "orthogonalise.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace peakbench::muon {
namespace {

class Muon : public UpdateRule {
 public:
  // `blocks`: paths in the module tree. `rest`: the rule for what is no matrix in one of them.
  Muon(const Options& options, std::vector<std::string> blocks, std::shared_ptr<UpdateRule> rest)
      : lr_(options.number("lr")),
        momentum_(options.number("momentum")),
        weight_decay_(options.number("weight_decay")),
        nesterov_(options.boolean("nesterov")),
        newton_schulz_steps_(options.integer("ns_steps")),
        match_rms_adamw_(options.string("adjust_lr") == "match_rms_adamw"),
        blocks_(std::move(blocks)),
        rest_(std::move(rest)) {}

  // Matrices one at a time whatever the grouping, as torch.optim.Muon has no other kernels; then
  // the rest, grouped.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<at::Tensor> matrices;
    std::vector<Parameter> rest;
    for (const Parameter& parameter : parameters) {
      if (!parameter.tensor.grad().defined()) continue;
      if (parameter.tensor.dim() == 2 && is_in_block(parameter))
        matrices.push_back(parameter.tensor);
      else
        rest.push_back(parameter);
    }
    update_matrices(matrices);
    if (!rest.empty()) rest_->update(rest, grouping);
  }

  void visit_state(const StateVisitor& visit) override {
    for (auto& [matrix, buffer] : momentum_buffers_) visit(matrix, "momentum_buffer", buffer);
    rest_->visit_state(visit);
  }

  void forget(const at::Tensor& parameter) override {
    momentum_buffers_.forget(parameter);
    rest_->forget(parameter);
  }

 private:
  bool is_in_block(const Parameter& parameter) const {
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const std::string& block) {
      return parameter.name.starts_with(block + ".");
    });
  }

  void update_matrices(const std::vector<at::Tensor>& matrices) {
    for (const at::Tensor& matrix : matrices)
      momentum_buffers_.of(matrix, [&] { return at::zeros_like(matrix.grad()); });
    // Lives on into the next turn until it is assigned again, as the name does in _muon.py.
    at::Tensor update;
    for (const at::Tensor& matrix : matrices) {
      const at::Tensor& gradient = matrix.grad();
      at::Tensor& buffer = *momentum_buffers_.find(matrix);
      buffer.lerp_(gradient, 1 - momentum_);
      update = nesterov_ ? gradient.lerp(buffer, momentum_) : buffer;
      update = orthogonalise(update, newton_schulz_steps_);
      matrix.mul_(1 - lr_ * weight_decay_);
      matrix.add_(update, -adjusted_lr(matrix));
    }
  }

  double adjusted_lr(const at::Tensor& matrix) const {
    const auto rows = static_cast<double>(matrix.size(0));
    const auto columns = static_cast<double>(matrix.size(1));
    return lr_ * (match_rms_adamw_ ? 0.2 * std::sqrt(std::max(rows, columns))
                                   : std::sqrt(std::max(1.0, rows / columns)));
  }

  double lr_, momentum_, weight_decay_;  // the decay is decoupled
  bool nesterov_;
  std::int64_t newton_schulz_steps_;
  bool match_rms_adamw_;  // scales by 0.2 sqrt(max(n, m)), not by sqrt(max(1, n / m))
  std::vector<std::string> blocks_;
  std::shared_ptr<UpdateRule> rest_;
  StateMap<at::Tensor> momentum_buffers_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  recipe.update_rule =
      std::make_shared<Muon>(context.options, model.block_paths(), recipe.update_rule);
}

}  // namespace
}  // namespace peakbench::muon

PEAKBENCH_STRATEGY_PLUGIN(peakbench::muon::apply)
