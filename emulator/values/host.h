// Host tensors with unknown numbers read from the card, or with numbers that a copy may not have
// written yet. Results of operators on them are unknown, too. A size, an integer or a boolean from
// them decides the program's path.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/values_hook.h"
#include "values/operators.h"

namespace peakbench::values {

// From now on the tensor's storage holds such numbers; or nothing of them any more.
void mark_on_host(const at::Tensor& tensor, Purpose purpose);
void unmark_on_host(const at::Tensor& tensor);
// A copy to the tensor has begun for which the host does not wait.
void mark_in_flight(const at::Tensor& tensor, const PeakbenchIssued& copy);
// `stream`: reads in its order; absent: the host reads now.
bool is_marked_on_host(const at::Tensor& tensor,
                       std::optional<std::uint64_t> stream = std::nullopt);

// A call of an operator on tensors of the host.
struct HostCall {
  bool rests = false;      // on unknown numbers
  bool decides = false;    // what it asks of them below is a part of that
  bool in_flight = false;  // a copy may not have written them yet
  Purpose purpose = Purpose::any;
  std::vector<at::Tensor> targets;
};
// What the program asks by the operators that are under way: whether a number is zero; a size.
struct Asking {
  int truth = 0, size = 0;
};
// Before the operator runs. Reports what it decides.
HostCall start_on_host(const Operator& op, c10::ArrayRef<const c10::IValue> arguments,
                       const Asking& asking);
// After the operator: its results and targets are unknown, too.
void end_on_host(const Operator& op, const HostCall& call, const std::vector<c10::IValue>& results);

}  // namespace peakbench::values
