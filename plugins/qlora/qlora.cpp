#include "qlora.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "peakbench/plugin.h"

namespace peakbench::qlora {
namespace {

constexpr std::int64_t kGroup = 256;                      // blocks whose scales share a factor
constexpr std::int64_t kMostBlocks = (1 << 20) / kBlock;  // at a time, whole groups
// Keeps blocks of zeros, and groups of equal scales, from being divided by zero.
constexpr double kTiny = 1e-30;

at::Tensor make_codebook(const at::TensorOptions& options) {
  return at::tensor({-1.0000, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0000,  //
                     0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0000},
                    at::kDouble)
      .to(options);
}

// Blocks that are worked on at once, in groups of one size.
struct Piece {
  std::int64_t begin, blocks, group;
};

std::vector<Piece> pieces_of(std::int64_t blocks) {
  std::vector<Piece> pieces;
  const std::int64_t rest = blocks % kGroup, in_whole_groups = blocks - rest;
  for (std::int64_t begin = 0; begin < in_whole_groups; begin += kMostBlocks)
    pieces.push_back({begin, std::min(kMostBlocks, in_whole_groups - begin), kGroup});
  if (rest > 0) pieces.push_back({in_whole_groups, rest, rest});
  return pieces;
}

at::Tensor part_of(const at::Tensor& tensor, const Piece& piece, std::int64_t per_block) {
  return tensor.narrow(0, piece.begin * per_block, piece.blocks * per_block);
}

at::Tensor factors_of(const at::Tensor& factors, const Piece& piece) {
  return factors.narrow(0, piece.begin / kGroup, piece.blocks / piece.group);
}

// values: (blocks, 64), scales: (blocks) -> (blocks * 32) uint8
at::Tensor packed(const at::Tensor& values, const at::Tensor& scales, const at::Tensor& codebook) {
  const at::Tensor scaled = values / scales.clamp_min(kTiny).unsqueeze(1);
  at::Tensor distance = scaled.view({-1, 1}) - codebook;  // (values, 16)
  distance.abs_();
  at::Tensor index = std::get<1>(distance.min(-1));
  distance.reset();
  index = index.to(at::kByte).view({-1, 2});
  return index.select(1, 0).__lshift__(4).__or__(index.select(1, 1));
}

// scales: (groups, scales of a group), their mean taken off; written as int8, and what they were
// multiplied by: (groups).
void quantise_scales(const at::Tensor& scales, const at::Tensor& quantised,
                     const at::Tensor& factors) {
  const at::Tensor largest = scales.abs().amax(1);  // (groups)
  factors.copy_((largest.clamp_min(kTiny) * 2).reciprocal() * 256);
  const at::Tensor rounded = (scales * factors.unsqueeze(-1)).round().clamp(-128, 127);
  quantised.copy_(rounded.flatten());
}

at::Tensor scales_of(const Nf4& nf4, const Piece& piece) {
  const at::Tensor scales = part_of(nf4.scales, piece, 1);
  if (!nf4.factors.defined()) return scales.to(nf4.dtype());
  const at::Tensor grouped = scales.view({-1, piece.group});
  return (grouped / factors_of(nf4.factors, piece).unsqueeze(-1)).flatten().to(nf4.dtype()) +
         nf4.mean;
}

// (blocks * 64). Operators and lifetimes of NF4Tensor.get_original_weight.
at::Tensor dequantised(const Nf4& nf4, const Piece& piece) {
  const at::Tensor data = part_of(nf4.data, piece, kBlock / 2);
  const at::Tensor first_index = data.__rshift__(4).to(at::kLong);
  const at::Tensor second_index = data.__and__(15).to(at::kLong);
  const at::Tensor first = at::index(nf4.codebook, {first_index});
  const at::Tensor second = at::index(nf4.codebook, {second_index});
  const at::Tensor scales = scales_of(nf4, piece);
  const at::Tensor repeated = scales.unsqueeze(-1).expand({piece.blocks, kBlock / 2});
  const at::Tensor first_scaled = first * repeated.flatten();
  const at::Tensor second_scaled = second * repeated.flatten();
  return at::stack({first_scaled, second_scaled}, -1).view({-1});
}

}  // namespace

Nf4 quantise(const at::Tensor& matrix, bool double_quantisation) {
  at::NoGradGuard no_grad;
  const at::Tensor values = matrix.contiguous().view({-1, kBlock});
  const at::TensorOptions options = values.options();
  const std::int64_t blocks = values.size(0);
  Nf4 nf4;
  nf4.codebook = make_codebook(options);
  nf4.data = at::empty({values.numel() / 2}, options.dtype(at::kByte));
  at::Tensor scales = at::empty({blocks}, options);
  const std::vector<Piece> pieces = pieces_of(blocks);
  for (const Piece& piece : pieces) {
    const at::Tensor part = part_of(values, piece, 1);
    part_of(scales, piece, 1).copy_(part.abs().amax(1));
    part_of(nf4.data, piece, kBlock / 2)
        .copy_(packed(part, part_of(scales, piece, 1), nf4.codebook));
  }
  if (!double_quantisation) {
    nf4.scales = scales.to(at::kFloat);
    return nf4;
  }
  nf4.mean = scales.mean();
  scales = scales - nf4.mean;
  nf4.scales = at::empty({blocks}, options.dtype(at::kChar));
  nf4.factors = at::empty({(blocks + kGroup - 1) / kGroup}, options);
  for (const Piece& piece : pieces) {
    quantise_scales(part_of(scales, piece, 1).view({-1, piece.group}),
                    part_of(nf4.scales, piece, 1), factors_of(nf4.factors, piece));
  }
  return nf4;
}

at::Tensor dequantise(const Nf4& nf4, at::IntArrayRef shape) {
  const std::vector<Piece> pieces = pieces_of(nf4.scales.numel());
  if (pieces.size() == 1) return dequantised(nf4, pieces.front()).view(shape);
  at::Tensor values = at::empty({nf4.scales.numel() * kBlock}, nf4.codebook.options());
  for (const Piece& piece : pieces) part_of(values, piece, kBlock).copy_(dequantised(nf4, piece));
  return values.view(shape);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The whole weight, (out, in), in the dtype of what it is multiplied with.
at::Tensor whole(const Nf4& nf4, std::int64_t out, std::int64_t in, at::ScalarType dtype) {
  return dequantise(nf4, {out, in}).to(dtype);
}

class LinearNf4 : public torch::autograd::Function<LinearNf4> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Nf4& nf4,
                            std::int64_t out, std::int64_t in) {
    context->save_for_backward({nf4.data, nf4.scales, nf4.factors, nf4.mean, nf4.codebook});
    context->saved_data["out"] = out;
    context->saved_data["in"] = in;
    return at::linear(x, whole(nf4, out, in, x.scalar_type()));
  }

  // The weight is frozen: only x has a gradient.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor& gradient = gradients[0];  // (..., out)
    const variable_list saved = context->get_saved_variables();
    const Nf4 nf4{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor weight = whole(nf4, context->saved_data["out"].toInt(),
                                    context->saved_data["in"].toInt(), gradient.scalar_type());
    return {at::matmul(gradient, weight), {}, {}, {}};
  }
};

}  // namespace

Nf4Weight::Nf4Weight(const nn::LinearLayer& layer, bool double_quantisation)
    : nf4_(quantise(layer.dense_weight(), double_quantisation)),
      out_(layer.out_features()),
      in_(layer.in_features()) {
  register_buffer("quantized_data", nf4_.data);
  register_buffer("quantized_scalers", nf4_.scales);
  if (double_quantisation) {
    register_buffer("quantization_factor", nf4_.factors);
    register_buffer("scaler_mean", nf4_.mean);
  }
  register_buffer("nf4", nf4_.codebook);
}

at::Tensor Nf4Weight::linear(const at::Tensor& x, const at::Tensor& bias) {
  const at::Tensor product = LinearNf4::apply(x, nf4_, out_, in_);
  return bias.defined() ? product + bias : product;
}

at::Tensor Nf4Weight::dense() {
  at::NoGradGuard no_grad;
  return dequantise(nf4_, {out_, in_});
}

// QLoRA's base weights: the frozen linear layers in four bits a value. Adapters are another
// strategy.

namespace {

// All but the output head, as QLoRA leaves it.
class QuantiseLinears : public ModelTransform {
 public:
  explicit QuantiseLinears(bool double_quantisation) : double_quantisation_(double_quantisation) {}

  void apply(Model& model) override {
    bool any = false;
    for (const NamedLinear& linear : model.linears()) {
      if (linear.part == "output") continue;
      quantise(linear);
      any = true;
    }
    if (!any) throw Unsupported("this model has no linear layer but its output head");
  }

 private:
  // One layer after the other: only one is there in both forms.
  void quantise(const NamedLinear& linear) const {
    nn::LinearLayer& layer = *linear.layer;
    const std::int64_t values = layer.in_features() * layer.out_features();
    if (values % kBlock != 0)
      throw Unsupported(linear.path + " has " + std::to_string(values) +
                        " weights, which are no whole blocks of " + std::to_string(kBlock));
    layer.replace_weight(std::make_shared<Nf4Weight>(layer, double_quantisation_));
  }

  bool double_quantisation_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.base_weights = std::make_shared<QuantiseLinears>(context.options.boolean("double_quant"));
}

}  // namespace
}  // namespace peakbench::qlora

PEAKBENCH_STRATEGY_PLUGIN(peakbench::qlora::apply)
