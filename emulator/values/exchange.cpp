#include "values/exchange.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "values/patch.h"
#include "values/recorded.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

struct Storage {
  std::uint64_t base = 0;
  std::size_t bytes = 0;
  std::size_t largest = kLargest;  // that has a value

  bool holds(std::uint64_t at, std::size_t count) const {
    return at >= base && at - base <= bytes && count <= bytes - (at - base);
  }
};

thread_local int collectives = 0;
thread_local std::vector<Storage> storages;

template <typename Visit>
void visit_tensors(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) visit(value.toTensor());
  if (value.isList())
    for (const c10::IValue& one : value.toListRef()) visit_tensors(one, visit);
}

// Empty where the bytes are no small tensor's.
Storage storage_at(std::uint64_t at, std::size_t bytes) {
  const auto found =
      std::ranges::find_if(storages, [&](const Storage& one) { return one.holds(at, bytes); });
  Storage storage = found == storages.end() ? Storage() : *found;
  if (!storage.bytes)
    if (const auto value = Storages::all().find_storage(at, bytes, storage.base))
      storage.bytes = storage.largest = value->bytes;
  return storage.bytes <= storage.largest ? storage : Storage();
}

// The value and where the bytes begin in it; the value is null where there is none.
std::pair<ValuePtr, std::size_t> value_at(std::uint64_t at, std::size_t bytes) {
  std::uint64_t base = 0;
  auto value = Storages::all().find_storage(at, bytes, base);
  return {std::move(value), at - base};
}

// Some of it rests on substitutes, and all else is certain.
bool is_partly_known(const Value& value, std::size_t begin, std::size_t end) {
  std::size_t unsure = 0;
  for (const auto& [first, last] : value.unsure)
    if (std::max(first, begin) < std::min(last, end))
      unsure += std::min(last, end) - std::max(first, begin);
  return unsure != 0 && unsure < end - begin && value.unwritten.empty() &&
         value.foreign_work == foreign_work();
}

int tell_unsure(const Value& value, std::size_t begin, std::size_t end,
                const PeakbenchUnsure* unsure) {
  for (const auto& [first, last] : value.unsure)
    if (std::max(first, begin) < std::min(last, end))
      unsure->add(unsure->into, std::max(first, begin) - begin, std::min(last, end) - begin);
  return kPeakbenchPartly;
}

int take(std::uint64_t from, std::uint64_t bytes, int floating, void* to,
         const PeakbenchUnsure* unsure) {
  ValuePtr value;
  std::size_t offset = 0;
  const auto is_worth = [&] {
    return !floating || value->purpose == Purpose::finite_check ||
           known_where_written(*value, offset, offset + bytes) ||
           is_partly_known(*value, offset, offset + bytes);
  };
  {
    const std::lock_guard lock(Storages::all().mutex());
    std::tie(value, offset) = value_at(from, bytes);
    if (!value || !is_worth()) return kPeakbenchUnknown;
  }
  const int standing = read_bytes(value, offset, bytes, to);
  if (standing != kPeakbenchSubstitute) return standing;
  const std::lock_guard lock(Storages::all().mutex());
  if (value->purpose == Purpose::finite_check) return kPeakbenchFinite;
  if (is_partly_known(*value, offset, offset + bytes))
    return tell_unsure(*value, offset, offset + bytes, unsure);
  return floating ? kPeakbenchUnknown : standing;
}

int expect(std::uint64_t to, std::uint64_t bytes, const PeakbenchArrival* arrival) {
  const std::lock_guard lock(Storages::all().mutex());
  const Storage storage = storage_at(to, bytes);
  if (!storage.bytes) return 0;
  Patch patch;
  patch.offset = to - storage.base;
  patch.bytes = bytes;
  patch.arrival = std::make_shared<Arrival>(*arrival, bytes);
  put_patch(storage.base, storage.bytes, std::move(patch));
  return 1;
}

int move(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  const std::lock_guard lock(Storages::all().mutex());
  const Storage storage = storage_at(to, bytes);
  Patch patch;
  std::tie(patch.source, patch.source_offset) = value_at(from, bytes);
  if (!storage.bytes || !patch.source) {
    Storages::all().forget(to, bytes);
    return 0;
  }
  patch.offset = to - storage.base;
  patch.bytes = bytes;
  put_patch(storage.base, storage.bytes, std::move(patch));
  return 1;
}

void forget(std::uint64_t to, std::uint64_t bytes) {
  const std::lock_guard lock(Storages::all().mutex());
  Storages::all().forget(to, bytes);
}

constexpr PeakbenchExchange kExchange = {take, expect, move, forget};

}  // namespace

void add_to_collective(const at::Tensor& tensor) {
  if (collectives > 0 && has_storage(tensor) && tensor.is_cuda())
    storages.push_back({base_of(tensor), bytes_of(tensor), largest_copied(tensor.scalar_type())});
}

void begin_collective(c10::ArrayRef<const c10::IValue> arguments) {
  ++collectives;
  for (const c10::IValue& argument : arguments) visit_tensors(argument, add_to_collective);
}

void end_collective() {
  if (--collectives == 0) storages.clear();
}

void answer_exchange() { peakbench_emulator_exchange(&kExchange); }

}  // namespace peakbench::values
