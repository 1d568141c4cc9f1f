#include "reports/run/group.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/numbers.h"
#include "records/axes.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::reports {
namespace {

using records::CaseResult;
using records::Run;

// In a table of several releases, builds or numbers of ranks the first is compared with.
bool may_be_reference(const records::Setting& setting, const Group& group, const Run& run) {
  const auto& first = group.cases.front()->spec;
  if (setting.torch != first.torch || setting.build != first.build || setting.ranks != first.ranks)
    return false;
  if (facts_of(setting.kind).has_stack) return stack_text(setting) == run.reference;
  return !build_text(setting).empty();
}

}  // namespace

std::vector<Group> group_cases(const std::vector<Run>& runs) {
  std::vector<Group> groups;
  for (const Run& run : runs) {
    std::map<nlohmann::json, std::size_t> places;
    for (const CaseResult& result : run.cases) {
      if (!result.added_for.empty()) continue;
      const auto [found, is_new] =
          places.try_emplace(records::table_of(result.spec), groups.size());
      if (is_new) groups.push_back({.run = &run});
      Group& group = groups[found->second];
      group.cases.push_back(&result);
      if (!may_be_reference(result.spec, group, run)) continue;
      if (ran(result)) group.reference = &result;
      if (result.out_of_memory && result.out_of_memory->needed_allocated_bytes)
        group.reference_out = &result;
    }
    for (const CaseResult& result : run.cases) {
      const auto found = places.find(records::table_of(result.spec));
      if (!result.added_for.empty() && found != places.end())
        groups[found->second].added.push_back(&result);
    }
  }
  return groups;
}

std::optional<std::int64_t> reference_peak(const Group& group) {
  if (group.reference) return peak_of(*group.reference);
  if (group.reference_out) return group.reference_out->out_of_memory->needed_allocated_bytes;
  return std::nullopt;
}

const CaseResult* build_before(const Group& group, const CaseResult& result) {
  if (build_text(result.spec).empty()) return nullptr;
  const CaseResult* before = nullptr;
  for (const CaseResult* one : group.cases) {
    if (one == &result) return before;
    if (ran(*one) && name_alone(one->spec) == name_alone(result.spec)) before = one;
  }
  return nullptr;
}

bool ran(const CaseResult& result) { return result.status == records::Status::kOk; }

bool breaks_promise(const CaseResult& result) {
  return result.equivalence && result.equivalence->verdict == "broken";
}

bool replays_steps(const CaseResult& result) {
  return result.memory && result.memory->replays_steps;
}

bool trains_differently(const CaseResult& result) {
  return result.equivalence && trains_differently(*result.equivalence);
}

bool only_claims_training(const CaseResult& result) {
  return result.equivalence && !trains_differently(result) &&
         is_claimed(*result.equivalence, result.spec.id);
}

std::string mark_of(const CaseResult& result) {
  if (breaks_promise(result)) return "not as promised";
  if (trains_differently(result)) return "trains differently";
  return only_claims_training(result) ? "claimed" : "";
}

std::optional<std::int64_t> peak_of(const CaseResult& result) {
  return result.memory ? std::optional(result.memory->peak_allocated_bytes) : std::nullopt;
}

std::int64_t widest_bar(const Group& group) {
  std::int64_t widest = 1;
  for (const CaseResult* result : group.cases)
    widest = std::max(widest, peak_of(*result).value_or(0));
  return widest;
}

namespace {

using records::Verdict;
using records::VerdictKind;

const Verdict* shown_verdict(const CaseResult& result) {
  return ran(result) ? records::verdict_of(result) : nullptr;
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
  static constexpr std::array kMeanings{
      "a card takes this much",         "the program's path must not depend on this",
      "a card takes about this much",   "a card takes this much or more",
      "a card takes this much or less", "a card may take more or less"};
  return kMeanings.at(static_cast<std::size_t>(kind));
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
  const auto told = analysis::doubts_of(note.verdicts).begin()->second.tightest;
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
    return records::doubt(note.verdicts.front()->kind);
  });
  std::vector<VerdictNoteView> views;
  for (const Note& note : notes)
    views.push_back({.word = verdict_word(note.verdicts.front()->kind),
                     .strategies = rows_of(note, group),
                     .text = text_of(note, group)});
  return views;
}

}  // namespace peakbench::reports
