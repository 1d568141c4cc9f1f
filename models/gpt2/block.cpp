#include "block.h"

#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/initialise.h"
#include "peakbench/observer.h"

namespace peakbench::gpt2 {

Block::Block(const Gpt2Config& config, const at::TensorOptions& options) {
  const auto make_norm = [&] {
    return std::make_shared<nn::LayerNorm>(config.width, kLayerNormEps, options);
  };
  ln_1 = register_module("ln_1", make_norm());
  attn = register_module("attn", std::make_shared<Attention>(config, options));
  ln_2 = register_module("ln_2", make_norm());
  mlp = register_module("mlp", std::make_shared<Mlp>(config, options));

  fill_normal(attn->c_attn->weight, kInitialDeviation);
  fill_normal(mlp->c_fc->weight, kInitialDeviation);
  // Both ways into the residual, less the more of them there are: GPT-2's paper, section 2.3.
  const double into_residual =
      kInitialDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  fill_normal(attn->c_proj->weight, into_residual);
  fill_normal(mlp->c_proj->weight, into_residual);
}

// Locals live as long as the reference's: attention's output until the block is through.
at::Tensor Block::forward(Model& model, const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = ln_1->forward(input);
  const at::Tensor attended =
      model.run_part("attention",
                     [attention = attn.get()](const std::vector<at::Tensor>& in) {
                       return attention->forward(in[0]);
                     },
                     {x});
  x = attended + input;

  const at::Tensor residual = x;
  x = ln_2->forward(x);
  const at::Tensor inner = model.run_part(
      "mlp", [of = mlp.get()](const std::vector<at::Tensor>& in) { return of->forward(in[0]); },
      {x});
  return residual + inner;
}

}  // namespace peakbench::gpt2
