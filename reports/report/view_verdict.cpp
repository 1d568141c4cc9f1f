#include "reports/report/view_verdict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "reports/analysis/doubts.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "units/bytes.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;
using result::Verdict;
using result::VerdictKind;

const Verdict* shown_verdict(const CaseResult& result) {
  return ran(result) ? result::verdict_of(result) : nullptr;
}

std::vector<std::string> printable_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> shown;
  for (const auto& text : texts) shown.push_back(printable(text));
  return shown;
}

// Rows with one verdict for one reason, or for want of a workspace, whichever it is.
struct Note {
  std::vector<const Verdict*> verdicts;
  std::vector<std::string> strategies;
};

bool say_the_same(const Verdict& a, const Verdict& b) {
  if (a.kind != b.kind) return false;
  if (a.workspace_room_bytes && b.workspace_room_bytes) return true;
  return analysis::main_reason(a) == analysis::main_reason(b);
}

void add(const CaseResult& result, std::vector<Note>& notes) {
  const Verdict* verdict = shown_verdict(result);
  if (verdict == nullptr || verdict->kind == VerdictKind::exact) return;
  auto note = std::ranges::find_if(
      notes, [&](const Note& one) { return say_the_same(*one.verdicts.front(), *verdict); });
  if (note == notes.end()) note = notes.insert(notes.end(), Note{});
  note->verdicts.push_back(verdict);
  note->strategies.push_back(printable(row_name(result.spec)));
}

const char* meaning(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::exact:
      return "a card takes this much";
    case VerdictKind::exact_if:
      return "the program's path must not depend on this";
    case VerdictKind::lower_bound:
      return "a card takes this much or more";
    case VerdictKind::upper_bound:
      return "a card takes this much or less";
    case VerdictKind::unreliable:
      break;
  }
  return "a card may take more or less";
}

// How large a workspace would have to be for a row to pass one that takes as much or more. Nothing
// where that is not known of every row.
std::optional<std::int64_t> room_of_order(const Group& group) {
  std::optional<std::int64_t> least;
  for (const CaseResult* one : group.cases) {
    const Verdict* verdict = shown_verdict(*one);
    if (verdict == nullptr || verdict->kind == VerdictKind::exact) continue;
    if (!verdict->workspace_room_bytes) return std::nullopt;
    const auto peak = peak_of(*one).value_or(0);
    for (const CaseResult* other : group.cases) {
      const auto more = ran(*other) ? peak_of(*other).value_or(0) - peak : -1;
      if (other == one || more < 0) continue;
      const auto room = *verdict->workspace_room_bytes + more;
      least = std::min(least.value_or(room), room);
    }
  }
  return least;
}

std::string text_of(const Note& note, const Group& group) {
  const auto told = analysis::tightest(note.verdicts);
  const Verdict& verdict = *note.verdicts[told];
  std::string text =
      std::string(meaning(verdict.kind)) + "; " + printable(analysis::main_reason(verdict)) + ".";
  if (!verdict.workspace_room_bytes) return text;
  if (note.verdicts.size() > 1) text += " Tightest case: " + note.strategies[told] + ".";
  if (const auto room = room_of_order(group))
    text += " The order of this table holds unless one exceeds " +
            size_text(static_cast<std::uint64_t>(*room)) + ".";
  return text;
}

// A list of all rows of a table says no more than that it is all.
std::string rows_of(const Note& note, const Group& group) {
  constexpr std::size_t kFewRows = 2;
  const auto& names = note.strategies;
  const auto rows =
      std::ranges::count_if(group.cases, [](const CaseResult* one) { return ran(*one); });
  if (names.size() > kFewRows && std::cmp_equal(names.size(), rows)) return "every row";
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

VerdictView verdict_view(const Verdict& verdict) {
  const bool is_bound =
      verdict.kind == VerdictKind::lower_bound || verdict.kind == VerdictKind::upper_bound;
  VerdictView view;
  view.word = verdict_word(verdict.kind);
  view.exact = verdict.kind == VerdictKind::exact;
  view.doubtful = verdict.kind == VerdictKind::unreliable ||
                  (is_bound && !verdict.workspace_room_bytes.has_value());
  view.reasons = printable_texts(verdict.reasons);
  view.conditions = printable_texts(verdict.conditions);
  view.notes = printable_texts(verdict.notes);
  view.advice = printable_texts(verdict.advice);
  return view;
}

std::vector<VerdictNoteView> verdict_notes(const Group& group) {
  std::vector<Note> notes;
  for (const CaseResult* result : group.cases) add(*result, notes);
  std::ranges::stable_sort(notes, std::greater<>(), [](const Note& note) {
    return result::doubt(note.verdicts.front()->kind);
  });
  std::vector<VerdictNoteView> views;
  for (const Note& note : notes)
    views.push_back({.word = verdict_word(note.verdicts.front()->kind),
                     .strategies = rows_of(note, group),
                     .text = text_of(note, group)});
  return views;
}

}  // namespace peakbench::reports
