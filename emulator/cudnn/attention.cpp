#include "cudnn/attention.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <vector>

#include "core/machine.h"
#include "cudnn/attributes.h"
#include "cudnn/version.h"

namespace peakbench::emulator::cudnn {
namespace {

// The releases of cuDNN that were asked, from 9.13 to 9.21; the one that was measured is 9.19.0.
constexpr std::size_t kFirstVersion = 91300, kBehindLastVersion = 92200;
constexpr std::int64_t kCounters = 256;  // of the engine's scheduler
constexpr std::size_t kDimensions = 4;   // batch, heads, sequence, features of a head

using Operations = std::vector<std::shared_ptr<const Descriptor>>;

const Operations& operations_of(const Descriptor& graph) {
  static const Operations none;
  const auto found = graph.holds.find(kGraphOperations);
  return found == graph.holds.end() ? none : found->second;
}

std::vector<const Descriptor*> of_type(const Operations& operations, int type) {
  std::vector<const Descriptor*> found;
  for (const auto& operation : operations)
    if (operation->type == type) found.push_back(operation.get());
  return found;
}

bool is_known(int type) {
  constexpr std::array known{kPointwiseOperation, kMatmulOperation, kReductionOperation,
                             kReshapeOperation,   kRngOperation,    kSdpaForwardOperation};
  return std::find(known.begin(), known.end(), type) != known.end();
}

bool is_a_program_s(const Descriptor* tensor) {
  return tensor && !tensor->is_virtual && tensor->dimensions.size() == kDimensions &&
         (tensor->data_type == kHalf || tensor->data_type == kBFloat16);
}

// Sequences of many lengths in one tensor, or padded to one.
bool has_lengths(const Operations& operations) {
  for (const auto& operation : operations)
    for (const auto& [attribute, tensors] : operation->holds) {
      if (operation->type == kSdpaForwardOperation && attribute > kSdpaForwardScale) return true;
      for (const auto& tensor : tensors)
        if (tensor->holds.contains(kTensorRaggedOffset)) return true;
    }
  return false;
}

std::int64_t forward(const Descriptor& query) { return query.dimensions[2] == 1 ? 0 : kCounters; }

// Gradients of keys and values for every head of the queries, where several share one: they are
// summed from there.
std::int64_t gradients_to_sum(const Operations& operations) {
  std::int64_t bytes = 0;
  for (const Descriptor* sum : of_type(operations, kReductionOperation)) {
    const Descriptor *from = sum->at(kReductionX), *to = sum->at(kReductionY);
    if (!from || !from->is_virtual || !is_a_program_s(to)) continue;
    bytes += 2 * std::accumulate(from->dimensions.begin(), from->dimensions.end(), std::int64_t{1},
                                 std::multiplies<>());
  }
  return bytes;
}

bool is_modelled_here() {
  return card().major == 9 && card().minor == 0 && version() >= kFirstVersion &&
         version() < kBehindLastVersion;
}

}  // namespace

std::optional<std::int64_t> attention_workspace(const Descriptor& graph) {
  const Operations& operations = operations_of(graph);
  if (!is_modelled_here() || has_lengths(operations) ||
      !std::all_of(operations.begin(), operations.end(),
                   [](const auto& operation) { return is_known(operation->type); }))
    return std::nullopt;
  // One operation, or spelled out: a softmax between two products, which is a maximum and a sum.
  // The way back has five products.
  const auto fused = of_type(operations, kSdpaForwardOperation);
  const auto products = of_type(operations, kMatmulOperation);
  const auto reductions = of_type(operations, kReductionOperation);
  if (operations.size() == 1 && fused.size() == 1) {
    const Descriptor* query = fused[0]->at(kSdpaForwardQuery);
    if (is_a_program_s(query)) return forward(*query);
  } else if (products.size() == 2 && reductions.size() == 2) {
    const Descriptor* query = products[0]->at(kMatmulA);
    if (is_a_program_s(query) && is_a_program_s(products[1]->at(kMatmulC))) return forward(*query);
  } else if (products.size() == 5 && !reductions.empty() &&
             is_a_program_s(products[0]->at(kMatmulA))) {
    return kCounters + gradients_to_sum(operations);
  }
  return std::nullopt;
}

}  // namespace peakbench::emulator::cudnn
