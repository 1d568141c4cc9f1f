// A cell of `fit` and the least memory, on a card whose memory is a formula.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/numbers.h"
#include "search/boundary.h"
#include "search/cell.h"
#include "search/fit.h"

namespace peakbench::search {
namespace {

using records::CaseResult;
using records::Status;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kMiB = 1 << 20;

CaseResult ran(std::int64_t allocated, std::int64_t reserved) {
  CaseResult result;
  result.memory.emplace();
  result.memory->peak_allocated_bytes = allocated;
  result.memory->peak_reserved_bytes = reserved;
  return result;
}

CaseResult did_not(std::int64_t limit, std::int64_t reserved) {
  CaseResult result;
  result.status = Status::kOutOfMemory;
  result.out_of_memory.emplace();
  result.out_of_memory->limit_bytes = limit;
  result.out_of_memory->reserved_bytes = reserved;
  result.out_of_memory->requested_bytes = 3 * kMiB;
  result.reason = "asked for 3 MiB";
  return result;
}

CaseResult crashed() {
  CaseResult result;
  result.status = Status::kCrashed;
  result.reason = "killed by SIGSEGV";
  return result;
}

CaseResult unsupported() {
  CaseResult result;
  result.status = Status::kUnsupported;
  result.reason = "this model learns 12 positions";
  return result;
}

// Runs where `needed` bytes are there.
struct Card {
  std::int64_t needed = 0, reserved = 0;
  std::vector<std::int64_t> limits;
  RunUnderLimit as_run() {
    return [this](std::int64_t bytes) -> std::optional<CaseResult> {
      limits.push_back(bytes);
      if (bytes >= needed) return ran(needed - 10 * kMiB, std::min(bytes, reserved));
      return did_not(bytes, bytes - kMiB);
    };
  }
};

TEST(LeastMemory, IsToTheGranularity) {
  for (std::int64_t needed = 500 * kMiB; needed < 520 * kMiB; needed += kMiB + 7) {
    Card card{.needed = needed, .reserved = 900 * kMiB, .limits = {}};
    const auto least = find_least_memory(
        {.allocated_bytes = needed - 10 * kMiB, .reserved_bytes = 900 * kMiB, .card_bytes = {}},
        card.as_run());
    EXPECT_EQ(least.bytes,
              (needed + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes);
    EXPECT_EQ(least.runs, std::ssize(card.limits));
    EXPECT_THAT(least.note, IsEmpty());
    // Both sides were run.
    EXPECT_THAT(card.limits, testing::Contains(*least.bytes));
    EXPECT_THAT(card.limits, testing::Contains(*least.bytes - kGranularityBytes));
  }
}

TEST(LeastMemory, OfACardIsNoMoreThanThat) {
  const std::int64_t bytes = 700 * kMiB + 12345;
  Card card{.needed = bytes - 1, .reserved = 900 * kMiB, .limits = {}};
  const auto least = find_least_memory(
      {.allocated_bytes = 600 * kMiB, .reserved_bytes = bytes, .card_bytes = bytes}, card.as_run());
  EXPECT_EQ(least.bytes, bytes);
}

// What is known is only where to begin.
TEST(LeastMemory, IsFoundBelowAndAboveWhatIsLikely) {
  Card less{.needed = 100 * kMiB, .reserved = 900 * kMiB, .limits = {}};
  const KnownPeaks known{
      .allocated_bytes = 500 * kMiB, .reserved_bytes = 600 * kMiB, .card_bytes = {}};
  EXPECT_EQ(find_least_memory(known, less.as_run()).bytes, 100 * kMiB);
  Card more{.needed = 800 * kMiB, .reserved = 900 * kMiB, .limits = {}};
  EXPECT_EQ(find_least_memory(known, more.as_run()).bytes, 800 * kMiB);
}

TEST(LeastMemory, ACrashIsNoWantOfMemory) {
  const auto least = find_least_memory(
      {.allocated_bytes = 500 * kMiB, .reserved_bytes = 600 * kMiB, .card_bytes = {}},
      [](std::int64_t) { return std::optional(crashed()); });
  EXPECT_EQ(least.bytes, std::nullopt);
  EXPECT_THAT(least.note, HasSubstr("crashed: killed by SIGSEGV"));
}

TEST(LeastMemory, AnInterruptionEndsIt) {
  const auto least = find_least_memory(
      {.allocated_bytes = 500 * kMiB, .reserved_bytes = 600 * kMiB, .card_bytes = {}},
      [](std::int64_t) { return std::optional<CaseResult>(); });
  EXPECT_EQ(least.bytes, std::nullopt);
  EXPECT_EQ(least.note, "interrupted");
}

TEST(LeastMemory, WhatSpeaksAgainstItIsSaid) {
  // 510 MiB run and 512 do not.
  const auto least = find_least_memory(
      {.allocated_bytes = 500 * kMiB, .reserved_bytes = 600 * kMiB, .card_bytes = {}},
      [](std::int64_t bytes) -> std::optional<CaseResult> {
        const bool runs = bytes >= 514 * kMiB || bytes == 510 * kMiB;
        return runs ? ran(500 * kMiB, 600 * kMiB) : did_not(bytes, bytes);
      });
  ASSERT_TRUE(least.bytes.has_value());
  EXPECT_THAT(least.note, HasSubstr(*least.bytes == 514 * kMiB ? "it ran in less, too: "
                                                               : "did not run in a little more"));
}

// Needs 100 MiB and 30 for each sample.
class OneCell {
 public:
  OneCell() {
    cell.planned.spec.device = "emulated:h100-80gb";
    cell.along = Along::kBatch;
    cell.label = "batch size";
    cell.limits = {.first = 1, .last = 1000};
    cell.card_bytes = 1000 * kMiB;
    cell.with_value = [this](std::int64_t value) {
      auto planned = cell.planned;
      planned.spec.batch_size = value;
      return planned;
    };
  }

  CellAnswer search(CellOptions options = {}) {
    return search_cell(
        cell, options, [this](const planning::PlannedCase& planned) { return run(planned); },
        [this](const Trial&) { ++heard; });
  }

  std::optional<CaseResult> run(const planning::PlannedCase& planned) const {
    const auto value = planned.spec.batch_size;
    if (value >= crashes_from) return crashed();
    if (value > most) return unsupported();
    const auto device = planned.spec.device;
    const auto at = device.find("memory=");
    const auto memory =
        at == std::string::npos ? cell.card_bytes : *bytes_from_text(device.substr(at + 7));
    const auto limit = memory - static_cast<std::int64_t>(cell.context.bytes);
    EXPECT_GT(limit, 0) << "no such card";
    if (value >= catches_from) {
      auto caught = ran(kMiB, kMiB);
      caught.settings[records::kCaughtOutOfMemory] = 2;
      return caught;
    }
    const auto needed = (100 + 30 * value) * kMiB;
    return needed <= limit ? ran(needed - 8 * kMiB, std::min(limit, needed + 50 * kMiB))
                           : did_not(limit, limit - kMiB);
  }

  Cell cell;
  std::int64_t crashes_from = 1'000'000, most = 1'000'000, catches_from = 1'000'000;
  int heard = 0;
};

TEST(SearchCell, FindsTheLargestAndItsLeastMemory) {
  OneCell one;
  const auto answer = one.search();
  EXPECT_EQ(answer.state, State::kFits);
  EXPECT_EQ(answer.value, 30);
  EXPECT_EQ(answer.failed_value, 31);
  EXPECT_EQ(answer.failed->reason, "asked for 3 MiB");
  EXPECT_EQ(answer.least.bytes, 1000 * kMiB);
  EXPECT_EQ(one.heard, std::ssize(answer.trials));
  EXPECT_EQ(room_of(one.cell, answer).left_bytes, 0);
}

// Of what does not fit: what it would need, found without the card's own limit.
TEST(SearchCell, SaysWhatTheSmallestWouldNeed) {
  OneCell one;
  one.cell.card_bytes = 100 * kMiB;
  const auto answer = one.search();
  EXPECT_EQ(answer.state, State::kDoesNotFit);
  EXPECT_EQ(answer.value, std::nullopt);
  EXPECT_EQ(answer.least.bytes, 130 * kMiB);
  EXPECT_EQ(room_of(one.cell, answer).left_bytes, -30 * kMiB);
  EXPECT_EQ(to_json(one.cell, answer)["state"], "does_not_fit");
}

TEST(SearchCell, ACrashIsNotThatItDoesNotFit) {
  OneCell one;
  one.crashes_from = 1;
  const auto first = one.search();
  EXPECT_EQ(first.state, State::kUnknown);
  EXPECT_EQ(first.reason, "batch size 1 ended crashed: killed by SIGSEGV");
  one.crashes_from = 8;
  const auto later = one.search();
  EXPECT_EQ(later.state, State::kUnknown);
  ASSERT_TRUE(later.value.has_value());
  EXPECT_LT(*later.value, 8);
  EXPECT_THAT(later.reason, HasSubstr("ended crashed"));
}

TEST(SearchCell, TheLastValueMayRun) {
  OneCell one;
  one.cell.limits.last = 12;
  const auto answer = one.search();
  EXPECT_EQ(answer.value, 12);
  EXPECT_TRUE(answer.at_limit);
  EXPECT_FALSE(answer.failed.has_value());
}

TEST(SearchCell, WhatAPluginRefusesIsAnEndOfTheValues) {
  OneCell one;
  one.most = 12;
  const auto answer = one.search();
  EXPECT_EQ(answer.state, State::kFits);
  EXPECT_EQ(answer.value, 12);
  EXPECT_TRUE(answer.at_limit);
  EXPECT_EQ(answer.limit_reason, "this model learns 12 positions");
  EXPECT_FALSE(answer.failed.has_value());
  one.most = 0;  // and the smallest is no size that does not fit
  EXPECT_EQ(one.search().state, State::kUnknown);
}

// As what is allocated and reserved, the least memory is next to what is set aside. Contexts are no
// multiple of what the allocator takes.
TEST(SearchCell, WhatIsSetAsideForTheContextIsNoPartOfItsFigures) {
  OneCell one;
  one.cell.limits.last = 2;
  const auto without = one.search();
  one.cell.context = {601 * kMiB, emulator::ContextSource::largest_known};
  const auto answer = one.search();
  EXPECT_EQ(answer.value, 2);
  EXPECT_EQ(answer.least.bytes, without.least.bytes);
  EXPECT_EQ(room_of(one.cell, answer).left_bytes, (1000 - 601 - 160) * kMiB);
  const auto json = to_json(one.cell, answer);
  EXPECT_EQ(json["context_bytes"], 601 * kMiB);
  EXPECT_EQ(json["context_source"], "largest_known");
}

// A program that ran out, and went on with less, did not fit.
TEST(SearchCell, OutOfMemoryThatWasCaughtDoesNotFit) {
  OneCell one;
  one.catches_from = 5;
  const auto answer = one.search({.least_memory = false});
  EXPECT_EQ(answer.value, 4);
  EXPECT_EQ(answer.failed->reason, "the program ran out of memory, caught the error and continued");
}

// Chunks: the smallest that runs is the answer, and no value is run twice.
TEST(SearchCell, OfAProgramsValueMoreMayTakeLess) {
  OneCell one;
  one.cell.along = Along::kProgram;
  one.cell.limits = {.first = 1, .last = 20};
  const auto run = [&](const planning::PlannedCase& planned) -> std::optional<CaseResult> {
    const auto needed = 9500 * kMiB / planned.spec.batch_size;
    return needed <= one.cell.card_bytes ? ran(needed, needed)
                                         : did_not(one.cell.card_bytes, one.cell.card_bytes);
  };
  const auto answer = search_cell(one.cell, {.least_memory = false}, run, [](const Trial&) {});
  EXPECT_EQ(answer.state, State::kFits);
  EXPECT_TRUE(answer.is_smallest);
  EXPECT_EQ(answer.value, 10);
  EXPECT_EQ(answer.failed_value, 9);
  EXPECT_FALSE(answer.at_limit);
  EXPECT_THAT(answer.against, IsEmpty());
  EXPECT_EQ(to_json(one.cell, answer)["smallest"], 10);
  EXPECT_TRUE(to_json(one.cell, answer)["largest"].is_null());
  std::set<std::int64_t> values;
  for (const auto& trial : answer.trials) EXPECT_TRUE(values.insert(trial.value).second);
}

TEST(SearchCell, OfAProgramsValueThatAlwaysRunsTheSmallestWhereMoreTakesLess) {
  for (const std::int64_t each : {-kMiB, kMiB}) {
    OneCell one;
    one.cell.along = Along::kProgram;
    one.cell.limits = {.first = 1, .last = 8};
    const auto run = [&](const planning::PlannedCase& planned) -> std::optional<CaseResult> {
      return ran(100 * kMiB + each * planned.spec.batch_size, 200 * kMiB);
    };
    const auto answer = search_cell(one.cell, {.least_memory = false}, run, [](const Trial&) {});
    EXPECT_EQ(answer.is_smallest, each < 0);
    EXPECT_EQ(answer.value, each < 0 ? 1 : 8);
    EXPECT_EQ(answer.found->memory->peak_allocated_bytes, 100 * kMiB + each * *answer.value);
    EXPECT_FALSE(answer.failed);
    EXPECT_EQ(answer.at_limit, each > 0);
  }
}

TEST(SearchCell, WhatIsNotRunSaysWhy) {
  OneCell one;
  one.cell.not_run = "lora and dora both take the slot adapters";
  one.cell.limits.first = 4;
  const auto answer = one.search();
  EXPECT_EQ(answer.first, 4);
  EXPECT_EQ(answer.state, State::kNotRun);
  EXPECT_EQ(answer.reason, one.cell.not_run);
  EXPECT_EQ(one.heard, 0);
}

}  // namespace
}  // namespace peakbench::search
