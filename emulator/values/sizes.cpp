#include "values/sizes.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/values_hook.h"
#include "values/record.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

thread_local const Size* told = nullptr;

enum class Assumption { nothing, all, none };

Assumption assumption() {
  static const Assumption assumed = [] {
    const char* text = std::getenv(emulator::kAssumeVariable);
    const std::string_view words = text ? text : "";
    if (words == "nonzero=all") return Assumption::all;
    return words == "nonzero=none" ? Assumption::none : Assumption::nothing;
  }();
  return assumed;
}

std::int64_t elements_of(const View& view) {
  std::int64_t count = 1;
  for (const auto size : view.sizes) count *= size;
  return count;
}

// As many rows as there can be.
std::int64_t most_rows(const Call& call) {
  if (call.node->inputs.empty()) return 0;
  const View& first = call.node->inputs[0].view;
  switch (call.node->op->size_of) {
    case SizeOf::boxes:
      return first.sizes.empty() ? 0 : first.sizes[0];
    case SizeOf::verdict:
      return 1;
    default:
      return elements_of(first);
  }
}

// Something is always equal to itself: a result of no rows needs an input of none.
std::int64_t fewest_rows(const Call& call) {
  return call.node->op->size_of == SizeOf::unique ? std::min<std::int64_t>(most_rows(call), 1) : 0;
}

std::int64_t count_of(const std::vector<c10::IValue>& results) {
  if (results.empty()) return 0;
  if (results[0].isBool()) return results[0].toBool();
  return results[0].isTensor() && results[0].toTensor().dim() > 0 ? results[0].toTensor().size(0)
                                                                  : 0;
}

bool has_all(const Call& call) { return !call.lost && call.node->op->computable; }

}  // namespace

Size find_size(Call& call) {
  Size size;
  size.substituted = !has_all(call) || call.largest_absent_bytes > 0 || call.node->substituted;
  const bool assumes =
      assumption() != Assumption::nothing && call.node->op->size_of != SizeOf::verdict;
  if (size.substituted && assumes) {
    size.count = assumption() == Assumption::all ? most_rows(call) : fewest_rows(call);
    return size;
  }
  if (!has_all(call)) return size;
  fill_absent(call);
  if (!peakbench::values::call(*call.node, size.results)) {
    size.results.clear();
    size.substituted = true;
  }
  size.count = count_of(size.results);
  return size;
}

const Size* size_asked_for() { return told; }
void tell_size(const Size* size) { told = size; }

void put_results(const Call& call, const Size& size, const std::vector<c10::IValue>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].isTensor() || !has_storage(results[i].toTensor())) continue;
    const at::Tensor& tensor = results[i].toTensor();
    if (!tensor.is_cuda() || bytes_of(tensor) > kLargest) continue;
    const at::Tensor computed = i < size.results.size() && size.results[i].isTensor()
                                    ? size.results[i].toTensor()
                                    : at::Tensor();
    if (!computed.defined() || computed.sizes() != tensor.sizes()) {
      put_substitute(*call.node->op, tensor, 1);
      continue;
    }
    const Unseen unseen;
    at::Tensor bytes = at::zeros({static_cast<std::int64_t>(bytes_of(tensor))}, at::kByte);
    tensor_in(bytes, view_of(tensor)).copy_(computed);
    auto value = known(std::move(bytes));
    value->substituted = size.substituted;
    Storages::all().put(base_of(tensor), value);
  }
}

}  // namespace peakbench::values
