#include "values/host.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/facts.h"
#include "core/values_hook.h"
#include "values/gather.h"
#include "values/sizes.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

using emulator::ReadKind;

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

// Bytes of a storage that a copy writes.
struct Flight {
  std::int64_t begin = 0, end = 0;
  PeakbenchIssued copy{};
};

// Where the elements of a tensor begin and end in its storage.
Flight flight_to(const at::Tensor& tensor, const PeakbenchIssued& copy) {
  const auto size = static_cast<std::int64_t>(tensor.dtype().itemsize());
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto begin = tensor.storage_offset() * size;
  return {begin, tensor.numel() == 0 ? begin : begin + (last + 1) * size, copy};
}

struct Standing {
  bool unknown = false, in_flight = false;
  Purpose purpose = Purpose::any;
};

// By storage. A weak reference keeps its address from being another's, not its bytes.
class Marks {
 public:
  static Marks& all() {
    static auto* const marks = new Marks;  // outlives the process's own destructors
    return *marks;
  }

  // Most programs have none at all: no lock.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

  void put(const at::Tensor& tensor, Purpose purpose) {
    const std::lock_guard lock(mutex_);
    if (marks_.size() >= next_sweep_) sweep();
    Mark& mark = mark_of(tensor);
    mark.unknown = true;
    mark.purpose = purpose;
  }

  void put(const at::Tensor& tensor, const PeakbenchIssued& copy) {
    const std::lock_guard lock(mutex_);
    if (marks_.size() >= next_sweep_) sweep();
    mark_of(tensor).flights.push_back(flight_to(tensor, copy));
  }

  // What the host writes over a copy in flight, the copy may write over again.
  void drop(const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const auto found = marks_.find(tensor.storage().unsafeGetStorageImpl());
    if (found == marks_.end()) return;
    found->second.unknown = false;
    if (found->second.flights.empty()) marks_.erase(found);
    count_ = marks_.size();
  }

  Standing find(const at::Tensor& tensor, std::optional<std::uint64_t> stream) {
    const std::lock_guard lock(mutex_);
    const auto found = marks_.find(tensor.storage().unsafeGetStorageImpl());
    if (found == marks_.end()) return {};
    Mark& mark = found->second;
    std::erase_if(mark.flights,
                  [](const Flight& flight) { return peakbench_emulator_is_done(flight.copy); });
    const Flight looked_at = flight_to(tensor, {});
    const bool in_flight = std::ranges::any_of(mark.flights, [&](const Flight& flight) {
      return flight.begin < looked_at.end && looked_at.begin < flight.end &&
             !(stream && peakbench_emulator_is_before(flight.copy, *stream));
    });
    const Standing result = {mark.unknown, in_flight, mark.purpose};
    if (!mark.unknown && mark.flights.empty()) marks_.erase(found);
    count_ = marks_.size();
    return result;
  }

 private:
  struct Mark {
    WeakStorage storage;
    bool unknown = false;
    Purpose purpose = Purpose::any;
    std::vector<Flight> flights;
  };

  Mark& mark_of(const at::Tensor& tensor) {
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    const auto [found, is_new] =
        marks_.try_emplace(storage, Mark{tensor.storage().getWeakStorageImpl(), false, {}, {}});
    // Of a storage that is gone, which had this address.
    if (!is_new && found->second.storage.expired())
      found->second = {tensor.storage().getWeakStorageImpl(), false, {}, {}};
    count_ = marks_.size();
    return found->second;
  }

  void sweep() {
    std::erase_if(marks_, [](const auto& mark) { return mark.second.storage.expired(); });
    next_sweep_ = std::max<std::size_t>(2 * marks_.size(), 1024);
  }

  mutable std::mutex mutex_;
  std::unordered_map<const void*, Mark> marks_;
  std::size_t next_sweep_ = 1024;
  std::atomic<std::size_t> count_{0};
};

bool can_be_marked(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && is_plain(tensor);
}

void look_at(const at::Tensor& tensor, HostCall& call) {
  if (!can_be_marked(tensor)) return;
  const Standing found = Marks::all().find(tensor, std::nullopt);
  if (!found.unknown && !found.in_flight) return;
  const auto purpose = found.in_flight ? Purpose::any : found.purpose;
  // Checks for finite values alone are one.
  call.purpose = call.rests && call.purpose != purpose ? Purpose::any : purpose;
  call.rests = true;
  call.in_flight |= found.in_flight;
}

// What the operator tells the program; nullopt where it is nothing that decides.
std::optional<ReadKind> decided(const Operator& op, const HostCall& call, at::ScalarType dtype,
                                bool truth) {
  if (op.reads_scalar) {
    const bool floating = !truth && !c10::isIntegralType(dtype, true);
    if (floating) return std::nullopt;
    if (call.purpose == Purpose::finite_check) return ReadKind::finite;
    return truth || dtype == at::kBool ? ReadKind::boolean : ReadKind::integer;
  }
  if (op.size_of == SizeOf::verdict) return ReadKind::boolean;
  if (op.size_of == SizeOf::nonzero || op.size_of == SizeOf::unique || op.has_mask)
    return ReadKind::size;
  const bool has_size = op.size_of != SizeOf::nothing && op.size_of != SizeOf::mode;
  if (has_size || op.has_counts) return ReadKind::integer;
  return std::nullopt;
}

ReadKind kind_of_number(at::ScalarType dtype) {
  if (dtype == at::kBool) return ReadKind::boolean;
  return c10::isIntegralType(dtype, false) ? ReadKind::integer : ReadKind::floating;
}

// Where a number of rows is assumed, the numbers that nobody knows become such that it is right.
void assume_rows(const Operator& op, const at::Tensor& from) {
  if (!is_marked_on_host(from)) return;
  const bool counts_distinct = op.size_of == SizeOf::unique && from.scalar_type() != at::kBool;
  const auto most = from.numel();
  const auto rows = assumed_rows(counts_distinct ? std::min<std::int64_t>(most, 1) : 0, most);
  if (!rows) return;
  const Unseen unseen;
  const at::Tensor places = at::arange(most).view(from.sizes());
  from.copy_(counts_distinct ? places.clamp_max(*rows - 1) : places.lt(*rows));
}

}  // namespace

void mark_on_host(const at::Tensor& tensor, Purpose purpose) {
  if (can_be_marked(tensor)) Marks::all().put(tensor, purpose);
}
void unmark_on_host(const at::Tensor& tensor) {
  if (Marks::all().any() && can_be_marked(tensor)) Marks::all().drop(tensor);
}
void mark_in_flight(const at::Tensor& tensor, const PeakbenchIssued& copy) {
  if (can_be_marked(tensor)) Marks::all().put(tensor, copy);
}
bool is_marked_on_host(const at::Tensor& tensor, std::optional<std::uint64_t> stream) {
  if (!Marks::all().any() || !can_be_marked(tensor)) return false;
  const Standing found = Marks::all().find(tensor, stream);
  return found.unknown || found.in_flight;
}

HostCall start_on_host(const Operator& op, c10::ArrayRef<const c10::IValue> arguments,
                       const Asking& asking) {
  HostCall call;
  if (!Marks::all().any() || op.takes_shape) return call;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto at = static_cast<int>(i);
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (i < op.writes.size() && op.writes[i]) call.targets.push_back(tensor);
      if (!op.writes_wholly(at)) look_at(tensor, call);
    });
  }
  if (!call.rests) {
    for (const at::Tensor& target : call.targets)
      if (op.overwrites && can_be_marked(target) && covers_storage(target)) unmark_on_host(target);
    return call;
  }
  const at::Tensor& first = arguments[0].isTensor() ? arguments[0].toTensor() : at::Tensor();
  const auto dtype = first.defined() ? first.scalar_type() : at::kFloat;
  auto kind = decided(op, call, dtype, asking.truth > 0);
  // That numbers are not known is told when they are copied; that nobody waited, when they are
  // read.
  if (!kind && call.in_flight) kind = kind_of_number(dtype);
  call.decides = kind.has_value();
  if (!call.decides || asking.size > 0) return call;
  if (kind == ReadKind::size) assume_rows(op, op.has_mask ? arguments[1].toTensor() : first);
  peakbench_emulator_decided(static_cast<int>(*kind), c10::elementSize(dtype));
  return call;
}

void end_on_host(const Operator& op, const HostCall& call,
                 const std::vector<c10::IValue>& results) {
  const auto purpose = op.purpose == Purpose::finite_check ? op.purpose : call.purpose;
  for (const at::Tensor& target : call.targets) mark_on_host(target, purpose);
  for (const c10::IValue& result : results)
    for_each_tensor(result, [&](const at::Tensor& tensor) { mark_on_host(tensor, purpose); });
}

}  // namespace peakbench::values
