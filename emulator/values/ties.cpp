#include "values/ties.h"

#include <algorithm>

#include "core/values_hook.h"
#include "values/operators.h"

namespace peakbench::values {
namespace {

// Of topk's results, the second.
bool asks_for_indices(const Node& node) {
  return std::ranges::any_of(node.outputs, [](const Output& output) {
    return output.result == 1 && !output.value.expired();
  });
}

// Whether the largest value that is left out is one of those that are taken, too.
bool is_tied(const at::Tensor& values, std::int64_t k, std::int64_t dim, bool largest) {
  if (values.dim() == 0 || k < 1 || k >= values.size(dim)) return false;
  const at::Tensor taken = std::get<0>(at::topk(values, k + 1, dim, largest, true));
  return (taken.select(dim, k) == taken.select(dim, k - 1)).any().item<bool>();
}

}  // namespace

bool chooses_among_equals(const Node& node, const std::vector<c10::IValue>& arguments) {
  // topk(self, k, dim, largest, sorted)
  if (node.op->name != "aten::topk" || arguments.size() < 5 || !asks_for_indices(node))
    return false;
  return is_tied(arguments[0].toTensor(), arguments[1].toInt(), arguments[2].toInt(),
                 arguments[3].toBool());
}

void tell_of_equals() {
  peakbench_emulator_unspecified(
      "aten::topk of equal values: which of them are taken is not specified");
}

}  // namespace peakbench::values
