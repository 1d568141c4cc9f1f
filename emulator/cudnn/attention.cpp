#include "cudnn/attention.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <regex>
#include <string>

#include "core/machine.h"
#include "cudnn/cudnn.h"

namespace peakbench::emulator::cudnn {
namespace {

constexpr std::size_t kMeasuredVersion = 91900;
constexpr std::int64_t kCounters = 256;     // of the engine's scheduler
constexpr std::int64_t kGradientBytes = 2;  // of a value in 16 bits

enum Dimension { kHeads = 1, kSequence = 2, kDimensions = 4 };  // behind the batch

using Operations = std::vector<std::shared_ptr<const Descriptor>>;

// Attention as cudnn-frontend 1.18 spells it out for PyTorch, operation by operation, and nothing
// else: CompositeSDPANode, CompositeSDPABackwardNode and UnifiedSDPANode of its
// node/scaled_dot_product_flash_attention.h. Of each operation's tensors, in the order of their
// attributes: "-" lies within the graph, "h" is the program's in 16 bits, "f" in 32, "s" one
// number.
constexpr const char* kForward =
    R"(matmul\(hh-\) mul\(-s-\) )"
    R"((add\(-h-\) |index\(--\) index\(--\) ge\(---\) select\(-s--\) )?)"  // mask or causal
    R"(max\(--\) sub\(---\) exp\(--\) sum\(--\) log\(--\) add\(--[-f]\) div\(---\) )"
    R"((random\(-ss\) mul\(---\) mul\(-s-\) )?)"  // dropout
    R"(matmul\(-hh\) )";
constexpr const char* kFused = R"(sdpa\(hhhhf?s\) )";
constexpr const char* kBackward =
    R"((random\(-ss\) )?mul\(hh-\) sum\(--\) mul\(-sf\) )"
    R"(matmul\(hh-\) mul\(-s-\) (add\(-h-\) )?sub\(-f-\) )"
    R"((index\(--\) index\(--\) ge\(---\) select\(-s--\) )?exp\(--\) (mul\(---\) mul\(-s-\) )?)"
    R"(reshape\(--\) (matmul\(-hh\) |matmul\(-h-\) sum\(-h\) ))"  // values
    R"(matmul\(hh-\) (mul\(---\) )?sub\(-f-\) mul\(---\) (mul\(-s-\) )?mul\(-s-\) )"
    R"(reshape\(--\) (matmul\(-hh\) |matmul\(-h-\) sum\(-h\) ))"  // keys
    R"(reshape\(h-\) matmul\(--f\) identity\(fh\) )";             // queries

struct Name {
  int value;
  const char* name;
};
constexpr Name kOperations[] = {{kMatmulOperation, "matmul"},
                                {kReshapeOperation, "reshape"},
                                {kRngOperation, "random"},
                                {kSdpaForwardOperation, "sdpa"}};
constexpr Name kPointwise[] = {
    {kAdd, "add"},         {kMultiply, "mul"},  {kDivide, "div"},        {kSubtract, "sub"},
    {kExponential, "exp"}, {kLogarithm, "log"}, {kIdentity, "identity"}, {kGreaterOrEqual, "ge"},
    {kIndex, "index"},     {kSelect, "select"}};
constexpr Name kReductions[] = {{kSum, "sum"}, {kMaximum, "max"}};

template <std::size_t kCount>
const char* name_in(const Name (&names)[kCount], int value) {
  for (const auto& [each, name] : names)
    if (each == value) return name;
  return "other";
}

const char* name_of(const Descriptor& operation) {
  const auto mode = [&](int attribute) {
    const Descriptor* which = operation.at(attribute);
    return which ? which->mode : -1;
  };
  if (operation.type == kPointwiseOperation) return name_in(kPointwise, mode(kPointwiseDescriptor));
  if (operation.type == kReductionOperation)
    return name_in(kReductions, mode(kReductionDescriptor));
  return name_in(kOperations, operation.type);
}

char kind_of(const Descriptor& tensor) {
  // Sequences of many lengths in one tensor: nothing is known of them.
  if (tensor.holds.contains(kTensorRaggedOffset) || tensor.dimensions.size() != kDimensions)
    return '!';
  if (tensor.is_virtual) return '-';
  if (tensor.data_type == kHalf || tensor.data_type == kBFloat16) return 'h';
  const auto& sizes = tensor.dimensions;
  if (std::all_of(sizes.begin(), sizes.end(), [](auto size) { return size == 1; })) return 's';
  return tensor.data_type == kFloat ? 'f' : '!';
}

// "matmul(hh-) mul(-s-) ..."
std::string spelled_out(const Operations& operations) {
  std::string all;
  for (const auto& operation : operations) {
    if (!operation) return "";
    all += name_of(*operation) + std::string("(");
    for (const auto& [attribute, tensors] : operation->holds)
      if (attribute != kPointwiseDescriptor && attribute != kReductionDescriptor &&
          attribute != kMatmulDescriptor && attribute != kRngDescriptor)
        all += tensors.size() == 1 && tensors[0] ? kind_of(*tensors[0]) : '!';
    all += ") ";
  }
  return all;
}

// Unknown for a single query: many keys are split among multiprocessors, with a workspace for the
// parts, and from where on hangs on more than was asked. Keys and values have the same heads.
std::optional<std::int64_t> forward(const Descriptor& query, const Descriptor& keys,
                                    const Descriptor& values) {
  if (query.dimensions[kSequence] == 1 || keys.dimensions[kHeads] != values.dimensions[kHeads])
    return std::nullopt;
  return kCounters;
}

// Gradients of keys and values for every head of the queries, where several share one: they are
// summed from there.
std::optional<std::int64_t> backward(const Operations& operations) {
  std::vector<std::int64_t> heads;
  std::int64_t bytes = kCounters;
  for (const auto& operation : operations) {
    if (operation->type != kReductionOperation) continue;
    const Descriptor *from = operation->at(kReductionX), *to = operation->at(kReductionY);
    if (!from || !to) return std::nullopt;
    if (to->is_virtual) continue;
    heads.push_back(to->dimensions[kHeads]);
    bytes += kGradientBytes * std::accumulate(from->dimensions.begin(), from->dimensions.end(),
                                              std::int64_t{1}, std::multiplies<>());
  }
  const bool is_shared = heads.size() == 2 && heads[0] == heads[1];
  return heads.empty() || is_shared ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> attention_workspace(const Descriptor& graph) {
  if (card().major != 9 || card().minor != 0 || version() != kMeasuredVersion) return std::nullopt;
  const auto found = graph.holds.find(kGraphOperations);
  if (found == graph.holds.end()) return std::nullopt;
  const Operations& operations = found->second;
  const auto text = spelled_out(operations);
  static const auto& is_fused = *new std::regex(kFused);
  static const auto& is_forward = *new std::regex(kForward);
  static const auto& is_backward = *new std::regex(kBackward);
  if (std::regex_match(text, is_fused)) {
    const Descriptor& only = *operations.front();
    return forward(*only.at(kSdpaForwardQuery), *only.at(kSdpaForwardKey),
                   *only.at(kSdpaForwardValue));
  }
  if (std::regex_match(text, is_forward)) {
    const Descriptor &scores = *operations.front(), &out = *operations.back();
    return forward(*scores.at(kMatmulA), *scores.at(kMatmulB), *out.at(kMatmulB));
  }
  if (std::regex_match(text, is_backward)) return backward(operations);
  return std::nullopt;
}

}  // namespace peakbench::emulator::cudnn
