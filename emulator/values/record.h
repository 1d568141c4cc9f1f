#pragma once

#include <utility>
#include <vector>

#include "values/gather.h"

namespace peakbench::values {

// What recording an operator's results and recording its targets share.

// Unknown floating-point tensors up to this size get plausible values that are computed with: the
// probabilities of a policy, the logits of a router. Activations and gradients are mostly larger.
inline constexpr std::size_t kPlausible = 64 << 10;

bool is_small(const at::Tensor& tensor);
// The largest storage whose value is kept through copies, and through this operator.
std::size_t largest_copied(at::ScalarType dtype);
std::size_t largest_for(const Operator& op, at::ScalarType dtype);
bool may_have_value(const Operator& op, const at::Tensor& tensor);
bool is_floating(const at::Tensor& tensor);

std::uint64_t next_sequence();
ValuePtr value_of(const Node& node, std::size_t bytes);
// A value in place of one that cannot be computed: floating-point numbers have none, so that what
// follows from them costs nothing; truths and indices have.
void put_substitute(const Operator& op, const at::Tensor& tensor, std::int64_t range,
                    std::int64_t most = 0);
// The node's values are in place: a chain that has become long ends here.
void end_chain(const Node& node, const std::vector<std::pair<at::Tensor, ValuePtr>>& values);

// Recording what operators do to small tensors of the card.

// After the operator has run: its results, or its targets, get their values.
void record_results(Call& call, const std::vector<c10::IValue>& results);
void record_targets(Call& call);

}  // namespace peakbench::values
