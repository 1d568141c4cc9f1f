#include "values/recorded.h"

#include <atomic>

#include "values/patch.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

// A longer chain of recorded operators is computed, or cut.
constexpr int kDeepest = 64;

}  // namespace

bool is_small(const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return bytes > 0 && bytes <= kLargest;
}

std::size_t largest_copied(at::ScalarType dtype) {
  return dtype == at::kByte ? emulator::kLargestCopied : largest_of(dtype);
}

std::size_t largest_for(const Operator& op, at::ScalarType dtype) {
  return op.is_copy ? largest_copied(dtype) : largest_of(dtype);
}

bool may_have_value(const Operator& op, const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return bytes > 0 && bytes <= largest_for(op, tensor.scalar_type());
}

bool is_floating(const at::Tensor& tensor) {
  return c10::isFloatingType(tensor.scalar_type()) || c10::isComplexType(tensor.scalar_type());
}

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

ValuePtr value_of(const Node& node, std::size_t bytes) {
  auto value = std::make_shared<Value>();
  value->bytes = bytes;
  value->substituted = node.substituted;
  value->depth = node.depth;
  value->purpose = purpose_of(node);
  return value;
}

void put_substitute(const Operator& op, const at::Tensor& tensor, std::int64_t range,
                    std::int64_t most) {
  if (is_floating(tensor) || op.uninitialised || !is_small(tensor))
    return Storages::all().forget(base_of(tensor), bytes_of(tensor));
  const Substitute what{tensor.scalar_type(), op.is_all ? std::optional<double>(1) : std::nullopt,
                        tensor.scalar_type() == at::kLong ? range : 1,
                        tensor.element_size() >= 4 ? most : 0};
  Storages::all().put(base_of(tensor), unknown(bytes_of(tensor), what));
}

void end_chain(const Node& node, const std::vector<std::pair<at::Tensor, ValuePtr>>& values) {
  if (node.depth <= kDeepest) return;
  for (const auto& [tensor, value] : values) {
    if ((node.substituted && is_floating(tensor)) || !is_small(tensor)) {
      Storages::all().forget(base_of(tensor), bytes_of(tensor));
    } else if (!waits(value)) {
      compute(*value);
      value->depth = 0;
    }
  }
}

}  // namespace peakbench::values
