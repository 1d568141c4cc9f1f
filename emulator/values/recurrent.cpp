// cuDNN's recurrent networks, as PyTorch's own cells compute them.
#include <array>
#include <stdexcept>

#include "values/differentiate.h"
#include "values/equivalent_kernels.h"

namespace peakbench::values {
namespace {

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

}  // namespace

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

}  // namespace peakbench::values
