// What there is to know of an operator before it is recorded.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "values/equivalents.h"
#include "values/kernel_checks.h"
#include "values/value.h"

namespace peakbench::values {

// Operators whose kernel reads the number of rows of its result back from the device.
enum class SizeOf {
  nothing,
  nonzero,
  unique,
  coalesce,  // of a sparse tensor: its different indices
  boxes,     // torchvision::nms
  product,   // of two sparse matrices
  merged,    // entries of two in a row: of their sum
  verdict,   // aten::equal: true or false
  mode,      // of long rows: how many neighbours of a sorted row differ
};

// How large an integer of the result can be.
enum class IntegerBound : std::uint8_t {
  unknown,
  truths,    // it counts elements, of truths alone
  elements,  // it counts elements
  places,    // it is a place along a dimension, of floating-point numbers alone
};

struct Operator {
  std::optional<c10::OperatorHandle> handle;
  std::string name;         // aten::add_, without the overload
  std::string plain_name;   // aten::add: without a `_` at its end
  bool ignored = false;     // views, questions about tensors, and what changes no value
  bool direct = false;      // has a kernel of its own for CUDA: what it calls is a part of it
  bool computable = false;  // the CPU has a kernel, and calling it does nothing else
  bool computable_sparse = false;          // the same, where an argument is sparse
  const Equivalent* equivalent = nullptr;  // called in its place, where only CUDA has it
  const KernelCheck* check = nullptr;      // that its kernel on a card makes
  bool mutates = false;
  bool overwrites = false;  // whatever its target held before
  bool places = false;      // puts values at places of its target, never looking at what was there
  int accumulate = -1;      // the argument with which it adds to what was there instead
  bool random = false;
  int chance = -1;    // the argument that is 0 where it draws nothing
  int training = -1;  // the argument that is false where it draws nothing and writes no statistics
  bool uninitialised = false;      // aten::empty and its like
  bool reads_scalar = false;       // aten::_local_scalar_dense
  bool asks_truth = false;         // aten::is_nonzero
  bool shows = false;              // aten::resolve_conj: tolist() begins with it
  bool is_copy = false;            // aten::copy_
  bool sets_storage = false;       // aten::set_ to a storage
  Purpose purpose = Purpose::any;  // of its result
  bool is_all = false;
  bool takes_shape = false;    // aten::zeros_like, aten::new_ones: nothing but the shape
  bool resizes = false;        // aten::resize_: keeps what fits, perhaps in new memory
  bool is_collective = false;  // c10d::allreduce_ and its like
  // Arguments that it writes though its schema does not say so: batch normalisation's statistics.
  std::vector<int> hidden_targets;
  int kept_target = -1;  // an argument that unknown gradients leave as it is
  int dim = -1;          // the argument `dim`
  IntegerBound bound = IntegerBound::unknown;
  SizeOf size_of = SizeOf::nothing;
  SizeOf size_of_rows = SizeOf::nothing;  // where its tensors are sparse matrices in rows (CSR)
  bool appends_sparse = false;            // aten::add: of COO tensors, what it calls is all it does
  bool has_mask = false;                  // aten::masked_select, whose size is that of its mask
  bool has_counts = false;  // aten::bincount and its like: what they read decides sizes
  std::vector<bool> writes, is_out, optional_list;  // by argument
  std::shared_ptr<Node> lost;                       // of calls that no value can come of

  bool writes_wholly(int argument) const {
    const auto at = static_cast<std::size_t>(argument);
    return at < writes.size() && writes[at] && (overwrites || is_out[at]);
  }
};

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Never null; lives as long as the thread.
const Operator& operator_of(const at::RecordFunction& function);

// Of a call's arguments, the one of this name; null where the operator has none.
const c10::IValue* argument_of(const Operator& op, std::span<const c10::IValue> arguments,
                               std::string_view name);

}  // namespace peakbench::values
