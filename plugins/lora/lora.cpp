// LoRA and DoRA as peft does them: adapters beside linear layers, everything else frozen.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>
#include <unordered_set>

#include "peakbench/linear_parts.h"
#include "peakbench/nn.h"
#include "peakbench/plugin.h"

namespace peakbench::lora {
namespace {

struct AdapterShape {
  std::int64_t rank;
  double scaling;      // alpha / rank, or alpha / sqrt(rank)
  double dropout = 0;  // of the adapter's input
};

// A low-rank adapter beside a frozen linear layer: y = base(x) + B(A(dropout(x))) scaling.
//
// The operators and lifetimes of peft 0.21.2. Source: peft/tuners/lora/layer.py, class Linear,
// forward and reset_lora_parameters. https://arxiv.org/abs/2106.09685
//
// Parameters lora_A.default.weight: (rank, in) and lora_B.default.weight: (out, rank), on the
// base's device in `dtype`. A starts as torch.nn.Linear's weight does, B at zero.
class LowRankAdapter : public nn::LinearAdapter {
 public:
  LowRankAdapter(const nn::LinearLayer& base, const AdapterShape& shape, at::ScalarType dtype)
      : scaling_(shape.scaling), dropout_(shape.dropout) {
    const std::int64_t out = base.out_features(), in = base.in_features();
    const at::TensorOptions options = base.options().dtype(dtype);
    // A plain module: peft's ModuleDict of adapters by name.
    const auto add = [&](const std::string& name, std::int64_t from, std::int64_t to) {
      const auto adapters = register_module(name, std::make_shared<torch::nn::Module>());
      return adapters->register_module("default",
                                       std::make_shared<nn::Linear>(from, to, false, options));
    };
    a_ = add("lora_A", in, shape.rank);
    b_ = add("lora_B", shape.rank, out);

    at::NoGradGuard no_grad;
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));  // kaiming_uniform_(a=sqrt(5))
    a_->weight.uniform_(-bound, bound);
    b_->weight.zero_();
  }
  at::Tensor forward(const nn::LinearLayer& base, const at::Tensor& input) override {
    at::Tensor result = base.base_forward(input);  // (..., out)
    const at::ScalarType result_dtype = result.scalar_type();
    const at::Tensor x = input.to(dtype());
    result = add_to(result, base, x);
    return result.to(result_dtype);
  }

 protected:
  // The base's result with the adapter's part. x: (..., in) in the adapter's dtype.
  // One statement an operator: each intermediate is freed where Python frees it.
  virtual at::Tensor add_to(const at::Tensor& result, const nn::LinearLayer&, const at::Tensor& x) {
    at::Tensor update = low_rank(dropout_ > 0 ? at::dropout(x, dropout_, /*train=*/true) : x);
    update = at::mul(update, scaling());
    return result + update;
  }
  // B(A(x)), not scaled. (..., in) -> (..., out)
  at::Tensor low_rank(const at::Tensor& x) const { return b_->forward(a_->forward(x)); }
  at::ScalarType dtype() const { return a_->weight.scalar_type(); }
  // A Python number reaches an operator as a wrapped tensor, which autograd may keep (8 bytes).
  at::Tensor scaling() const { return at::native::wrapped_scalar_tensor(scaling_); }

 private:
  std::shared_ptr<nn::Linear> a_, b_;
  double scaling_, dropout_;
};

at::Tensor row_norm(const at::Tensor& matrix) {
  return at::linalg_norm(matrix, /*ord=*/std::nullopt, /*dim=*/at::IntArrayRef{1});
}

// A low-rank adapter whose result is turned, not lengthened: the layer's weight W + B A scaling is
// brought to length 1 row by row, and a trained vector, the magnitude, gives each row its length.
//
// The operators and lifetimes of peft 0.21.2 with dropout 0. Source: peft/tuners/lora/dora.py,
// class DoraLinearLayer. The norm counts as a constant in backward (section 4.3 of
// https://arxiv.org/abs/2402.09353).
//
// Adds the parameter lora_magnitude_vector.default.weight: (out). It starts at the norm of each row
// of the base's weight, so that the layer's result is what it was.
class DoraAdapter : public LowRankAdapter {
 public:
  DoraAdapter(const nn::LinearLayer& base, const AdapterShape& shape, at::ScalarType dtype)
      : LowRankAdapter(base, shape, dtype) {
    const auto magnitudes =
        register_module("lora_magnitude_vector", std::make_shared<torch::nn::Module>());
    const auto magnitude =
        magnitudes->register_module("default", std::make_shared<torch::nn::Module>());
    at::NoGradGuard no_grad;
    magnitude_ = magnitude->register_parameter("weight", row_norm(base.dense_weight()).to(dtype));
  }

 protected:
  // For a moment takes the base's weight in the adapter's dtype, where that is another, and three
  // matrices as large, besides an identity (in, in).
  at::Tensor add_to(const at::Tensor& result, const nn::LinearLayer& base,
                    const at::Tensor& x) override {
    // Named as in peft and alive until the end, as there.
    at::Tensor lora_weight =
        low_rank(at::eye(base.in_features(), base.options().dtype(dtype()))).t();
    lora_weight = lora_weight.to(x.scalar_type());  // (out, in)
    const at::Tensor weight = base.dense_weight().to(x.scalar_type());
    const at::Tensor norm = weight_norm(weight, lora_weight.detach()).detach();
    const at::Tensor scale = (magnitude_ / norm).view({1, -1});

    const at::Tensor lora_result = low_rank(x);  // (..., out)
    const at::Tensor base_result = base.bias.defined() ? result - base.bias : result;
    at::Tensor turned = at::sub(scale, at::native::wrapped_scalar_tensor(at::Scalar(1)));
    turned = turned * base_result;
    at::Tensor update = scale * lora_result;
    update = at::mul(update, scaling());
    turned = turned + update;
    update.reset();
    return result + turned;
  }

 private:
  // (out)
  at::Tensor weight_norm(const at::Tensor& weight, const at::Tensor& update) const {
    at::Tensor sum = at::mul(update, scaling());  // (out, in)
    sum = weight + sum;
    return row_norm(sum);
  }

  at::Tensor magnitude_;
};

struct LoraOptions {
  bool with_magnitude;
  std::int64_t rank;
  double alpha, dropout;
  bool rank_stabilised;
  std::string targets;
  bool in_model_dtype;

  LoraOptions(const std::string& id, const Options& options)
      : with_magnitude(id == "dora"),
        rank(options.integer("rank")),
        alpha(options.number("alpha")),
        dropout(with_magnitude ? 0 : options.number("dropout")),
        rank_stabilised(options.boolean("rslora")),
        targets(options.string("targets")),
        in_model_dtype(options.string("adapter_dtype") == "model") {}

  AdapterShape shape(std::optional<std::int64_t> own_rank) const {
    const std::int64_t used = own_rank.value_or(rank);
    const double size = static_cast<double>(used);
    return {used, alpha / (rank_stabilised ? std::sqrt(size) : size), dropout};
  }
  at::ScalarType dtype(const nn::LinearLayer& base) const {
    return in_model_dtype ? c10::typeMetaToScalarType(base.options().dtype()) : at::kFloat;
  }
};

std::shared_ptr<LowRankAdapter> make_adapter(const LoraOptions& options, const ChosenLinear& at) {
  const nn::LinearLayer& base = *at.linear.layer;
  const AdapterShape shape = options.shape(at.number);
  if (options.with_magnitude)
    return std::make_shared<DoraAdapter>(base, shape, options.dtype(base));
  return std::make_shared<LowRankAdapter>(base, shape, options.dtype(base));
}

class AddAdapters : public ModelTransform {
 public:
  explicit AddAdapters(const StrategyContext& context) : options_(context.id, context.options) {}

  void apply(Model& model) override {
    for (const ChosenLinear& chosen : choose_linears(model, options_.targets, kAttentionOrMlp)) {
      const auto adapter = make_adapter(options_, chosen);
      for (const at::Tensor& parameter : adapter->parameters())
        trained_.insert(parameter.unsafeGetTensorImpl());
      chosen.linear.layer->attach("lora", adapter);
    }
  }

  bool trains(const Parameter& parameter) const {
    return trained_.contains(parameter.tensor.unsafeGetTensorImpl());
  }

 private:
  LoraOptions options_;
  std::unordered_set<const at::TensorImpl*> trained_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const auto adapters = std::make_shared<AddAdapters>(context);
  recipe.adapters = adapters;
  recipe.freezing.push_back(
      [adapters](const Parameter& parameter) { return !adapters->trains(parameter); });
}

}  // namespace
}  // namespace peakbench::lora

PEAKBENCH_STRATEGY_PLUGIN(peakbench::lora::apply)
