// cuDNN's recurrent networks: how weights lie in their buffer, which PyTorch asks for piece by
// piece, and the sizes of what a forward pass keeps. Weights are exact: cuDNN documents which
// matrices and biases there are. The reserve space is a model: what the backward pass of the cell
// needs of each step. The workspace is the vendor's secret and is answered with none. Both are
// marked.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "core/entry.h"
#include "cudnn/cudnn.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::cudnn;

namespace {

// cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t, cudnnForwardMode_t.
constexpr int kLstm = 2, kGru = 3;
constexpr int kNoBias = 0, kDoubleBias = 2, kRecurrentBias = 3;
constexpr int kBidirectional = 1;
constexpr int kTraining = 1;

std::size_t bytes_of(int data_type) {
  constexpr int kDouble = 1, kHalf = 2, kBFloat16 = 9;
  if (data_type == kDouble) return 8;
  return data_type == kHalf || data_type == kBFloat16 ? 2 : 4;
}

struct Rnn {
  int cell = 0, bias = kDoubleBias, directions = 1, data_type = 0;
  std::int64_t input = 0, hidden = 0, projection = 0, layers = 0;

  std::int64_t gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  bool projects() const { return cell == kLstm && projection != hidden; }
  std::int64_t output() const { return projects() ? projection : hidden; }
  std::int64_t pseudo_layers() const { return layers * directions; }
  std::int64_t input_of(std::int64_t pseudo_layer) const {
    return pseudo_layer / directions == 0 ? input : output() * directions;
  }
  std::int64_t biases() const {
    return bias == kNoBias ? 0 : gates() * (bias == kDoubleBias ? 2 : 1);
  }
  std::int64_t matrix_elements(std::int64_t pseudo_layer) const {
    return gates() * hidden * (input_of(pseudo_layer) + output()) +
           (projects() ? projection * hidden : 0);
  }
  std::int64_t all_matrices(std::int64_t before_layer) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < before_layer; ++i) sum += matrix_elements(i);
    return sum;
  }
};

struct Piece {
  std::int64_t offset = -1, rows = 0, columns = 0;  // in elements; -1: there is none
};

// The matrix that `id` names: gates of the input, gates of the state, then the projection.
Piece matrix(const Rnn& rnn, std::int64_t layer, std::int64_t id) {
  const auto start = rnn.all_matrices(layer);
  const auto of_input = rnn.hidden * rnn.input_of(layer), of_state = rnn.hidden * rnn.output();
  const auto gates = rnn.gates();
  if (id < gates) return {start + id * of_input, rnn.hidden, rnn.input_of(layer)};
  if (id < 2 * gates)
    return {start + gates * of_input + (id - gates) * of_state, rnn.hidden, rnn.output()};
  if (id == 2 * gates && rnn.projects())
    return {start + gates * (of_input + of_state), rnn.projection, rnn.hidden};
  return {};
}

// The bias that `id` names; all biases lie behind all matrices.
Piece bias(const Rnn& rnn, std::int64_t layer, std::int64_t id) {
  if (id >= 2 * rnn.gates() || rnn.bias == kNoBias) return {};
  if (rnn.bias == kRecurrentBias) id -= rnn.gates();
  if (id < 0 || id >= rnn.biases()) return {};
  const auto start = rnn.all_matrices(rnn.pseudo_layers()) + layer * rnn.biases() * rnn.hidden;
  return {start + id * rnn.hidden, rnn.hidden, 1};
}

struct TensorShape {
  int data_type = 0;
  std::vector<int> sizes, strides;
};

struct Descriptors {
  std::mutex mutex;
  std::unordered_map<void*, Rnn> rnns;
  std::unordered_map<void*, std::int64_t> steps;  // of data descriptors: sequences' lengths, summed
  std::unordered_map<void*, TensorShape> pieces;  // tensor descriptors that a piece was put into
};

Descriptors& descriptors() {
  static auto* const descriptors = new Descriptors;
  return *descriptors;
}

void put_piece(void* descriptor, void** address, const void* weights, const Rnn& rnn,
               const Piece& piece) {
  if (address) *address = nullptr;
  if (!descriptor) return;
  TensorShape& shape = descriptors().pieces[descriptor];
  shape = {rnn.data_type, {0, 0, 0}, {0, 0, 0}};
  if (piece.offset < 0) return;
  const int rows = static_cast<int>(piece.rows), columns = static_cast<int>(piece.columns);
  shape.sizes = {1, rows, columns};
  shape.strides = {rows * columns, columns, 1};
  if (address)
    *address = const_cast<char*>(static_cast<const char*>(weights)) +
               piece.offset * bytes_of(rnn.data_type);
}

// Of each step and direction: the gates and the output, and of an LSTM its cell state, too.
std::size_t reserve_bytes(const Rnn& rnn, std::int64_t steps) {
  const auto kept = rnn.hidden * (rnn.gates() + (rnn.cell == kLstm ? 1 : 0)) + rnn.output();
  return rnn.pseudo_layers() * steps * kept * bytes_of(rnn.data_type);
}

}  // namespace

PEAKBENCH_ENTRY int cudnnDestroyRNNDescriptor(void* descriptor) {
  std::lock_guard lock(descriptors().mutex);
  descriptors().rnns.erase(descriptor);
  return kSuccess;
}
PEAKBENCH_ENTRY int cudnnDestroyRNNDataDescriptor(void* descriptor) {
  std::lock_guard lock(descriptors().mutex);
  descriptors().steps.erase(descriptor);
  return kSuccess;
}
PEAKBENCH_ENTRY int cudnnDestroyTensorDescriptor(void* descriptor) {
  std::lock_guard lock(descriptors().mutex);
  descriptors().pieces.erase(descriptor);
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnSetRNNDescriptor_v8(void* descriptor, int, int cell, int bias,
                                             int direction, int, int data_type, int, int, int input,
                                             int hidden, int projection, int layers, void*,
                                             unsigned) {
  if (!descriptor || hidden < 1 || layers < 1) return kBadParameter;
  std::lock_guard lock(descriptors().mutex);
  descriptors().rnns[descriptor] = {cell,  bias,   direction == kBidirectional ? 2 : 1, data_type,
                                    input, hidden, projection ? projection : hidden,    layers};
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnSetRNNDataDescriptor(void* descriptor, int, int, int, int batch, int,
                                              const int* lengths, void*) {
  if (!descriptor || !lengths || batch < 1) return kBadParameter;
  std::lock_guard lock(descriptors().mutex);
  descriptors().steps[descriptor] = std::accumulate(lengths, lengths + batch, std::int64_t{0});
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnGetRNNWeightSpaceSize(void*, void* descriptor, std::size_t* out) {
  std::lock_guard lock(descriptors().mutex);
  const auto found = descriptors().rnns.find(descriptor);
  if (found == descriptors().rnns.end()) return kBadParameter;
  const Rnn& rnn = found->second;
  const auto layers = rnn.pseudo_layers();
  return give(
      out, static_cast<std::size_t>(rnn.all_matrices(layers) + layers * rnn.biases() * rnn.hidden) *
               bytes_of(rnn.data_type));
}

PEAKBENCH_ENTRY int cudnnGetRNNWeightParams(void*, void* descriptor, int layer, std::size_t,
                                            const void* weights, int id, void* matrix_descriptor,
                                            void** matrix_address, void* bias_descriptor,
                                            void** bias_address) {
  std::lock_guard lock(descriptors().mutex);
  const auto found = descriptors().rnns.find(descriptor);
  if (found == descriptors().rnns.end() || layer < 0 || layer >= found->second.pseudo_layers())
    return kBadParameter;
  const Rnn& rnn = found->second;
  put_piece(matrix_descriptor, matrix_address, weights, rnn, matrix(rnn, layer, id));
  put_piece(bias_descriptor, bias_address, weights, rnn, bias(rnn, layer, id));
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnGetTensorNdDescriptor(void* descriptor, int requested, int* data_type,
                                               int* count, int* sizes, int* strides) {
  std::lock_guard lock(descriptors().mutex);
  const auto found = descriptors().pieces.find(descriptor);
  if (found == descriptors().pieces.end()) {
    refuse("cudnnGetTensorNdDescriptor (of a tensor that is not an RNN's weight)");
    return kBadParameter;
  }
  const TensorShape& shape = found->second;
  const int have = static_cast<int>(shape.sizes.size());
  for (int i = 0; i < std::min(requested, have); ++i) {
    sizes[i] = shape.sizes[i];
    strides[i] = shape.strides[i];
  }
  give(data_type, shape.data_type);
  return give(count, have);
}

PEAKBENCH_ENTRY int cudnnGetRNNTempSpaceSizes(void*, void* descriptor, int mode, void* data,
                                              std::size_t* workspace, std::size_t* reserve) {
  std::lock_guard lock(descriptors().mutex);
  const auto found = descriptors().rnns.find(descriptor);
  const auto steps = descriptors().steps.find(data);
  if (found == descriptors().rnns.end() || steps == descriptors().steps.end()) return kBadParameter;
  missing_workspace(Workspace::cudnn_rnn);
  if (mode == kTraining) enter(Fact::reserve_space);
  give(workspace, std::size_t{0});
  return give(reserve, mode == kTraining ? reserve_bytes(found->second, steps->second) : 0);
}
