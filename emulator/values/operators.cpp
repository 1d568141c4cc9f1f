#include "values/operators.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace peakbench::values {
namespace {

constexpr std::array<std::string_view, 25> kIgnored = {"aten::set_",
                                                       "aten::resize_",
                                                       "aten::resize_as_",
                                                       "aten::record_stream",
                                                       "aten::detach",
                                                       "aten::detach_",
                                                       "aten::alias",
                                                       "aten::_unsafe_view",
                                                       "aten::view",
                                                       "aten::_reshape_alias",
                                                       "aten::lift_fresh",
                                                       "aten::lift",
                                                       "aten::is_pinned",
                                                       "aten::_pin_memory",
                                                       "aten::item",
                                                       "aten::is_nonzero",
                                                       "aten::set_data",
                                                       "aten::as_strided_",
                                                       "aten::squeeze_",
                                                       "aten::unsqueeze_",
                                                       "aten::requires_grad_",
                                                       "aten::t_",
                                                       "aten::transpose_",
                                                       "aten::_version",
                                                       "aten::_cudnn_rnn_flatten_weight"};

constexpr std::array<std::string_view, 6> kUninitialised = {
    "aten::empty",     "aten::empty_strided",     "aten::empty_like",
    "aten::new_empty", "aten::new_empty_strided", "aten::empty_permuted"};

constexpr std::array<std::string_view, 4> kOverwriting = {
    "aten::fill_", "aten::zero_", "aten::_foreach_copy_", "aten::_foreach_zero_"};

// Of scatter_, the overloads without a reduction.
constexpr std::array<std::string_view, 10> kPlacing = {
    "aten::index_put_",     "aten::_index_put_impl_",
    "aten::index_copy_",    "aten::index_fill_",
    "aten::masked_fill_",   "aten::masked_scatter_",
    "aten::fill_diagonal_", "aten::put_",
    "aten::scatter_",       "aten::copy_"};

constexpr std::array<std::string_view, 3> kFiniteChecks = {"aten::isfinite", "aten::isnan",
                                                           "aten::isinf"};

// Those whose statistics are recorded; of others with statistics, nothing is known.
constexpr std::array<std::string_view, 4> kBatchNorms = {
    "aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::batch_norm_gather_stats",
    "aten::batch_norm_gather_stats_with_counts"};

// Of sparse tensors (COO) they put one's entries behind the other's: add_out_sparse_cuda in
// aten/src/ATen/native/sparse/cuda/SparseCUDATensorMath.cu.
constexpr std::array<std::string_view, 4> kAppending = {"aten::add", "aten::add_", "aten::sub",
                                                        "aten::sub_"};

// Beside values of their argument's dtype.
constexpr std::array<std::string_view, 11> kPlaceGiving = {
    "aten::argmax",      "aten::argmin", "aten::argsort", "aten::kthvalue",
    "aten::max",         "aten::median", "aten::min",     "aten::mode",
    "aten::multinomial", "aten::sort",   "aten::topk"};

constexpr std::array<std::string_view, 5> kUniques = {
    "aten::_unique2", "aten::_unique", "aten::unique_dim", "aten::unique_consecutive",
    "aten::unique_dim_consecutive"};

IntegerBound bound_of(std::string_view name) {
  if (name == "aten::sum") return IntegerBound::truths;
  if (name == "aten::count_nonzero") return IntegerBound::elements;
  return is_one_of(kPlaceGiving, name) ? IntegerBound::places : IntegerBound::unknown;
}

SizeOf size_of(std::string_view name) {
  if (name == "aten::nonzero") return SizeOf::nonzero;
  if (name == "torchvision::nms") return SizeOf::boxes;
  if (name == "aten::equal") return SizeOf::verdict;
  if (name == "aten::mode") return SizeOf::mode;
  if (name == "aten::_coalesce") return SizeOf::coalesce;
  if (name == "aten::_sparse_sparse_matmul") return SizeOf::product;
  return is_one_of(kUniques, name) ? SizeOf::unique : SizeOf::nothing;
}

SizeOf size_of_rows(std::string_view name) {
  if (name == "aten::mm" || name == "aten::addmm") return SizeOf::product;
  return name == "aten::add" || name == "aten::sub" ? SizeOf::merged : SizeOf::nothing;
}

void read_arguments(const c10::FunctionSchema& schema, Operator& op) {
  for (const c10::Argument& argument : schema.arguments()) {
    const bool writes = argument.alias_info() && argument.alias_info()->isWrite();
    op.writes.push_back(writes);
    op.is_out.push_back(argument.is_out());
    op.optional_list.push_back(argument.type()->str() == "Tensor?[]" ||
                               argument.type()->str() == "List[Optional[Tensor]]");
    op.mutates |= writes;
    const int at = static_cast<int>(op.writes.size()) - 1;
    if (!writes && (argument.name() == "running_mean" || argument.name() == "running_var") &&
        !schema.name().ends_with("_backward"))
      op.hidden_targets.push_back(at);
    if (argument.name() == "dropout_p" || argument.name() == "dropout") op.chance = at;
    if (argument.name() == "training" || argument.name() == "train") op.training = at;
    if (argument.name() == "dim") op.dim = at;
    if (argument.name() == "accumulate") op.accumulate = at;
  }
}

bool returns_view(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() && !result.alias_info()->isWrite();
  });
}

bool has_any(const c10::OperatorHandle& handle, std::initializer_list<c10::DispatchKey> keys) {
  return std::ranges::any_of(
      keys, [&](c10::DispatchKey key) { return handle.hasKernelForDispatchKey(key); });
}

bool returns_tensors(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.type()->str().find("Tensor") != std::string::npos;
  });
}

Operator read(const at::RecordFunction& function) {
  Operator op;
  op.ignored = true;
  const auto name = function.operator_name();
  if (!name) return op;
  op.handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!op.handle) return op;
  op.name = name->name;
  op.plain_name = op.name.substr(0, op.name.size() - (op.name.ends_with('_') ? 1 : 0));
  const auto& schema = op.handle->schema();
  read_arguments(schema, op);
  op.check = kernel_check_of(op.plain_name);
  op.reads_scalar = op.name == "aten::_local_scalar_dense";
  op.asks_truth = op.name == "aten::is_nonzero";
  op.shows = op.name == "aten::resolve_conj";
  op.has_mask = op.name == "aten::masked_select";
  op.has_counts = op.name == "aten::bincount" || op.name == "aten::repeat_interleave";
  op.size_of = size_of(op.name);
  op.size_of_rows = size_of_rows(op.name);
  op.appends_sparse = is_one_of(kAppending, op.name);
  op.ignored = is_one_of(kIgnored, op.name) || returns_view(schema) ||
               (!op.mutates && op.size_of == SizeOf::nothing && !returns_tensors(schema));
  op.is_copy = op.name == "aten::copy_";
  op.resizes = op.name == "aten::resize_";
  op.is_collective = op.name.starts_with("c10d::");
  const bool ours = op.name.starts_with("aten::");
  // FSDP2's copies in and out, written in Python: what they call is what they do.
  const bool composed = op.name.starts_with("fsdp::");
  op.direct =
      !composed && (has_any(*op.handle, {c10::DispatchKey::CUDA, c10::DispatchKey::SparseCUDA,
                                         c10::DispatchKey::SparseCsrCUDA}) ||
                    op.is_copy || !ours);
  // Another library's operator may do anything, such as talking to other processes.
  if (!op.direct) op.hidden_targets.clear();  // what it calls writes them
  const bool hides = !op.hidden_targets.empty() && !is_one_of(kBatchNorms, op.name);
  const bool harmless = !hides && (ours || op.name.starts_with("torchvision::"));
  op.equivalent = equivalent_of(op.name);
  op.computable = harmless && (op.equivalent ||
                               op.handle->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU));
  op.computable_sparse =
      harmless && (op.handle->hasComputedKernelForDispatchKey(c10::DispatchKey::SparseCPU) ||
                   op.handle->hasComputedKernelForDispatchKey(c10::DispatchKey::SparseCsrCPU));
  op.random =
      op.name == "aten::native_dropout" || op.handle->hasTag(at::Tag::nondeterministic_seeded);
  op.uninitialised = is_one_of(kUninitialised, op.name);
  op.is_all = op.name == "aten::all";
  op.bound = bound_of(op.name);
  op.takes_shape = op.name.ends_with("_like") || op.name.starts_with("aten::new_");
  op.sets_storage = op.name == "aten::set_" && name->overload_name.starts_with("source_Storage");
  if (is_one_of(kFiniteChecks, op.name)) op.purpose = Purpose::finite_check;
  if (op.name == "aten::random_" && name->overload_name.empty()) op.purpose = Purpose::seed;
  op.overwrites = op.is_copy || is_one_of(kOverwriting, op.name) || (op.random && op.mutates);
  op.places = is_one_of(kPlacing, op.name) && !name->overload_name.ends_with("reduce");
  // Gradients are taken for finite: a scale that is lowered at every step would be no training.
  if (op.name == "aten::_amp_foreach_non_finite_check_and_unscale_") op.kept_target = 1;
  return op;
}

const Operator* kept_operator(Operator read) {
  auto* op = new Operator(std::move(read));
  op->lost = std::make_shared<Node>();
  op->lost->op = op;
  return op;
}

}  // namespace

const Operator& operator_of(const at::RecordFunction& function) {
  // By the address of the name, which belongs to the operator's schema. Recorded calls outlive
  // threads, so these are never deleted.
  thread_local std::unordered_map<const void*, const Operator*> known;
  // Before the map: a step calls some dozens of operators thousands of times.
  struct Recent {
    const void* name;
    const Operator* op;
  };
  thread_local std::array<Recent, 256> recent{};
  const void* name = function.name();
  auto& kept = recent[(reinterpret_cast<std::uintptr_t>(name) >> 4) % recent.size()];
  if (kept.op && kept.name == name) return *kept.op;
  const Operator*& found = known[name];
  if (!found) found = kept_operator(read(function));
  kept = {name, found};
  return *found;
}

const c10::IValue* argument_of(const Operator& op, std::span<const c10::IValue> arguments,
                               std::string_view name) {
  if (!op.handle) return nullptr;
  const auto& schema = op.handle->schema().arguments();
  const auto at = std::ranges::find(schema, name, &c10::Argument::name) - schema.begin();
  const auto index = static_cast<std::size_t>(at);
  return index < schema.size() && index < arguments.size() ? &arguments[index] : nullptr;
}

}  // namespace peakbench::values
