#include "values/patch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "values/record.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

// A longer chain of patches is computed; or cut, where it is of larger values that are not known.
constexpr int kDeepestPatch = 64;
constexpr std::size_t kPlausiblePatch = 64 << 10;

std::atomic<int> on_the_way{0};  // arrivals that are not here

// The first arrival that a value needs and that is not here.
class Search {
 public:
  std::shared_ptr<Arrival> in(const ValuePtr& value) {
    open_.push_back(value.get());
    while (!open_.empty()) {
      const Value* next = open_.back();
      open_.pop_back();
      if (!next || next->data.defined() || !seen_.insert(next).second) continue;
      if (next->patch) {
        if (next->patch->arrival && !next->patch->arrival->is_here()) return next->patch->arrival;
        open_.push_back(next->patch->before.get());
        open_.push_back(next->patch->source.get());
      }
      if (next->node) look_at(*next->node);
    }
    return nullptr;
  }

 private:
  void look_at(const Node& node) {
    for (const Input& input : node.inputs) open_.push_back(input.value.get());
    for (const Output& output : node.outputs) open_.push_back(output.before.get());
  }

  std::vector<const Value*> open_;
  std::unordered_set<const Value*> seen_;
};

std::shared_ptr<Arrival> missing(const ValuePtr& value) {
  if (on_the_way.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(Storages::all().mutex());
  return Search().in(value);
}

bool differs_on_cards(const Value& value, std::size_t offset, std::size_t bytes) {
  if (!value.rounded.is_bounded()) return value.rounded.any();
  return std::memcmp(static_cast<const char*>(value.rounded.low.data_ptr()) + offset,
                     static_cast<const char*>(value.rounded.high.data_ptr()) + offset, bytes) != 0;
}

// What of the ranges lies between two places, counted from the first.
Ranges between(const Ranges& ranges, std::size_t begin, std::size_t end) {
  Ranges found;
  for (const auto& [first, last] : ranges)
    if (std::max(first, begin) < std::min(last, end))
      found.emplace_back(std::max(first, begin) - begin, std::min(last, end) - begin);
  return found;
}

// Ranges of the source, where they come to lie.
void add_moved(Ranges& to, const Ranges& from, const Patch& patch) {
  const auto end = patch.source_offset + patch.bytes;
  for (const auto& [first, last] : between(from, patch.source_offset, end))
    to.emplace_back(first + patch.offset, last + patch.offset);
}

// Which bytes of a value are not certain.
Ranges doubts_of(const Value& value) {
  return value.foreign_work == foreign_work() ? unsure_of(value) : Ranges{{0, value.bytes}};
}

}  // namespace

Arrival::Arrival(const PeakbenchArrival& from, std::size_t bytes) : from_(from), bytes_(bytes, 0) {
  ++on_the_way;
}

Arrival::~Arrival() {
  if (!here_) --on_the_way;
  from_.release(from_.token);
}

void Arrival::wait() {
  const std::lock_guard lock(mutex_);
  if (here_) return;
  const PeakbenchUnsure into = {&unsure_, [](void* list, std::uint64_t begin, std::uint64_t end) {
                                  static_cast<Ranges*>(list)->emplace_back(begin, end);
                                }};
  standing_ = from_.resolve(from_.token, bytes_.data(), &into);
  if (standing_ != kPeakbenchKnown && standing_ != kPeakbenchPartly) unsure_ = {{0, bytes_.size()}};
  here_ = true;
  --on_the_way;
}

int Arrival::write(char* to) {
  wait();
  std::memcpy(to, bytes_.data(), bytes_.size());
  return standing_;
}

Ranges without(const Ranges& ranges, std::size_t begin, std::size_t end) {
  Ranges left;
  for (const auto& [first, last] : ranges) {
    if (first < std::min(last, begin)) left.emplace_back(first, std::min(last, begin));
    if (std::max(first, end) < last) left.emplace_back(std::max(first, end), last);
  }
  return left;
}

ValuePtr untouched(std::size_t bytes) {
  auto value = known(at::zeros({static_cast<std::int64_t>(bytes)}, at::kByte));
  value->unwritten = {{0, bytes}};
  value->foreign_work = foreign_work();
  return value;
}

bool waits(const ValuePtr& value) { return missing(value) != nullptr; }

void settle(const ValuePtr& value) {
  while (const auto arrival = missing(value)) arrival->wait();
}

int read_bytes(const ValuePtr& value, std::size_t offset, std::size_t bytes, void* to) {
  settle(value);
  Choices choices;
  int standing = kPeakbenchKnown;
  {
    const std::lock_guard lock(Storages::all().mutex());
    try {
      compute(*value);
    } catch (const std::exception& error) {
      tell_of_failure(error);
      return kPeakbenchUnknown;
    }
    std::memcpy(to, static_cast<const char*>(value->data.data_ptr()) + offset, bytes);
    if (!known_where_written(*value, offset, offset + bytes)) standing = kPeakbenchSubstitute;
    choices = value->choices;
    if (differs_on_cards(*value, offset, bytes)) choices.add(value->rounded.by);
  }
  choices.tell(standing == kPeakbenchKnown);
  return standing;
}

Ranges unsure_after(const Patch& patch) {
  Ranges unsure;
  if (patch.before)
    unsure = without(unsure_of(*patch.before), patch.offset, patch.offset + patch.bytes);
  if (patch.source) add_moved(unsure, unsure_of(*patch.source), patch);
  return unsure;
}

void put_patch(std::uint64_t base, std::size_t storage_bytes, Patch patch) {
  const bool whole = patch.offset == 0 && patch.bytes == storage_bytes;
  if (!whole) patch.before = Storages::all().find(base, storage_bytes);
  if (!whole && !patch.before) patch.before = untouched(storage_bytes);
  auto value = std::make_shared<Value>();
  value->bytes = storage_bytes;
  if (patch.before) {
    value->unsure = without(doubts_of(*patch.before), patch.offset, patch.offset + patch.bytes);
    value->substituted = !value->unsure.empty();
    value->purpose = patch.before->purpose;
    value->unwritten = without(patch.before->unwritten, patch.offset, patch.offset + patch.bytes);
    value->depth = patch.before->depth + 1;
  }
  if (patch.source) {
    value->purpose = purpose_of_both(*value, *patch.source);
    add_moved(value->unsure, doubts_of(*patch.source), patch);
    value->substituted = !value->unsure.empty();
    add_moved(value->unwritten, patch.source->unwritten, patch);
    value->depth = std::max(value->depth, patch.source->depth + 1);
  }
  value->patch = std::make_shared<Patch>(std::move(patch));
  Storages::all().put(base, value);
  if (value->depth <= kDeepestPatch || waits(value)) return;
  if (value->substituted && storage_bytes > kPlausiblePatch)
    return Storages::all().forget(base, storage_bytes);
  compute(*value);
  value->depth = 0;
}

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
  for (const auto& [first, last] : between(value.unsure, begin, end)) unsure += last - first;
  return unsure != 0 && unsure < end - begin && value.unwritten.empty() &&
         value.foreign_work == foreign_work();
}

int tell_unsure(const Value& value, std::size_t begin, std::size_t end,
                const PeakbenchUnsure* unsure) {
  for (const auto& [first, last] : between(value.unsure, begin, end))
    unsure->add(unsure->into, first, last);
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
