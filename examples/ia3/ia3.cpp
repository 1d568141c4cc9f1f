// An adapter from outside: (IA)^3, https://arxiv.org/abs/2205.05638, with the operators and
// lifetimes of peft 0.21.2 (peft/tuners/ia3/layer.py, class Linear).
//
// An adapter takes the place of a linear layer's forward (nn::LinearAdapter) and is attached by a
// transform of the model; everything but the adapters is frozen.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <unordered_set>

#include "peakbench/linear_parts.h"
#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// Parameter `default`: (out, 1), or (1, in) where the input is scaled; in fp32, ones at first.
class Scale : public nn::LinearAdapter {
 public:
  Scale(const nn::LinearLayer& base, bool of_input) : of_input_(of_input) {
    const auto options = base.options().dtype(at::kFloat);
    const at::Tensor ones = of_input ? at::ones({1, base.in_features()}, options)
                                     : at::ones({base.out_features(), 1}, options);
    scale_ = register_parameter("default", ones);
  }

  at::Tensor forward(const nn::LinearLayer& base, const at::Tensor& x) override {
    // peft multiplies the vectors of all adapters, from 1 on. A Python number is a wrapped tensor.
    const at::Tensor scale =
        at::mul(scale_.flatten(), at::native::wrapped_scalar_tensor(at::Scalar(1)));
    if (!of_input_) return scaled(base.base_forward(x), scale);
    // peft converts the input, not the result alone: in 16 bits backward keeps the copy in fp32.
    const at::Tensor input = x.to(scale.scalar_type());
    // A name of its own: the product in fp32 is freed before the layer runs.
    const at::Tensor scaled_input = (input * scale).to(x.scalar_type());
    return base.base_forward(scaled_input);
  }

 private:
  static at::Tensor scaled(const at::Tensor& x, const at::Tensor& scale) {
    return (x * scale).to(x.scalar_type());
  }

  bool of_input_;
  at::Tensor scale_;
};

std::string parent(const std::string& path) { return path.substr(0, path.rfind('.')); }

class Ia3 : public ModelTransform {
 public:
  explicit Ia3(std::string targets) : targets_(std::move(targets)) {}

  void apply(Model& model) override {
    const auto chosen = choose_linears(model, targets_, {"k_proj:v_proj:qkv_proj:mlp"});
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto& [part, path, layer] = chosen[i].linear;
      const bool is_mlp = part == "mlp";
      const bool is_last =
          i + 1 == chosen.size() || parent(chosen[i + 1].linear.path) != parent(path);
      if (is_mlp && !is_last) continue;
      const auto adapter = std::make_shared<Scale>(*layer, /*of_input=*/is_mlp);
      trained_.insert(adapter->parameters().front().unsafeGetTensorImpl());
      layer->attach("ia3_l", adapter);
    }
  }

  bool trains(const Parameter& parameter) const {
    return trained_.contains(parameter.tensor.unsafeGetTensorImpl());
  }

 private:
  std::string targets_;
  std::unordered_set<const at::TensorImpl*> trained_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const auto adapters = std::make_shared<Ia3>(context.options.string("targets"));
  recipe.adapters = adapters;
  recipe.freezing.push_back(
      [adapters](const Parameter& parameter) { return !adapters->trains(parameter); });
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
