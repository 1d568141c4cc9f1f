// The arguments of an operator's call, as a node that can be computed later.
#pragma once

#include <c10/util/SmallVector.h>

#include <memory>
#include <vector>

#include "values/operators.h"
#include "values/uniform.h"
#include "values/value.h"

namespace peakbench::values {

struct Call {
  std::shared_ptr<Node> node;
  bool lost = false;  // something that it needs has no value and cannot get a substitute
  std::size_t largest_absent_bytes = 0;
  SizeOf size_of = SizeOf::nothing;
  std::optional<Uniform> uniform;                  // of checks for finite values that are large
  std::int64_t range = 1;                          // of an index into the first argument
  std::int64_t most = 0;                           // of an integer in the result; 0: unknown
  c10::SmallVector<const void*, 8> storages;       // of the arguments, to tell views from results
  std::vector<at::Tensor> targets;                 // what it writes in place
  std::vector<std::pair<int, int>> target_places;  // argument, index in a list or -1
  bool target_on_host = false;
  // What it writes though its schema does not say so: by argument.
  std::vector<std::pair<int, at::Tensor>> hidden;
};

// Whether the CPU can do it, its arguments being what they are.
bool is_computable(const Call& call);
// Whether an argument is, or holds, a tensor that wraps another.
bool has_wrapper(c10::ArrayRef<const c10::IValue> arguments);
// Whether there are tensors among the arguments, and all have this layout.
bool are_all(at::Layout layout, c10::ArrayRef<const c10::IValue> arguments);
// What of the call's result is read back from the card.
SizeOf size_of_call(const Operator& op, c10::ArrayRef<const c10::IValue> arguments);
// Whether the call has anything to do with the card.
bool uses_card(c10::ArrayRef<const c10::IValue> arguments);
Call gather(const Operator& op, c10::ArrayRef<const c10::IValue> arguments);
// Of an argument or a result: itself, or those of its list.
template <typename Visit>
void for_each_tensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) return visit(value.toTensor());
  if (!value.isTensorList() && !value.isOptionalTensorList()) return;
  for (const c10::IValue& one : value.toListRef())
    if (one.isTensor()) visit(one.toTensor());
}
// Makes substitutes for device tensors that have no value.
void fill_absent(Call& call);

}  // namespace peakbench::values
