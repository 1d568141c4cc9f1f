#include "values/equivalents.h"

#include <ATen/ATen.h>

#include <array>

namespace peakbench::values {
namespace {

using Stack = std::vector<c10::IValue>;

std::optional<at::Tensor> optional_tensor(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  return value.toTensor();
}

// (input, weight, bias, running_mean, running_var, training, momentum, epsilon)
void batch_norm(Stack& stack) {
  auto [out, mean, deviation] =
      at::native_batch_norm(stack[0].toTensor(), stack[1].toTensor(), optional_tensor(stack[2]),
                            optional_tensor(stack[3]), optional_tensor(stack[4]), stack[5].toBool(),
                            stack[6].toDouble(), stack[7].toDouble());
  stack = {out, mean, deviation};
}

// Query, key and value come first; the others stand at other places in each.
struct Places {
  int mask, dropout, causal, scale;
};

void attend(Stack& stack, const Places& places) {
  const auto place = [&](int index) -> const c10::IValue& {
    return stack[static_cast<std::size_t>(index)];
  };
  const at::Tensor &query = place(0).toTensor(), &key = place(1).toTensor();
  const auto mask = places.mask < 0 ? std::nullopt : optional_tensor(place(places.mask));
  const auto scale =
      place(places.scale).isNone() ? std::nullopt : std::optional(place(places.scale).toDouble());
  auto out = std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, place(2).toTensor(), mask, place(places.dropout).toDouble(),
      place(places.causal).toBool(), {}, scale, query.size(1) != key.size(1)));
  stack = {std::move(out)};
}

void flash_attention(Stack& stack) { attend(stack, {-1, 3, 4, 6}); }
void efficient_attention(Stack& stack) { attend(stack, {3, 5, 6, 7}); }
void cudnn_attention(Stack& stack) { attend(stack, {3, 5, 6, 8}); }

// _cudnn_rnn's arguments.
struct Recurrent {
  explicit Recurrent(const Stack& stack)
      : input(stack[0].toTensor()),
        weights(stack[1].toTensorVector()),
        biases(stack[2].toInt() >= 4),  // of each layer: two matrices, two biases, a projection
        hidden(stack[4].toTensor()),
        cell(optional_tensor(stack[5])),
        mode(stack[6].toInt()),
        layers(stack[9].toInt()),
        batch_first(stack[10].toBool()),
        dropout(stack[11].toDouble()),
        train(stack[12].toBool()),
        bidirectional(stack[13].toBool()),
        rows(stack[14].toIntVector()) {}

  bool packed() const { return !rows.empty(); }
  at::Tensor rows_tensor() const { return at::tensor(rows, at::kLong); }

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
};

void lstm(const Recurrent& r, Stack& stack) {
  const std::array<at::Tensor, 2> state{r.hidden, r.cell.value()};
  auto [out, hidden, cell] = r.packed()
                                 ? at::lstm(r.input, r.rows_tensor(), state, r.weights, r.biases,
                                            r.layers, r.dropout, r.train, r.bidirectional)
                                 : at::lstm(r.input, state, r.weights, r.biases, r.layers,
                                            r.dropout, r.train, r.bidirectional, r.batch_first);
  stack = {out, hidden, cell};
}

// gru, rnn_relu or rnn_tanh, which have overloads for packed and for padded sequences.
template <typename Function>
void one_state(const Recurrent& r, Stack& stack, Function function) {
  auto [out, hidden] = r.packed()
                           ? function(r.input, r.rows_tensor(), r.hidden, r.weights, r.biases,
                                      r.layers, r.dropout, r.train, r.bidirectional)
                           : function(r.input, r.hidden, r.weights, r.biases, r.layers, r.dropout,
                                      r.train, r.bidirectional, r.batch_first);
  stack = {out, hidden};
}

void recurrent(Stack& stack) {
  const Recurrent r(stack);
  switch (r.mode) {  // cudnnRNNMode_t
    case 0:
      return one_state(r, stack, [](const auto&... all) { return at::rnn_relu(all...); });
    case 1:
      return one_state(r, stack, [](const auto&... all) { return at::rnn_tanh(all...); });
    case 2:
      return lstm(r, stack);
    default:
      return one_state(r, stack, [](const auto&... all) { return at::gru(all...); });
  }
}

struct Named {
  std::string_view name;
  Equivalent equivalent;
};
constexpr std::array<Named, 5> kEquivalents = {
    {{"aten::cudnn_batch_norm", batch_norm},
     {"aten::_scaled_dot_product_flash_attention", flash_attention},
     {"aten::_scaled_dot_product_efficient_attention", efficient_attention},
     {"aten::_scaled_dot_product_cudnn_attention", cudnn_attention},
     {"aten::_cudnn_rnn", recurrent}}};

}  // namespace

Equivalent equivalent_of(std::string_view name) {
  for (const Named& one : kEquivalents)
    if (one.name == name) return one.equivalent;
  return nullptr;
}

}  // namespace peakbench::values
