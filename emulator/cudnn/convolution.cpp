#include "cudnn/convolution.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace peakbench::emulator::cudnn {
namespace {

using Sizes = std::vector<std::int64_t>;

// Which of an operation's descriptors is what.
struct PassRow {
  int type;
  ConvolutionPass pass;
  int convolution, weight, input, output;
};
constexpr PassRow kPasses[] = {
    {kConvolutionForward, ConvolutionPass::forward, kForwardConvolution, kForwardWeight,
     kForwardInput, kForwardOutput},
    {kConvolutionBackwardData, ConvolutionPass::backward_data, kBackwardDataConvolution,
     kBackwardDataWeight, kBackwardDataInput, kBackwardDataOutput},
    {kConvolutionBackwardWeight, ConvolutionPass::backward_weight, kBackwardWeightConvolution,
     kBackwardWeightWeight, kBackwardWeightInput, kBackwardWeightOutput},
};

const char* dtype_of(const Descriptor& tensor) {
  if (tensor.data_type == kFloat) return "float32";
  if (tensor.data_type == kHalf) return "float16";
  return tensor.data_type == kBFloat16 ? "bfloat16" : nullptr;
}

// Strides of a dimension of size 1 mean nothing.
bool has_strides(const Descriptor& tensor, const std::vector<std::size_t>& from_inner) {
  std::int64_t stride = 1;
  for (const auto dimension : from_inner) {
    const auto size = tensor.dimensions[dimension];
    if (size != 1 && tensor.strides[dimension] != stride) return false;
    stride *= size;
  }
  return true;
}

bool is_channels_first(const Descriptor& tensor) {
  std::vector<std::size_t> order(tensor.dimensions.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return has_strides(tensor, order);
}

bool is_channels_last(const Descriptor& tensor) {
  std::vector<std::size_t> order(tensor.dimensions.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::rotate(order.begin(), order.end() - 2, order.end() - 1);  // channels innermost
  return has_strides(tensor, order);
}

}  // namespace

std::optional<ConvolutionCall> convolution_of(const Descriptor& graph) {
  const auto found = graph.holds.find(kGraphOperations);
  if (found == graph.holds.end() || found->second.size() != 1 || !found->second[0])
    return std::nullopt;
  const Descriptor& operation = *found->second[0];
  const auto* row = std::ranges::find(kPasses, operation.type, &PassRow::type);
  if (row == std::end(kPasses)) return std::nullopt;
  const Descriptor *how = operation.at(row->convolution), *weight = operation.at(row->weight),
                   *input = operation.at(row->input), *output = operation.at(row->output);
  if (!how || !weight || !input || !output || !dtype_of(*input)) return std::nullopt;
  for (const Descriptor* tensor : {weight, input, output})
    if (tensor->dimensions.size() < 3 || tensor->dimensions.size() != input->dimensions.size() ||
        tensor->strides.size() != input->dimensions.size() || tensor->data_type != input->data_type)
      return std::nullopt;
  const auto all = [&](const auto& is) { return is(*weight) && is(*input) && is(*output); };
  const bool first = all(is_channels_first);
  if (!first && !all(is_channels_last)) return std::nullopt;
  return ConvolutionCall{.convolution = {.input = input->dimensions,
                                         .weight = weight->dimensions,
                                         .stride = how->convolution_strides,
                                         .padding = how->paddings,
                                         .dilation = how->dilations,
                                         .dtype = dtype_of(*input),
                                         .channels_last = !first},
                         .pass = row->pass};
}

namespace {

std::uint64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, [](auto all, auto size) {
    return all * static_cast<std::uint64_t>(size);
  });
}

// With the first two sizes as multiples, and the results of the convolution in place of the image.
struct Elements {
  std::uint64_t input, weight, output;
};

Elements aligned_elements(const Convolution& one, std::int64_t multiple) {
  const auto up = [&](std::int64_t size) { return (size + multiple - 1) / multiple * multiple; };
  Sizes input = one.input, weight = one.weight, output = one.input;
  for (std::size_t i = 0; i < one.stride.size(); ++i) {
    const auto reach = one.dilation[i] * (one.weight[i + 2] - 1) + 1;
    output[i + 2] = (one.input[i + 2] + 2 * one.padding[i] - reach) / one.stride[i] + 1;
  }
  input[1] = up(input[1]);
  output[1] = up(weight[0]);
  weight[0] = up(weight[0]);
  weight[1] = up(weight[1]);
  return {product(input), product(weight), product(output)};
}

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kHeader = 16;        // in front of copies
constexpr std::uint64_t kLittle = 64 << 10;  // counters and the like

}  // namespace

bool chooses_otherwise() {
  constexpr const char* kVariables[] = {"NVIDIA_TF32_OVERRIDE", "TORCH_CUDNN_USE_HEURISTIC_MODE_B",
                                        "CUDNN_ERRATA_JSON_FILE"};
  return std::ranges::any_of(kVariables, [](const char* name) { return std::getenv(name); });
}

bool by_tensor_cores(const Convolution& convolution, int major) {
  constexpr int kAmpere = 8;  // the first with TF32 and bfloat16
  if (convolution.dtype == "float16") return true;
  return major >= kAmpere && (convolution.dtype == "bfloat16" || convolution.tf32);
}

std::optional<WorkspaceEstimate> estimate(const Convolution& one, ConvolutionPass pass,
                                          bool by_tensor_cores) {
  constexpr std::size_t kImage = 4;
  if (one.input.size() != kImage || one.stride.size() != 2 || one.padding.size() != 2 ||
      one.dilation.size() != 2)
    return std::nullopt;
  const bool is_single = one.dtype == "float32";
  const std::uint64_t bytes = is_single ? 4 : 2;
  const std::int64_t multiple = is_single ? 4 : 8;  // of channels, for 16 bytes
  const auto elements = aligned_elements(one, multiple);
  const auto all = bytes * (elements.input + elements.weight + elements.output);
  const bool of_weight = pass == ConvolutionPass::backward_weight;
  const bool is_depthwise = one.weight[1] == 1 && one.input[1] > 1;
  const auto partial_sums = std::min(8 * all, 32 * kMiB);
  if (is_depthwise)
    return WorkspaceEstimate{0, of_weight && one.channels_last ? 8 * all + partial_sums : all};
  const auto most =
      (of_weight ? 2 * all + partial_sums : all + all / 4 + partial_sums / 4) + kLittle;
  // Without tensor cores, engines read an image channel by channel.
  if (one.channels_last != by_tensor_cores) {
    // Images are read as they are, unless each pixel is read once (patches); little is not copied.
    constexpr std::int64_t kColours = 4;
    const bool reads_pixels = one.input[1] <= kColours && one.stride[0] < one.weight[2];
    const bool as_it_is =
        pass == ConvolutionPass::forward || (is_single && pass == ConvolutionPass::backward_data);
    const bool is_small = (is_single || of_weight) && all < kMiB;
    if ((reads_pixels && as_it_is) || is_small) return WorkspaceEstimate{0, most};
    const bool is_pointwise = one.weight[2] == 1 && one.weight[3] == 1;
    return WorkspaceEstimate{all - (is_pointwise ? bytes * elements.weight : 0) + kHeader, most};
  }
  const bool is_aligned = one.input[1] % multiple == 0 && one.weight[0] % multiple == 0;
  if (is_aligned || !by_tensor_cores) return WorkspaceEstimate{0, most};
  return WorkspaceEstimate{all - (of_weight ? 0 : bytes * elements.output) + kHeader, most};
}

}  // namespace peakbench::emulator::cudnn
