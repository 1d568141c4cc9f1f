// What `peakbench fit` prints, from made-up answers.
#include "cli/fit_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/columns.h"

namespace peakbench::cli {
namespace {

using search::Along;
using search::Cell;
using search::CellAnswer;
using search::State;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kGiB = 1 << 30;

Cell cell_of(const std::string& stack, const std::string& card, bool another_problem = false) {
  Cell cell;
  cell.planned.spec.model.id = "m";
  cell.planned.spec.strategies.emplace_back().id = stack;
  cell.planned.spec.device = "emulated:" + card;
  cell.card = card;
  cell.planned.promise.different_problem = another_problem;
  cell.along = Along::kBatch;
  cell.label = "batch size";
  cell.card_bytes = 40 * kGiB;
  return cell;
}

CellAnswer takes(State state, std::optional<std::int64_t> value, std::int64_t gib) {
  CellAnswer answer;
  answer.state = state;
  answer.value = value;
  answer.found.emplace();
  answer.found->memory.emplace();
  answer.found->memory->peak_allocated_bytes = (gib - 1) * kGiB;
  answer.found->memory->peak_reserved_bytes = (gib + 1) * kGiB;
  answer.least.bytes = gib * kGiB;
  return answer;
}

FitFound one(Cell cell, CellAnswer answer) {
  FitFound found;
  found.title = "m";
  found.along = cell.along;
  found.cells = {std::move(cell)};
  found.answers = {std::move(answer)};
  return found;
}

TEST(FitText, TheFirstLineIsTheAnswer) {
  const auto found = one(cell_of("lora", "a100-40gb"), takes(State::kFits, 1234, 38));
  EXPECT_THAT(fit_text(found, 100),
              StartsWith("m on a100-40gb: batch size 1,234 with lora: needs 38.000 GiB of 40.000 "
                         "GiB with no CUDA context set aside.\n"));
  auto without_least = takes(State::kFits, 1234, 38);
  without_least.least = {};
  EXPECT_THAT(fit_text(one(cell_of("lora", "a100-40gb"), without_least), 100),
              HasSubstr("with lora: reserves 39.000 GiB of 40.000 GiB"));
}

TEST(FitText, TheContextThatIsSetAsideIsInTheLine) {
  auto found = one(cell_of("lora", "a100-40gb"), takes(State::kFits, 2, 38));
  found.cells.front().context = {517ull << 20, emulator::ContextSource::measured};
  EXPECT_THAT(fit_text(found, 100),
              HasSubstr("needs 38.000 GiB of 40.000 GiB beside a CUDA context of 0.505 GiB.\n"));
  found.cells.front().context = {};
  const auto text = fit_text(found, 100);
  EXPECT_THAT(text, HasSubstr("40.000 GiB beside a CUDA context of up to 0.749 GiB.\n"));
  EXPECT_THAT(text, HasSubstr("1.251"));  // left: 40 GiB less 38 GiB and 767 MiB
}

TEST(FitText, WhatDoesNotFitSaysWhatItNeeds) {
  auto answer = takes(State::kDoesNotFit, std::nullopt, 45);
  answer.failed.emplace();
  answer.failed->reason = "asked for 1.000 GiB in backward, aten::mm";
  answer.failed_value = 1;
  const auto text = fit_text(one(cell_of("baseline", "a100-40gb"), answer), 100);
  EXPECT_THAT(text,
              StartsWith("m on a100-40gb: not even batch size 1; baseline needs 45.000 GiB of "
                         "40.000 GiB with no CUDA context set aside.\n"));
  EXPECT_THAT(text, HasSubstr("lacks 5.000"));
  EXPECT_THAT(text, HasSubstr("Which allocation fails\nbaseline on a100-40gb, batch size 1: asked "
                              "for 1.000 GiB in backward, aten::mm\n"));
}

TEST(FitText, WhatIsNotKnownIsNeverThatItDoesNotFit) {
  CellAnswer answer;
  answer.state = State::kUnknown;
  answer.reason = "batch size 1 ended crashed: killed by SIGSEGV";
  const auto text = fit_text(one(cell_of("baseline", "a100-40gb"), answer), 100);
  EXPECT_THAT(text, StartsWith("m on a100-40gb: not known, batch size 1 ended crashed"));
  EXPECT_THAT(text, Not(HasSubstr("does not fit")));
}

// Two stacks on four cards, of which the last is not run.
FitFound several() {
  FitFound found;
  found.title = "m";
  found.along = Along::kBatch;
  for (const auto* card : {"a100-40gb", "rtx-4090-24gb", "rtx-6000-ada-48gb", "rtx-pro-6000-96gb"})
    for (const auto* stack : {"checkpointing", "lora"}) {
      found.cells.push_back(cell_of(stack, card, *stack == 'l'));
      found.answers.push_back(takes(State::kFits, *stack == 'l' ? 20 : 8, 38));
    }
  found.answers.back() = {};
  found.answers.back().reason = "interrupted";
  found.answers.front().against = {"10 runs, too, though 9 does not"};
  return found;
}

TEST(FitText, TheGridHasEveryCell) {
  const auto text = fit_text(several(), 200);
  EXPECT_THAT(text, HasSubstr("checkpointing             8 ~              8                  8    "
                              "              8\n"));
  EXPECT_THAT(text, HasSubstr("lora                       20             20                 20    "
                              "        not run\n"));
  EXPECT_THAT(text, HasSubstr("lora on rtx-pro-6000-96gb: not run: interrupted"));
  EXPECT_THAT(text, HasSubstr("~ checkpointing on a100-40gb: not monotone: 10 runs, too"));
}

// What it reserves without a limit is no size that fits.
TEST(FitText, TheGridSaysTooLarge) {
  auto found = several();
  found.answers.front() = takes(State::kDoesNotFit, std::nullopt, 45);
  EXPECT_THAT(fit_text(found, 200), HasSubstr("needs 45.000"));
  found.answers.front().least = {};
  EXPECT_THAT(fit_text(found, 200), HasSubstr("too large: 46.000"));
}

// Adapters go further, and are not the same training.
TEST(FitText, FullFineTuningIsNamedFirst) {
  EXPECT_THAT(
      fit_answer(several()),
      StartsWith("m on a100-40gb: batch size 8 with checkpointing: needs 38.000 GiB of "
                 "40.000 GiB with no CUDA context set aside; batch size 20 with lora: needs 38.000 "
                 "GiB of 40.000 GiB with no CUDA context set aside (trains differently).\n"));
}

// Of two models the larger batch is no answer for the other.
TEST(FitText, EachModelHasAnAnswerOfItsOwn) {
  auto found = one(cell_of("baseline", "a100-40gb"), takes(State::kFits, 8, 38));
  found.title = "m and n";
  found.cells.push_back(cell_of("checkpointing", "a100-40gb"));
  found.cells.back().planned.spec.model.id = "n";
  found.answers.push_back(takes(State::kFits, 107, 39));
  EXPECT_EQ(
      fit_answer(found),
      "m on a100-40gb: batch size 8 with baseline: needs 38.000 GiB of 40.000 GiB with no CUDA "
      "context set aside.\n"
      "n on a100-40gb: batch size 107 with checkpointing: needs 39.000 GiB of 40.000 GiB with "
      "no CUDA context set aside.\n");
}

TEST(FitText, TablesKeepToTheWindow) {
  for (const int width : {60, 80, 120}) {
    std::istringstream lines(fit_text(several(), width));
    bool is_answer = true;  // which a terminal breaks where it likes
    for (std::string line; std::getline(lines, line);) {
      is_answer = is_answer && !line.empty();
      if (!is_answer) {
        EXPECT_LE(display_width(line), width) << line;
      }
    }
  }
}

TEST(FitText, TheSmallestCardIsTheAnswer) {
  auto found = several();
  found.smallest_card = true;
  found.along = Along::kNothing;
  for (auto& cell : found.cells) cell.along = Along::kNothing;
  found.cells[2].card_bytes = 24 * kGiB;
  EXPECT_THAT(fit_answer(found),
              StartsWith("m fits rtx-4090-24gb, the smallest card: with checkpointing it needs"));
}

TEST(FitText, CardsThatWereNotTriedAreCounted) {
  auto found = several();
  found.smallest_card = true;
  for (std::size_t i = 0; i < found.cells.size(); ++i)
    if (found.cells[i].planned.spec.device != "emulated:a100-40gb") {
      found.answers[i] = {};
      found.answers[i].reason = "a smaller card does: emulated:a100-40gb";
    }
  const auto text = fit_text(found, 100);
  EXPECT_THAT(text, HasSubstr("not tried: a smaller card does\n"));
  EXPECT_THAT(text, Not(HasSubstr("rtx-4090-24gb")));
}

TEST(FitText, OfSeveralBoundsTheTightestIsNamed) {
  auto found = one(cell_of("baseline", "a100-40gb"), takes(State::kFits, 2, 38));
  found.cells.push_back(cell_of("lora", "a100-40gb"));
  found.answers.push_back(takes(State::kFits, 3, 30));
  for (std::size_t i = 0; i < 2; ++i) {
    auto& verdict = found.answers[i].found->emulation.emplace().verdict.emplace();
    verdict.kind = records::VerdictKind::lower_bound;
    verdict.workspace_room_bytes = i == 0 ? 5 * kGiB : kGiB;
    verdict.reasons = {i == 0 ? "the reason of five" : "the reason of one"};
  }
  const auto text = fit_text(found, 100);
  EXPECT_THAT(text, HasSubstr("lora on a100-40gb (and 1 more): lower bound: the reason of one"));
  EXPECT_THAT(text, Not(HasSubstr("the reason of five")));
}

TEST(FitText, NothingOfOthersReachesTheTerminal) {
  auto found = one(cell_of("baseline", "a100-40gb"), takes(State::kFits, 2, 38));
  found.title = "m\x1b[31m";
  found.answers[0].least.note = "with\x1b]0;title";
  EXPECT_THAT(fit_text(found, 100), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace peakbench::cli
