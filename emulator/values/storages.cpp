#include "values/storages.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "values/patch.h"

namespace peakbench::values {
namespace {

std::atomic<std::uint64_t> foreign{0};

// What wraps tensors rather than holding one.
const c10::DispatchKeySet kWrappers({c10::DispatchKey::Python, c10::DispatchKey::Functionalize,
                                     c10::DispatchKey::FuncTorchBatched,
                                     c10::DispatchKey::FuncTorchGradWrapper});
// Views that change what they show.
const c10::DispatchKeySet kChanging({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});

// Up to here, the elements of a view are looked at one by one.
constexpr std::int64_t kMostPieces = 1 << 12;

// Whether that is so of any element's bytes; of a view of many, of all that lies between them.
template <typename Is>
bool any_piece(const View& view, Is is) {
  std::int64_t count = 1, last = 0;
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 0) return false;
    count *= view.sizes[i];
    last += (view.sizes[i] - 1) * view.strides[i];
  }
  const auto bytes = c10::elementSize(view.dtype);
  const auto offset = static_cast<std::size_t>(view.offset_bytes);
  const auto at = [&](std::int64_t element) {
    return offset + static_cast<std::size_t>(element) * bytes;
  };
  if (count > kMostPieces || count == last + 1) return is(at(0), at(last) + bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t element = 0, rest = i;
    for (std::size_t d = view.sizes.size(); d-- > 0; rest /= view.sizes[d])
      element += rest % view.sizes[d] * view.strides[d];
    if (is(at(element), at(element) + bytes)) return true;
  }
  return false;
}

}  // namespace

Storages& Storages::all() {
  static auto* const storages = new Storages;  // outlives the process's own destructors
  return *storages;
}

ValuePtr Storages::find(std::uint64_t base, std::size_t bytes) const {
  const auto found = values_.find(base);
  return found == values_.end() || found->second->bytes != bytes ? nullptr : found->second;
}

ValuePtr Storages::find_bytes(std::uint64_t at, std::size_t bytes, std::size_t& offset) const {
  auto next = values_.upper_bound(at);
  if (next == values_.begin()) return nullptr;
  const auto& [base, value] = *std::prev(next);
  offset = at - base;
  return offset + bytes <= value->bytes ? value : nullptr;
}

ValuePtr Storages::find_storage(std::uint64_t at, std::size_t bytes, std::uint64_t& base) const {
  std::size_t offset = 0;
  auto found = find_bytes(at, bytes, offset);
  base = found ? at - offset : 0;
  return found;
}

void Storages::put(std::uint64_t base, ValuePtr value) {
  value->foreign_work = foreign_work();
  if (auto found = values_.find(base);
      found != values_.end() && found->second->bytes == value->bytes) {
    found->second = std::move(value);
    return;
  }
  forget(base, value->bytes);
  values_[base] = std::move(value);
}

void Storages::forget(std::uint64_t base, std::size_t bytes) {
  auto at = values_.lower_bound(base);
  if (at != values_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second->bytes > base) at = before;
  }
  while (at != values_.end() && at->first < base + bytes) at = values_.erase(at);
}

void Storages::may_be_written(std::uint64_t at) {
  std::vector<std::uint64_t> open = {at};
  while (!open.empty()) {
    std::uint64_t base = 0;
    const auto value = find_storage(open.back(), 1, base);
    open.pop_back();
    if (!value) continue;
    forget(base, value->bytes);
    if (value->substituted) continue;  // addresses come of the host
    if (waits(value)) {
      count_foreign_work();
      continue;
    }
    try {
      compute(*value);
    } catch (const std::exception& error) {
      tell_of_failure(error);
      count_foreign_work();
      continue;
    }
    // A table of pointers, as kernels over groups of tensors are given, or of such tables.
    const auto* bytes = static_cast<const char*>(value->data.data_ptr());
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= value->bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i, sizeof word);
      if (find_storage(word, 1, base)) open.push_back(word);
    }
  }
}

std::uint64_t foreign_work() { return foreign.load(std::memory_order_relaxed); }
void count_foreign_work() { foreign.fetch_add(1, std::memory_order_relaxed); }

bool doubtful(const Value& value) {
  return value.substituted || value.foreign_work != foreign_work();
}

bool overlaps(const Ranges& ranges, std::size_t begin, std::size_t end) {
  return std::ranges::any_of(
      ranges, [&](const auto& one) { return one.first < end && begin < one.second; });
}

Ranges unsure_of(const Value& value) {
  if (!value.substituted) return {};
  return value.unsure.empty() ? Ranges{{0, value.bytes}} : value.unsure;
}

bool is_unsure(const Value& value, std::size_t begin, std::size_t end) {
  return value.substituted && (value.unsure.empty() || overlaps(value.unsure, begin, end));
}

bool is_unsure(const Value& value, const View& view) {
  if (!value.substituted || value.unsure.empty()) return value.substituted;
  return any_piece(
      view, [&](std::size_t begin, std::size_t end) { return overlaps(value.unsure, begin, end); });
}

bool doubtful(const Value& value, std::size_t begin, std::size_t end) {
  return value.foreign_work != foreign_work() || is_unsure(value, begin, end) ||
         overlaps(value.unwritten, begin, end);
}

bool doubtful(const Value& value, const View& view) {
  if (value.foreign_work != foreign_work() || is_unsure(value, view)) return true;
  return !value.unwritten.empty() && any_piece(view, [&](std::size_t begin, std::size_t end) {
    return overlaps(value.unwritten, begin, end);
  });
}

bool known_where_written(const Value& value, std::size_t begin, std::size_t end) {
  const bool unwritten = std::ranges::any_of(
      value.unwritten, [&](const auto& gap) { return gap.first <= begin && end <= gap.second; });
  return value.foreign_work == foreign_work() && !is_unsure(value, begin, end) && !unwritten;
}

bool is_wrapper(const at::Tensor& tensor) {
  return tensor.defined() && tensor.key_set().has_any(kWrappers);
}
bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
         !tensor.key_set().has_any(kWrappers) && tensor.has_storage() && !tensor._is_zerotensor();
}
bool has_storage(const at::Tensor& tensor) {
  return is_plain(tensor) && !tensor.key_set().has_any(kChanging) && base_of(tensor) != 0;
}
bool can_be_read(const at::Tensor& tensor) { return is_plain(tensor) && base_of(tensor) != 0; }
std::vector<at::Tensor> parts_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() == at::kStrided || tensor.key_set().has_any(kWrappers))
    return {};
  const Unseen unseen;
  switch (tensor.layout()) {
    case at::kSparse:
      return {tensor._indices(), tensor._values()};
    case at::kSparseCsr:
    case at::kSparseBsr:
      return {tensor.crow_indices(), tensor.col_indices(), tensor.values()};
    case at::kSparseCsc:
    case at::kSparseBsc:
      return {tensor.ccol_indices(), tensor.row_indices(), tensor.values()};
    default:
      return {};
  }
}
void forget_storage(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return;
  for (const at::Tensor& part : parts_of(tensor)) forget_storage(part);
  if (!tensor.has_storage()) return;
  try {
    if (base_of(tensor)) Storages::all().forget(base_of(tensor), bytes_of(tensor));
  } catch (const std::exception&) {  // a storage that is only said to be there: nothing lies in it
  }
}
std::uint64_t base_of(const at::Tensor& tensor) {
  return reinterpret_cast<std::uint64_t>(tensor.storage().data());
}
std::size_t bytes_of(const at::Tensor& tensor) { return tensor.storage().nbytes(); }
bool covers_storage(const at::Tensor& tensor) {
  return tensor.nbytes() == bytes_of(tensor) && tensor.is_non_overlapping_and_dense();
}

namespace {

constexpr std::array<std::string_view, 4> kLibraries = {
    "libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_nvshmem.so", "libc10_cuda.so"};

bool lies_in_one(const void* code) {
  Dl_info found{};
  if (!code || !dladdr(code, &found) || !found.dli_fname) return false;
  std::string_view name = found.dli_fname;
  name.remove_prefix(name.rfind('/') + 1);
  return std::ranges::find(kLibraries, name) != kLibraries.end();
}

}  // namespace

bool is_pytorchs(const void* code) {
  thread_local std::unordered_map<const void*, bool> known;
  const auto [found, is_new] = known.try_emplace(code, false);
  if (is_new) found->second = lies_in_one(code);
  return found->second;
}

}  // namespace peakbench::values
