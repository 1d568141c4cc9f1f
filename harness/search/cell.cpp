#include "search/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "search/boundary.h"

namespace peakbench::search {
namespace {

using records::CaseResult;
using records::Status;

// From few values a line is no guide to far ones.
constexpr std::int64_t kMostGrowth = 4;
constexpr std::int64_t kMostParts = 1024;  // of a batch

class CellSearch {
 public:
  CellSearch(const Cell& cell, const CellOptions& options, const RunCase& run,
             const HearTrial& heard)
      : cell_(cell), options_(options), run_(run), heard_(heard) {
    answer_.first = cell.limits.first;
  }

  CellAnswer go() {
    if (!cell_.not_run.empty()) {
      answer_.reason = cell_.not_run;
      return std::move(answer_);
    }
    take(search());
    if (answer_.state == State::kDoesNotFit && !options_.only_what_fits) run_without_limit();
    if (options_.least_memory && answer_.found) find_least();
    return std::move(answer_);
  }

 private:
  std::optional<CaseResult> run(std::int64_t value, std::optional<std::int64_t> memory_bytes) {
    auto planned = cell_.with_value(value);
    if (memory_bytes) planned = with_memory(std::move(planned), *memory_bytes);
    auto result = run_(planned);
    if (!result) {
      interrupted_ = true;
      return result;
    }
    Trial trial;
    trial.value = value;
    trial.memory_bytes = memory_bytes;
    trial.status = result->status;
    trial.wall_ns = result->wall_ns;
    if (result->memory && result->status == Status::kOk) {
      trial.allocated_bytes = result->memory->peak_allocated_bytes;
      trial.reserved_bytes = result->memory->peak_reserved_bytes;
    }
    heard_(trial);
    answer_.trials.push_back(trial);
    return result;
  }

  // Of a program's value nobody says whether more of it takes more memory. It takes less where the
  // last one runs, and the first does not or allocates more.
  Boundary search() {
    answer_.first = first_that_is_taken();
    const Limits limits{.first = answer_.first, .last = cell_.limits.last};
    auto found = largest_that_runs(
        {.first = limits.first, .last = limits.last},
        [this](std::int64_t value) { return try_value(value); }, options_.beside);
    if (cell_.along != Along::kProgram) return found;
    if (found.runs == limits.last && allocated_.at(limits.first) > allocated_.at(limits.last)) {
      answer_.is_smallest = true;
      found.runs = limits.first;
    }
    if (found.runs || found.stopped_at || limits.first == limits.last ||
        try_value(limits.last).answer != Answer::kRuns)
      return found;
    answer_.is_smallest = true;
    return turned(largest_that_runs(
        {.first = -limits.last, .last = -limits.first},
        [this](std::int64_t value) { return Tried{try_value(-value).answer}; }, options_.beside));
  }

  // A batch can be too small for what splits it, which says so when it is run.
  std::int64_t first_that_is_taken() {
    auto first = cell_.limits.first;
    if (cell_.along != Along::kBatch) return first;
    while (first <= cell_.limits.last / 2 && first < kMostParts) {
      try_value(first);
      const auto result = results_.find(first);
      if (result == results_.end() || result->second.status != Status::kUnsupported) return first;
      first *= 2;
    }
    return first;
  }

  // Of negative numbers, among which the smallest value is the largest.
  static Boundary turned(const Boundary& found) {
    const auto negative = [](const std::optional<std::int64_t>& value) {
      return value ? std::optional(-*value) : std::nullopt;
    };
    Boundary turned;
    turned.runs = negative(found.runs);
    turned.does_not = negative(found.does_not);
    turned.stopped_at = negative(found.stopped_at);
    for (const auto value : found.against) turned.against.push_back(-value);
    for (const auto& [value, answer] : found.tried) turned.tried[-value] = answer;
    return turned;
  }

  // No value is run twice.
  Tried try_value(std::int64_t value) {
    if (const auto known = results_.find(value); known != results_.end())
      return {.answer = answer_of(known->second)};
    auto result = run(value, std::nullopt);
    if (!result) return {};
    auto answer = answer_of(*result);
    // What a plugin refuses, above a value that it takes, is an end of the values as a range is.
    if (result->status == Status::kUnsupported && !allocated_.empty() &&
        allocated_.begin()->first < value)
      answer = Answer::kDoesNot;
    if (answer == Answer::kDoesNot && result->status == Status::kOk)
      result->reason = "the program ran out of memory, caught the error and continued";
    if (answer == Answer::kRuns && may_reserve_too_much(*result)) {
      answer = Answer::kDoesNot;
      result->reason = "it does not fit with the largest workspaces that cuDNN may take";
    }
    if (answer == Answer::kRuns) allocated_[value] = result->memory->peak_allocated_bytes;
    results_[value] = std::move(*result);
    return {.answer = answer, .hint = answer == Answer::kRuns ? hint_from(value) : std::nullopt};
  }

  // By the upper end of an estimate.
  bool may_reserve_too_much(const CaseResult& result) const {
    const auto* verdict = records::verdict_of(result);
    if (verdict == nullptr || !verdict->estimate || !result.memory->peak_reserved_bytes)
      return false;
    return *result.memory->peak_reserved_bytes + verdict->estimate->more_reserved_bytes >
           cell_.usable_bytes();
  }

  // Along the line through the two largest values that ran.
  std::optional<std::int64_t> hint_from(std::int64_t value) const {
    if (allocated_.size() < 2 || allocated_.rbegin()->first != value) return std::nullopt;
    const auto [last, last_bytes] = *allocated_.rbegin();
    const auto [before, before_bytes] = *std::next(allocated_.rbegin());
    if (last_bytes <= before_bytes) return last * kMostGrowth;
    const double each =
        static_cast<double>(last_bytes - before_bytes) / static_cast<double>(last - before);
    const double more = static_cast<double>(cell_.usable_bytes() - last_bytes) / each;
    if (more >= static_cast<double>(last * (kMostGrowth - 1))) return last * kMostGrowth;
    return last + static_cast<std::int64_t>(more);
  }

  std::string named(std::int64_t value) const {
    return cell_.along == Along::kNothing ? "it" : fmt::format("{} {}", cell_.label, value);
  }

  void take(const Boundary& found) {
    answer_.value = found.runs;
    if (found.runs) answer_.found = results_.at(*found.runs);
    if (found.does_not) {
      answer_.failed = results_.at(*found.does_not);
      answer_.failed_value = found.does_not;
    }
    answer_.at_limit =
        found.runs == cell_.limits.last && cell_.along != Along::kNothing && !answer_.is_smallest;
    if (answer_.failed && answer_.failed->status == Status::kUnsupported) {
      answer_.at_limit = true;
      answer_.limit_reason = answer_.failed->reason;
      answer_.failed.reset();
    }
    for (const auto value : found.against)
      answer_.against.push_back(
          found.tried.at(value) == Answer::kRuns
              ? fmt::format("{} runs, too, though {} does not", value, *found.does_not)
              : fmt::format("{} does not run, though {} does", value, *found.runs));
    answer_.state = found.runs ? State::kFits : State::kDoesNotFit;
    if (found.stopped_at) stop(*found.stopped_at);
  }

  void stop(std::int64_t value) {
    answer_.state = State::kUnknown;
    if (interrupted_) {
      answer_.reason = "interrupted";
      return;
    }
    const auto& result = results_.at(value);
    answer_.reason =
        fmt::format("{} ended {}: {}", named(value), to_string(result.status), result.reason);
  }

  // What the smallest would need, were the card larger.
  void run_without_limit() {
    auto result = run(answer_.first, kNoLimitBytes);
    if (result && result->status == Status::kOk)
      answer_.found = std::move(result);
    else
      answer_.least.note = result ? fmt::format("without a limit it ended {}: {}",
                                                to_string(result->status), result->reason)
                                  : "interrupted";
  }

  void find_least() {
    const auto value = answer_.value.value_or(answer_.first);
    const auto& memory = *answer_.found->memory;
    const auto reserved = memory.peak_reserved_bytes.value_or(memory.peak_allocated_bytes);
    const KnownPeaks known{
        // Of a graph that is replayed, what is allocated says little.
        .allocated_bytes = memory.replays_steps ? reserved : memory.peak_allocated_bytes,
        .reserved_bytes = reserved,
        .card_bytes = answer_.state == State::kDoesNotFit ? std::nullopt
                                                          : std::optional(cell_.usable_bytes())};
    const auto context = static_cast<std::int64_t>(cell_.context.bytes);
    answer_.least = find_least_memory(
        known, [&](std::int64_t bytes) { return run(value, bytes + context); }, options_.beside);
  }

  const Cell& cell_;
  const CellOptions& options_;
  const RunCase& run_;
  const HearTrial& heard_;
  std::map<std::int64_t, CaseResult> results_;      // under the card's own limit
  std::map<std::int64_t, std::int64_t> allocated_;  // peaks of those that ran
  bool interrupted_ = false;
  CellAnswer answer_;
};

}  // namespace

std::string to_string(State state) {
  switch (state) {
    case State::kNotRun:
      return "not_run";
    case State::kFits:
      return "fits";
    case State::kDoesNotFit:
      return "does_not_fit";
    case State::kUnknown:
      return "unknown";
  }
  return "unknown";
}

CellAnswer search_cell(const Cell& cell, const CellOptions& options, const RunCase& run,
                       const HearTrial& heard) {
  return CellSearch(cell, options, run, heard).go();
}

}  // namespace peakbench::search
