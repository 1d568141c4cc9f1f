#include "values/outcomes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/values_hook.h"
#include "values/evaluate.h"
#include "values/patch.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

using emulator::ReadKind;

constexpr std::uint64_t kTurnsGuess = 3, kUpAgainGuess = 4;  // the last one that chooses

void choose_truths(const at::Tensor& elements) {
  constexpr std::uint64_t kMostForced = 64;
  if (guess() == kUpAgainGuess) return;
  const auto before = peakbench_emulator_reads_here();
  const bool in_turn = guess() == kTurnsGuess || before >= kMostForced;
  const bool is_true = in_turn ? before % 2 == 0 : guess() == kHighGuess;
  if (is_true)
    elements.masked_fill_(elements.eq(0), 1);
  else
    elements.zero_();
}

void sort(const at::Tensor& elements, bool descending) {
  elements.copy_(std::get<0>(elements.sort(0, descending)));
}

void choose_numbers(const at::Tensor& elements) {
  constexpr double kHighest = 40, kHigh = 20, kLowest = -5, kLow = 1;
  static std::atomic<std::uint64_t> reads{0};
  if (guess() >= kTurnsGuess || elements.is_complex()) return;
  const bool descending = guess() == kHighGuess;
  if (elements.numel() > 1) return sort(elements, descending);
  const auto before = static_cast<double>(reads.fetch_add(1, std::memory_order_relaxed));
  const double share = before / (before + 1);
  elements.fill_(descending ? kHighest - share * (kHighest - kHigh)
                            : kLowest + share * (kLow - kLowest));
}

void choose_integers(const at::Tensor& elements, std::int64_t most) {
  const auto order = guess() == kTurnsGuess ? Order::down : Order::up;
  if (elements.numel() > 1) {
    if (guess() != kHighGuess) sort(elements, order == Order::down);
    return;
  }
  if (most <= 0) return peakbench_emulator_read_unbounded();
  elements.fill_(guess() == kHighGuess ? most : next_in_order(order, 0, most));
}

void choose(const Outcome& outcome, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(outcome.bytes / c10::elementSize(outcome.dtype));
  if (count == 0) return;
  const Unseen unseen;
  const at::Tensor elements = at::empty({count}, outcome.dtype);
  std::memcpy(elements.data_ptr(), outcome.to, outcome.bytes);
  if (outcome.kind == ReadKind::floating) choose_numbers(elements);
  if (outcome.kind == ReadKind::integer) choose_integers(elements, most);
  if (outcome.kind == ReadKind::boolean) choose_truths(elements);
  std::memcpy(outcome.to, elements.data_ptr(), outcome.bytes);
}

}  // namespace

std::int64_t next_in_order(Order order, std::int64_t least, std::int64_t most) {
  static std::mutex mutex;
  static std::optional<std::int64_t> last;
  const std::lock_guard lock(mutex);
  const bool is_up = order == Order::up;
  const auto first = is_up ? least + 1 : most - 1;
  auto next = !last ? first : is_up ? *last + 1 : std::min(*last - 1, most);
  if (is_up ? next > most : next < least) next = first;
  last = std::clamp(next, least, most);
  return *last;
}

void choose_outcome(const ValuePtr& value, std::size_t offset, const Outcome& outcome) {
  if (guess() == 0 || guess() > kUpAgainGuess) return;
  if (outcome.dtype == at::ScalarType::Undefined) return;
  if (!value) return choose(outcome, 0);
  auto& mutex = Storages::all().mutex();
  {
    const std::lock_guard lock(mutex);
    if (overlaps(value->chosen, offset, offset + outcome.bytes)) return;
  }
  choose(outcome, value->substitute.most);
  const std::lock_guard lock(mutex);
  value->data = value->data.clone();  // it may be another's, too
  std::memcpy(static_cast<char*>(value->data.data_ptr()) + offset, outcome.to, outcome.bytes);
  value->chosen.emplace_back(offset, offset + outcome.bytes);
}

}  // namespace peakbench::values
