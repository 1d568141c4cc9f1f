#include "cli/fit_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/printable.h"
#include "records/axes.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "search/fit.h"

namespace peakbench::cli {
namespace {

using reports::gib;
using search::Along;
using search::Cell;
using search::CellAnswer;
using search::State;

bool has_axis(const FitFound& found) { return found.along != Along::kNothing; }

bool is_another_problem(const Cell& cell) { return cell.planned.promise.different_problem; }

// From that of another cell.
bool differs(const FitFound& found, const records::AxisRow& row, const Cell& cell) {
  return std::ranges::any_of(found.cells, [&](const Cell& other) {
    return !records::same_in(row, other.planned.spec, cell.planned.spec);
  });
}

// What else differs between cells than the stack and the card: "gpt2 s256", "bf16"; empty where
// nothing does.
std::string setting_of_cell(const FitFound& found, const Cell& cell) {
  const auto& spec = cell.planned.spec;
  std::string setting;
  if (spec.kind == records::CaseKind::kProgram) return setting;
  for (const auto axis : {records::Axis::kModel, records::Axis::kDtype, records::Axis::kBatchSize,
                          records::Axis::kSequenceLength, records::Axis::kAllocator}) {
    const auto& row = records::row_of(axis);
    if (!differs(found, row, cell)) continue;
    const auto text =
        axis == records::Axis::kModel || !*row.in_id ? row.text(spec) : records::in_id(row, spec);
    if (!text.empty()) setting += (setting.empty() ? "" : " ") + text;
  }
  return setting;
}

// Who is asked about: each model, length and setting has an answer of its own.
std::string subject_of_cell(const FitFound& found, const Cell& cell) {
  const auto setting = setting_of_cell(found, cell);
  if (!setting.empty() && differs(found, records::row_of(records::Axis::kModel), cell))
    return setting;
  return found.title + (setting.empty() ? "" : " " + setting);
}

// What fits best of these cells: the largest value, and of equals the first, which costs least.
std::optional<std::size_t> best(const FitFound& found, const std::vector<std::size_t>& cells) {
  std::optional<std::size_t> chosen;
  for (const auto i : cells)
    if (const auto& value = found.answers[i].value;
        value && (!chosen || *value > *found.answers[*chosen].value))
      chosen = i;
  return chosen;
}

std::vector<std::string> in_order(const FitFound& found,
                                  const std::function<std::string(const Cell&)>& name) {
  std::vector<std::string> names;
  for (const auto& cell : found.cells)
    if (const auto one = name(cell); std::ranges::find(names, one) == names.end())
      names.push_back(one);
  return names;
}

std::vector<std::size_t> cells_on(const FitFound& found, const std::string& card) {
  std::vector<std::size_t> cells;
  for (std::size_t i = 0; i < found.cells.size(); ++i)
    if (found.cells[i].card == card) cells.push_back(i);
  return cells;
}

// As typed; of all of them those that something ran on, from the smallest.
std::vector<std::string> shown_cards(const FitFound& found) {
  auto cards = in_order(found, std::mem_fn(&Cell::card));
  if (!found.smallest_card) return cards;
  std::erase_if(cards, [&](const std::string& card) {
    return std::ranges::all_of(cells_on(found, card), [&](std::size_t i) {
      return found.answers[i].state == State::kNotRun;
    });
  });
  std::ranges::stable_sort(cards, {}, [&](const std::string& card) {
    return found.cells[cells_on(found, card).front()].card_bytes;
  });
  return cards;
}

// As the recipe says it; of a program its name.
std::string stack_of_cell(const Cell& cell) {
  const auto& spec = cell.planned.spec;
  return spec.kind == records::CaseKind::kProgram ? spec.model.id : reports::row_name(spec);
}

std::string of_card(const Cell& cell) { return gib(cell.card_bytes) + " GiB"; }

std::string takes_words(const Cell& cell, const CellAnswer& answer) {
  const auto room = search::room_of(cell, answer);
  if (!room.takes_bytes) return "";
  const auto* verdict = records::verdict_of(*answer.found);
  const auto kind = verdict ? verdict->kind : records::VerdictKind::exact;
  const auto* bound = kind == records::VerdictKind::lower_bound   ? "at least "
                      : kind == records::VerdictKind::upper_bound ? "at most "
                      : kind == records::VerdictKind::estimate    ? "about "
                      : kind == records::VerdictKind::unreliable  ? "by unreliable figures "
                                                                  : "";
  return fmt::format("{} {}{} GiB of {} {}",
                     answer.least.bytes                   ? "needs"
                     : answer.state != State::kDoesNotFit ? "reserves"
                                                          : "without a limit reserves",
                     bound, gib(*room.takes_bytes), of_card(cell),
                     emulator::beside_text(cell.context));
}

std::string value_words(const FitFound& found, std::int64_t value) {
  return fmt::format("{} {}", axis_label(found), reports::grouped(value));
}

// The cell that lacks least.
std::size_t nearest_to_fit(const FitFound& found, const std::vector<std::size_t>& cells) {
  return *std::ranges::min_element(cells, {}, [&](std::size_t i) {
    const auto room = search::room_of(found.cells[i], found.answers[i]);
    return room.takes_bytes.value_or(std::numeric_limits<std::int64_t>::max());
  });
}

std::string fits_words(const FitFound& found, std::size_t i) {
  const auto& answer = found.answers[i];
  const auto& cell = found.cells[i];
  const auto what = !has_axis(found) ? std::string("fits")
                    : answer.is_smallest
                        ? fmt::format("from {} on", value_words(found, *answer.value))
                        : fmt::format("{}{}", answer.state == State::kUnknown ? "at least " : "",
                                      value_words(found, *answer.value));
  const auto stack = stack_of_cell(cell);
  return fmt::format("{}{}: {}{}{}", what, stack == found.title ? "" : " with " + stack,
                     takes_words(cell, answer),
                     answer.state != State::kUnknown  ? ""
                     : answer.reason == "interrupted" ? "; interrupted"
                                                      : "; a larger one ended otherwise (notes)",
                     is_another_problem(cell) ? " (trains differently)" : "");
}

// Of one card, without a dot. Full fine-tuning is named, too, where another training problem goes
// further.
std::string card_answer(const FitFound& found, const std::vector<std::size_t>& cells) {
  auto whole = cells;
  std::erase_if(whole, [&](std::size_t i) { return is_another_problem(found.cells[i]); });
  if (const auto chosen = best(found, cells)) {
    const auto also = is_another_problem(found.cells[*chosen]) ? best(found, whole) : std::nullopt;
    return (also ? fits_words(found, *also) + "; " : "") + fits_words(found, *chosen);
  }
  const auto which = nearest_to_fit(found, cells);
  const auto& cell = found.cells[which];
  const auto& answer = found.answers[which];
  if (answer.state == State::kUnknown) return "not known, " + answer.reason;
  if (answer.state == State::kNotRun) return "not run, " + answer.reason;
  const auto what = has_axis(found) ? fmt::format("not even {}", value_words(found, answer.first))
                                    : std::string("does not fit");
  const auto needs = takes_words(cell, answer);
  const auto stack = stack_of_cell(cell);
  return fmt::format("{}; {} {}", what, stack == found.title ? "it" : stack,
                     needs.empty() ? "does not run" : needs);
}

std::string smallest_card_answer(const FitFound& found, const std::string& subject) {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < found.cells.size(); ++i)
    if (found.answers[i].value && subject_of_cell(found, found.cells[i]) == subject &&
        (!least || found.cells[i].card_bytes < found.cells[*least].card_bytes))
      least = i;
  if (!least) return fmt::format("{} fits no card that is emulated.", subject);
  const auto& cell = found.cells[*least];
  return fmt::format("{} fits {}, the smallest card: with {} it {}.", subject, cell.card,
                     stack_of_cell(cell), takes_words(cell, found.answers[*least]));
}

std::string grid_cell(const Cell& cell, const CellAnswer& answer) {
  const auto room = search::room_of(cell, answer);
  if (answer.state == State::kNotRun) return "not run";
  if (answer.state == State::kDoesNotFit)
    return room.takes_bytes
               ? fmt::format("{} {}",
                             answer.least.bytes ? "needs" : "too large:", gib(*room.takes_bytes))
               : "does not fit";
  if (!answer.value) return "not known";
  const auto value = cell.along == Along::kNothing
                         ? std::string("fits")
                         : (answer.is_smallest ? "from " : "") + reports::grouped(*answer.value);
  return fmt::format("{}{}{}", answer.state == State::kUnknown ? ">= " : "", value,
                     answer.against.empty() ? "" : " ~");
}

// Stacks down, cards across; as many cards a block as the window has room for.
std::string grid(const FitFound& found, int width) {
  const auto cards = shown_cards(found);
  const auto rows = in_order(found, [&](const Cell& cell) { return row_of_cell(found, cell); });
  const auto text_of = [&](const std::string& row, const std::string& card) -> std::string {
    for (std::size_t i = 0; i < found.cells.size(); ++i)
      if (found.cells[i].card == card && row_of_cell(found, found.cells[i]) == row)
        return grid_cell(found.cells[i], found.answers[i]);
    return "";
  };
  int first = 0;
  for (const auto& row : rows) first = std::max(first, display_width(row));
  first = std::min(first, std::max(18, width / 2));
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < cards.size(); begin = end) {
    int used = first;
    for (end = begin; end < cards.size(); ++end) {
      int needed = display_width(cards[end]);
      for (const auto& row : rows)
        needed = std::max(needed, display_width(text_of(row, cards[end])));
      used += 2 + needed;
      if (used > width && end > begin) break;
    }
    std::vector<TableColumn> columns{{has_axis(found) ? "largest " + axis_label(found) : "fits"}};
    std::vector<TableRow> lines{{{"of GiB"}, ""}};
    for (auto card = begin; card < end; ++card) {
      columns.push_back({cards[card], 0, true});
      lines.front().cells.push_back(
          gib(found.cells[cells_on(found, cards[card]).front()].card_bytes));
    }
    for (const auto& row : rows) {
      auto& line = lines.emplace_back();
      line.cells.push_back(row);
      for (auto card = begin; card < end; ++card) line.cells.push_back(text_of(row, cards[card]));
    }
    text += (text.empty() ? "" : "\n") + Table(std::move(columns), std::move(lines), width).text();
  }
  return text;
}

std::string figure(const std::optional<std::int64_t>& bytes) { return bytes ? gib(*bytes) : ""; }

// A line a cell of one card that something ran in.
std::vector<std::vector<std::string>> takes_rows(const FitFound& found, const std::string& card) {
  std::vector<std::vector<std::string>> rows;
  for (const auto i : cells_on(found, card)) {
    const auto& cell = found.cells[i];
    const auto& answer = found.answers[i];
    if (!answer.found || !answer.found->memory) continue;
    const auto& memory = *answer.found->memory;
    const auto room = search::room_of(cell, answer);
    rows.push_back(
        {row_of_cell(found, cell),
         has_axis(found) ? reports::grouped(answer.value.value_or(answer.first)) : "",
         gib(memory.peak_allocated_bytes), figure(answer.least.bytes),
         figure(memory.peak_reserved_bytes),
         *room.left_bytes < 0 ? "lacks " + gib(-*room.left_bytes) : gib(*room.left_bytes)});
  }
  return rows;
}

// What the values found take, a table a card.
std::string takes_tables(const FitFound& found, int width) {
  std::string text;
  for (const auto& card : shown_cards(found)) {
    auto rows = takes_rows(found, card);
    if (rows.empty()) continue;
    const auto& cell = found.cells[cells_on(found, card).front()];
    text +=
        fmt::format("\nWhat it takes of {}, {}, in GiB\n", printable(card), of_card(cell)) +
        table_text(
            {{""},
             {found.along == Along::kProgram ? found.axis : search::word_of(found.along), 0, true},
             {"allocated", 0, true},
             {"least", 0, true},
             {"reserved", 2, true},
             {"left", 0, true}},
            std::move(rows), width);
  }
  return text;
}

std::string listed(const std::string& heading, const std::vector<std::string>& lines, int width) {
  if (lines.empty()) return "";
  std::string text = "\n" + heading + "\n";
  for (const auto& line : lines) text += wrapped(printable(line), width);
  return text;
}

std::string named(const FitFound& found, std::size_t i) {
  return fmt::format("{} on {}", row_of_cell(found, found.cells[i]), found.cells[i].card);
}

// A line a stack of a card, of the size in the tables above.
std::string work_of_steps(const FitFound& found, int width) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < found.cells.size(); ++i) {
    const auto& answer = found.answers[i];
    if (!answer.found || !answer.found->work) continue;
    const auto& work = *answer.found->work;
    std::vector<std::string> words{reports::flops_text(work.total.flops)};
    if (work.total.device)
      words.push_back(
          fmt::format("{} kernel launches", reports::grouped(work.total.device->kernel_launches)));
    for (auto& cost : reports::work_costs(work, nullptr)) words.push_back(std::move(cost));
    lines.push_back(fmt::format("{}: {}", named(found, i), fmt::join(words, ", ")));
  }
  return listed("Work of a step, counted, not timed", lines, width);
}

std::string failures(const FitFound& found, int width) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < found.cells.size(); ++i) {
    const auto& answer = found.answers[i];
    if (!answer.failed) continue;
    lines.push_back(
        fmt::format("{}{}: {}", named(found, i),
                    has_axis(found) ? ", " + value_words(found, *answer.failed_value) : "",
                    answer.failed->reason));
  }
  return listed("Which allocation fails", lines, width);
}

// Where the smallest card was asked for: cards are tried from the smallest until one does.
std::string not_tried_words(const FitFound& found) {
  std::map<std::string, std::int64_t> reasons;
  for (const auto& answer : found.answers)
    if (answer.state == State::kNotRun)
      ++reasons[answer.reason.substr(0, answer.reason.find(": "))];
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += fmt::format("{}{} not tried: {}", text.empty() ? "" : "; ",
                        count == 1 ? "one card" : fmt::format("{} cards", count), reason);
  return text;
}

// What a reader must know beside the figures.
std::string notes(const FitFound& found, int width) {
  std::vector<std::string> lines;
  std::set<std::string> said;
  const auto say = [&](const std::string& line) {
    if (!line.empty() && said.insert(line).second) lines.push_back(line);
  };
  for (std::size_t i = 0; i < found.cells.size(); ++i) {
    const auto& answer = found.answers[i];
    if (answer.state == State::kNotRun && !found.smallest_card)
      say(fmt::format("{}: not run: {}", named(found, i), answer.reason));
    if (answer.state == State::kUnknown) say(fmt::format("{}: {}", named(found, i), answer.reason));
    if (answer.is_smallest)
      say(fmt::format("{}: more of {} takes less memory: {} is the smallest that runs",
                      named(found, i), axis_label(found), reports::grouped(*answer.value)));
    if (answer.at_limit)
      say(fmt::format("{}: {} runs, and is the largest that {}", named(found, i),
                      reports::grouped(*answer.value),
                      answer.limit_reason.empty() ? "was asked for, or that there can be"
                                                  : "can be given: " + answer.limit_reason));
    for (const auto& against : answer.against)
      say(fmt::format("~ {}: not monotone: {}", named(found, i), against));
    if (!answer.least.note.empty())
      say(fmt::format("{}: least memory: {}", named(found, i), answer.least.note));
  }
  if (found.smallest_card) say(not_tried_words(found));
  std::vector<const records::Verdict*> verdicts;
  for (const auto& answer : found.answers)
    verdicts.push_back(answer.found ? records::verdict_of(*answer.found) : nullptr);
  for (const auto& [kind, doubt] : analysis::doubts_of(verdicts)) {
    const auto more = doubt.count > 1 ? fmt::format(" (and {} more)", doubt.count - 1) : "";
    const auto why = analysis::main_reason(*verdicts[doubt.tightest]);
    say(fmt::format("{}{}: {}{}", named(found, doubt.tightest), more,
                    records::verdict_word(verdicts[doubt.tightest]->kind),
                    why.empty() ? "" : ": " + why));
  }
  return listed("Notes", lines, width);
}

std::string left_out(const FitFound& found, int width) {
  if (!found.proposal) return "";
  if (found.proposal->interrupted)
    return "\nInterrupted while stacks were proposed: stacks that are missing were not tried.\n";
  using search::WhyLeftOut;
  std::map<WhyLeftOut, std::vector<std::string>> by_reason;
  for (const auto& one : found.proposal->left_out) by_reason[one.why].push_back(one.stack);
  std::vector<std::string> lines;
  for (const auto& [why, words] :
       {std::pair(WhyLeftOut::kSavesNothing,
                  "save less than a hundredth of the baseline's peak, alone or with these"),
        std::pair(WhyLeftOut::kRuledOut, "cannot be run here, or not with cheaper strategies"),
        std::pair(WhyLeftOut::kTooSlow, "take this machine too long for a search")})
    if (const auto& stacks = by_reason[why]; !stacks.empty())
      lines.push_back(fmt::format("{}: {}", words, fmt::join(stacks, ", ")));
  if (!lines.empty())
    lines.push_back("fit.json says why of each; --strategy names stacks of your own");
  return listed(fmt::format("Not proposed, as measured with {}", found.proposal->measured_at),
                lines, width);
}

}  // namespace

std::string axis_label(const FitFound& found) {
  return found.along == Along::kProgram ? found.axis : search::label_of(found.along);
}

std::string row_of_cell(const FitFound& found, const Cell& cell) {
  const auto setting = setting_of_cell(found, cell);
  return stack_of_cell(cell) + (setting.empty() ? "" : " " + setting);
}

std::string fit_answer(const FitFound& found, int line_width) {
  std::string text;
  for (const auto& subject :
       in_order(found, [&](const Cell& cell) { return subject_of_cell(found, cell); })) {
    if (found.smallest_card) {
      text += wrapped(printable(smallest_card_answer(found, subject)), line_width);
      continue;
    }
    for (const auto& card : in_order(found, std::mem_fn(&Cell::card))) {
      auto cells = cells_on(found, card);
      std::erase_if(
          cells, [&](std::size_t i) { return subject_of_cell(found, found.cells[i]) != subject; });
      if (cells.empty()) continue;
      text +=
          wrapped(printable(fmt::format("{} on {}: {}.", subject, card, card_answer(found, cells))),
                  line_width);
    }
  }
  return text;
}

std::string fit_text(const FitFound& found, int width, int line_width) {
  std::string text = fit_answer(found, line_width);
  if (found.cells.size() > 1) text += "\n" + grid(found, width);
  return text + takes_tables(found, width) + work_of_steps(found, width) + failures(found, width) +
         notes(found, width) + left_out(found, width);
}

}  // namespace peakbench::cli
