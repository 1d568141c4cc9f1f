// Tiled MLP, as Arctic Long Sequence Training has it (https://arxiv.org/abs/2506.13996,
// section 3.1; DeepSpeed, runtime/sequence_parallel/ulysses_sp.py, TiledMLP): an MLP treats each
// position by itself, so that it can run on a part of the sequence after the other.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace {

using namespace peakbench;
namespace autograd = torch::autograd;

at::Tensor only(std::vector<at::Tensor> outputs) {
  if (outputs.size() == 1) return std::move(outputs[0]);
  throw Unsupported("my-tiled-mlp: this model's MLP puts out more than the hidden state");
}

// What backward runs again, where autograd keeps values.
struct Kept : torch::CustomClassHolder {
  Kept(BlockFunction f, std::int64_t n) : function(std::move(f)), tiles(n) {}
  BlockFunction function;
  std::int64_t tiles;
};

// Gives each tile its gradient where the whole input's is: backward adds to it.
void share_gradient(at::Tensor& tile, const at::Tensor& whole, std::int64_t start) {
  tile.requires_grad_(true);
  tile.mutable_grad() = whole.narrow(0, start, tile.size(0));
}

class Tiled : public autograd::Function<Tiled> {
 public:
  // x: (B, T, C) -> (B, T, C). Without grad mode: nothing of a tile is kept.
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& x,
                            const BlockFunction& function, std::int64_t tiles) {
    context->save_for_backward({x});
    context->saved_data["kept"] =
        c10::IValue::make_capsule(c10::make_intrusive<Kept>(function, tiles));
    std::vector<at::Tensor> outputs;
    for (const at::Tensor& tile : x.chunk(tiles, -2)) outputs.push_back(only(function({tile})));
    return at::cat(outputs, -2);
  }

  // A backward inside of backward for each tile: parameters' gradients add up in place.
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          const autograd::variable_list& gradients) {
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto& kept = static_cast<const Kept&>(*capsule);
    const at::Tensor whole = context->get_saved_variables().at(0).detach();
    // Joined, as a tile of several sequences would not lie together in memory.
    const at::Tensor x = whole.view({-1, whole.size(-1)});
    const at::Tensor incoming = gradients.at(0).reshape_as(x);
    const at::Tensor gradient = at::zeros_like(x);
    at::Tensor output;  // until the next tile's takes its place
    std::int64_t start = 0;
    for (at::Tensor& tile : x.chunk(kept.tiles, 0)) {
      share_gradient(tile, gradient, start);
      {
        const at::AutoGradMode grad_mode(true);
        const RecomputeScope recompute;
        output = only(kept.function({tile}));
      }
      autograd::backward({output}, {incoming.narrow(0, start, tile.size(0))});
      start += tile.size(0);
    }
    return {gradient.view_as(whole), {}, {}};
  }
};

class TiledMlp : public BlockWrapper {
 public:
  explicit TiledMlp(std::int64_t tiles) : tiles_(tiles) {}

  std::vector<std::string> parts() const override { return {"mlp"}; }
  std::vector<at::Tensor> run(std::size_t, std::size_t, const BlockFunction& mlp,
                              const std::vector<at::Tensor>& inputs) override {
    if (inputs.size() != 1)
      throw Unsupported("my-tiled-mlp: this model's MLP takes more than the hidden state");
    // Autograd asks only those for gradients that depend on something trained.
    if (at::GradMode::is_enabled() && !inputs[0].requires_grad()) return mlp(inputs);
    return {Tiled::apply(inputs[0], mlp, tiles_)};
  }

 private:
  std::int64_t tiles_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint,
                                     std::make_shared<TiledMlp>(context.options.integer("tiles")));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
