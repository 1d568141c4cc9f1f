#include "values/equivalents.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>

#include "values/differentiate.h"

namespace peakbench::values {
namespace {

// The functions take their operator's arguments off the stack (native_functions.yaml has their
// order) and put the results there.

std::optional<at::Tensor> optional_tensor(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  return value.toTensor();
}

// cuDNN's convolutions, of which none has a bias but the fused ones, as at::convolution computes
// them on the CPU.

struct Geometry {
  std::vector<std::int64_t> padding, stride, dilation;
  std::int64_t groups;
};

at::Tensor convolve(const Stack& stack, const std::optional<at::Tensor>& bias, const Geometry& g) {
  return at::convolution(stack[0].toTensor(), stack[1].toTensor(), bias, g.stride, g.padding,
                         g.dilation, false, std::vector<std::int64_t>(g.padding.size(), 0),
                         g.groups);
}

// Of the fused ones: (..., stride, padding, dilation, groups), from this argument on.
Geometry geometry_from(const Stack& stack, std::size_t at) {
  return {stack[at + 1].toIntVector(), stack[at].toIntVector(), stack[at + 2].toIntVector(),
          stack[at + 3].toInt()};
}

// (input, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32)
void convolution(Stack& stack) {
  at::Tensor out = convolve(
      stack, std::nullopt,
      {stack[2].toIntVector(), stack[3].toIntVector(), stack[4].toIntVector(), stack[5].toInt()});
  stack = {std::move(out)};
}

// (input, weight, padding, output_padding, stride, dilation, groups, ...)
void transposed_convolution(Stack& stack) {
  at::Tensor out =
      at::convolution(stack[0].toTensor(), stack[1].toTensor(), std::nullopt,
                      stack[4].toIntVector(), stack[2].toIntVector(), stack[5].toIntVector(), true,
                      stack[3].toIntVector(), stack[6].toInt());
  stack = {std::move(out)};
}

// (input, weight, bias, stride, padding, dilation, groups)
void convolution_relu(Stack& stack) {
  at::Tensor out = convolve(stack, optional_tensor(stack[2]), geometry_from(stack, 3));
  stack = {out.relu_()};
}

// (input, weight, z, alpha, bias, stride, padding, dilation, groups)
void convolution_add_relu(Stack& stack) {
  const auto alpha = stack[3].isNone() ? at::Scalar(1) : stack[3].toScalar();
  at::Tensor out = convolve(stack, optional_tensor(stack[4]), geometry_from(stack, 5));
  out = out.add_(stack[2].toTensor(), alpha).relu_();
  stack = {std::move(out)};
}

// Batch normalisation in the two forms that only CUDA has: cuDNN's, and in parts, between which
// torch.nn.SyncBatchNorm gathers statistics of all ranks (torch/nn/modules/_functions.py; the
// formulas are those of aten/src/ATen/native/cuda/Normalization.cuh).

// All but the channels, which are dimension 1.
std::vector<std::int64_t> but_channels(const at::Tensor& input) {
  std::vector<std::int64_t> dims{0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// Of one number a channel, for an input of so many dimensions.
at::Tensor by_channel(const at::Tensor& one, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = one.numel();
  return one.view(shape);
}

// Statistics are of single precision where the input has less.
at::Tensor widened(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

// running = (1 - momentum) * running + momentum * now
void move_towards(const c10::IValue& running, const at::Tensor& now, double momentum) {
  if (const auto tensor = optional_tensor(running)) tensor->mul_(1 - momentum).add_(now, momentum);
}

// Of each rank that took part, how many values a channel has.
at::Tensor counts_of(const c10::IValue& counts, const at::Tensor& means) {
  if (counts.isInt())
    return at::full({means.size(0), 1}, counts.toInt(), means.options().dtype(at::kDouble));
  return counts.toTensor().reshape({means.size(0), 1}).to(at::kDouble);
}

// (input, weight, bias, running_mean, running_var, training, momentum, epsilon)
void batch_norm(Stack& stack) {
  auto [out, mean, deviation] =
      at::native_batch_norm(stack[0].toTensor(), stack[1].toTensor(), optional_tensor(stack[2]),
                            optional_tensor(stack[3]), optional_tensor(stack[4]), stack[5].toBool(),
                            stack[6].toDouble(), stack[7].toDouble());
  stack = {out, mean, deviation};
}

// (input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, reserve);
// save_var is 1 / deviation, as above.
void batch_norm_backward(Stack& stack) {
  auto [input, weight, bias] = at::native_batch_norm_backward(
      stack[1].toTensor(), stack[0].toTensor(), optional_tensor(stack[2]),
      optional_tensor(stack[3]), optional_tensor(stack[4]), optional_tensor(stack[5]),
      optional_tensor(stack[6]), true, stack[7].toDouble(), {true, true, true});
  stack = {input, weight, bias};
}

// (input, eps) -> (mean, 1 / deviation)
void batch_norm_stats(Stack& stack) {
  const at::Tensor input = widened(stack[0].toTensor());
  auto [variance, mean] = at::var_mean(input, but_channels(input), 0);
  stack = {mean, (variance + stack[1].toDouble()).rsqrt()};
}

// (input, means, invstds, running_mean, running_var, momentum, eps, counts), the second and third a
// row a rank -> (mean, 1 / deviation) of all together
void batch_norm_gather_stats(Stack& stack) {
  const at::Tensor means = stack[1].toTensor().to(at::kDouble);
  const at::Tensor variances = stack[2].toTensor().to(at::kDouble).pow(-2).sub(stack[6].toDouble());
  const double momentum = stack[5].toDouble();
  const at::Tensor counts = counts_of(stack[7], means), all = counts.sum();
  const at::Tensor mean = (means * counts).sum(0) / all;
  const at::Tensor squares = ((variances + (means - mean).square()) * counts).sum(0);
  move_towards(stack[3], mean, momentum);
  move_towards(stack[4], squares / (all - 1), momentum);
  stack = {mean, (squares / all + stack[6].toDouble()).rsqrt()};
}

// (input, weight, bias, mean, invstd, eps)
void batch_norm_elements(Stack& stack) {
  const at::Tensor input = widened(stack[0].toTensor());
  at::Tensor out =
      (input - by_channel(stack[3].toTensor(), input)) * by_channel(stack[4].toTensor(), input);
  if (const auto weight = optional_tensor(stack[1])) out = out * by_channel(*weight, input);
  if (const auto bias = optional_tensor(stack[2])) out = out + by_channel(*bias, input);
  stack = {std::move(out)};
}

// (grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g) -> (sum_dy, sum_dy_xmu,
// grad_weight, grad_bias)
void batch_norm_backward_sums(Stack& stack) {
  const at::Tensor gradient = widened(stack[0].toTensor()), input = widened(stack[1].toTensor());
  const auto dims = but_channels(input);
  const at::Tensor sum = gradient.sum(dims);
  const at::Tensor weighted =
      (gradient * (input - by_channel(stack[2].toTensor(), input))).sum(dims);
  stack = {sum, weighted, weighted * stack[3].toTensor(), sum.clone()};
}

// (grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count)
void batch_norm_backward_elements(Stack& stack) {
  const at::Tensor gradient = widened(stack[0].toTensor()), input = widened(stack[1].toTensor());
  const at::Tensor inverse = stack[3].toTensor();
  const at::Tensor all = stack[7].toTensor().sum().to(at::kDouble);
  const at::Tensor mean_gradient = stack[5].toTensor() / all;
  const at::Tensor slope = stack[6].toTensor() / all * inverse.square();
  const auto weight = optional_tensor(stack[4]);
  const at::Tensor factor = weight ? inverse * *weight : inverse;
  stack = {(gradient - by_channel(mean_gradient, input) -
            (input - by_channel(stack[2].toTensor(), input)) * by_channel(slope, input)) *
           by_channel(factor, input)};
}

// The fused attentions, as PyTorch's own formula computes them. Of a backward pass that dropped
// something, the CPU cannot know what: those throw.

struct Attention {
  at::Tensor query, key, value;
  std::optional<at::Tensor> mask;
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale;

  at::Tensor out() const {
    return std::get<0>(at::_scaled_dot_product_attention_math(
        query, key, value, mask, dropout, causal, {}, scale, query.size(1) != key.size(1)));
  }
};

// Query, key and value come one behind the other; the others stand at other places in each.
struct Places {
  int query, mask, dropout, causal, scale;
};

Attention attention_of(const Stack& stack, const Places& places) {
  const auto at = [&](int index) -> const c10::IValue& {
    return stack[static_cast<std::size_t>(index)];
  };
  return {.query = at(places.query).toTensor(),
          .key = at(places.query + 1).toTensor(),
          .value = at(places.query + 2).toTensor(),
          .mask = places.mask < 0 ? std::nullopt : optional_tensor(at(places.mask)),
          .dropout = at(places.dropout).toDouble(),
          .causal = at(places.causal).toBool(),
          .scale = at(places.scale).isNone() ? std::nullopt
                                             : std::optional(at(places.scale).toDouble())};
}

template <Places places>
void attend(Stack& stack) {
  stack = {attention_of(stack, places).out()};
}

// The gradients of query, key, value and mask; that of the output comes first.
template <Places places>
void attend_backward(Stack& stack) {
  const Differentiable differentiable;
  Attention attention = attention_of(stack, places);
  if (attention.dropout != 0) C10_THROW_ERROR(Error, "what was dropped is not known");
  attention.query = leaf_of(attention.query);
  attention.key = leaf_of(attention.key);
  attention.value = leaf_of(attention.value);
  const at::Tensor mask = attention.mask ? leaf_of(*attention.mask) : at::Tensor();
  if (attention.mask) attention.mask = mask;
  const auto found = gradients_of({attention.out()}, {stack[0].toTensor()},
                                  {attention.query, attention.key, attention.value, mask});
  stack = {found[0], found[1], found[2], found[3]};
}

// cuDNN's recurrent networks, as PyTorch's own cells compute them.

// Arguments of _cudnn_rnn and _cudnn_rnn_backward, where they stand.
struct Positions {
  std::size_t hidden, mode, layers;  // others lie beside these
};
constexpr Positions kOfForward{4, 6, 9}, kOfBackward{4, 10, 13};

struct Recurrent {
  Recurrent(const Stack& stack, const Positions& at)
      : input(stack[0].toTensor()),
        weights(stack[1].toTensorVector()),
        // Of each layer and direction there are two matrices, two biases, a projection.
        biases(stack[2].toInt() >= 4),
        hidden(stack[at.hidden].toTensor()),
        cell(optional_tensor(stack[at.hidden + 1])),
        mode(stack[at.mode].toInt()),
        layers(stack[at.layers].toInt()),
        batch_first(stack[at.layers + 1].toBool()),
        dropout(stack[at.layers + 2].toDouble()),
        train(stack[at.layers + 3].toBool()),
        bidirectional(stack[at.layers + 4].toBool()),
        rows(stack[at.layers + 5].toIntVector()) {}

  // Output, hidden state, and an LSTM's cell state.
  std::vector<at::Tensor> run() const {
    switch (mode) {  // cudnnRNNMode_t
      case 0:
        return one_state([](const auto&... all) { return at::rnn_relu(all...); });
      case 1:
        return one_state([](const auto&... all) { return at::rnn_tanh(all...); });
      case 2:
        return lstm();
      default:
        return one_state([](const auto&... all) { return at::gru(all...); });
    }
  }

  at::Tensor input;
  std::vector<at::Tensor> weights;
  bool biases;
  at::Tensor hidden;
  std::optional<at::Tensor> cell;
  std::int64_t mode, layers;
  bool batch_first;
  double dropout;
  bool train, bidirectional;
  std::vector<std::int64_t> rows;  // of a packed sequence: how many there are at each step

 private:
  bool packed() const { return !rows.empty(); }
  at::Tensor rows_tensor() const { return at::tensor(rows, at::kLong); }

  std::vector<at::Tensor> lstm() const {
    const std::array<at::Tensor, 2> state{hidden, cell.value()};
    auto [out, last, last_cell] = packed() ? at::lstm(input, rows_tensor(), state, weights, biases,
                                                      layers, dropout, train, bidirectional)
                                           : at::lstm(input, state, weights, biases, layers,
                                                      dropout, train, bidirectional, batch_first);
    return {out, last, last_cell};
  }

  // gru, rnn_relu or rnn_tanh, which have overloads for packed and for padded sequences.
  template <typename Function>
  std::vector<at::Tensor> one_state(Function function) const {
    auto [out, last] = packed() ? function(input, rows_tensor(), hidden, weights, biases, layers,
                                           dropout, train, bidirectional)
                                : function(input, hidden, weights, biases, layers, dropout, train,
                                           bidirectional, batch_first);
    return {out, last};
  }
};

at::Tensor or_undefined(const c10::IValue& value) {
  return optional_tensor(value).value_or(at::Tensor());
}

void recurrent(Stack& stack) {
  const auto results = Recurrent(stack, kOfForward).run();
  stack.assign(results.begin(), results.end());
}

// The gradients of the input, the states and the weights.
void recurrent_backward(Stack& stack) {
  const Differentiable differentiable;
  Recurrent r(stack, kOfBackward);
  if (r.train && r.dropout != 0) C10_THROW_ERROR(Error, "what was dropped is not known");
  r.input = leaf_of(r.input);
  r.hidden = leaf_of(r.hidden);
  if (r.cell) r.cell = leaf_of(*r.cell);
  for (at::Tensor& weight : r.weights) weight = leaf_of(weight);
  std::vector<at::Tensor> leaves{r.input, r.hidden, r.cell.value_or(at::Tensor())};
  leaves.insert(leaves.end(), r.weights.begin(), r.weights.end());
  const std::vector<at::Tensor> given{or_undefined(stack[7]), or_undefined(stack[8]),
                                      or_undefined(stack[9])};
  const auto found = gradients_of(r.run(), given, leaves);
  constexpr std::ptrdiff_t kStates = 3;
  stack = {found[0], found[1], found[2],
           c10::List<at::Tensor>(std::vector<at::Tensor>(found.begin() + kStates, found.end()))};
}

constexpr std::uint32_t bits(std::initializer_list<int> arguments) {
  std::uint32_t all = 0;
  for (const int argument : arguments) all |= 1U << argument;
  return all;
}

constexpr auto kEquivalents = std::to_array<Equivalent>({
    {"aten::cudnn_convolution", convolution},
    {"aten::cudnn_convolution_transpose", transposed_convolution},
    {"aten::cudnn_convolution_relu", convolution_relu},
    {"aten::cudnn_convolution_add_relu", convolution_add_relu},
    {"aten::cudnn_batch_norm", batch_norm},
    {"aten::cudnn_batch_norm_backward", batch_norm_backward, bits({8})},
    {"aten::batch_norm_stats", batch_norm_stats},
    {"aten::batch_norm_gather_stats", batch_norm_gather_stats},
    {"aten::batch_norm_gather_stats_with_counts", batch_norm_gather_stats},
    {"aten::batch_norm_elemt", batch_norm_elements},
    {"aten::batch_norm_backward_reduce", batch_norm_backward_sums},
    {"aten::batch_norm_backward_elemt", batch_norm_backward_elements},
    {"aten::_scaled_dot_product_flash_attention", attend<Places{0, -1, 3, 4, 6}>},
    {"aten::_scaled_dot_product_flash_attention_backward",
     attend_backward<Places{1, -1, 10, 11, 14}>, bits({4, 5, 6, 7, 12, 13})},
    {"aten::_scaled_dot_product_efficient_attention", attend<Places{0, 3, 5, 6, 7}>},
    {"aten::_scaled_dot_product_efficient_attention_backward",
     attend_backward<Places{1, 4, 9, 11, 12}>, bits({5, 6, 7, 8})},
    {"aten::_scaled_dot_product_cudnn_attention", attend<Places{0, 3, 5, 6, 8}>},
    {"aten::_scaled_dot_product_cudnn_attention_backward",
     attend_backward<Places{1, 8, 13, 14, 15}>, bits({4, 5, 6, 7, 9, 10})},
    {"aten::_cudnn_rnn", recurrent},
    {"aten::_cudnn_rnn_backward", recurrent_backward, bits({3, 6, 19, 20})},
});

}  // namespace

const Equivalent* equivalent_of(std::string_view name) {
  const auto* found = std::ranges::find(kEquivalents, name, &Equivalent::name);
  return found == kEquivalents.end() ? nullptr : found;
}

}  // namespace peakbench::values
