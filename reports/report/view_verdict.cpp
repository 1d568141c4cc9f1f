#include "reports/report/view_verdict.h"

#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/text.h"

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

std::string first_reason(const Verdict& verdict) {
  if (!verdict.reasons.empty()) return verdict.reasons.front();
  return verdict.conditions.empty() ? "" : verdict.conditions.front();
}

struct Note {
  const Verdict* verdict;  // whose reason is told
  std::string of;          // and whose that is
  std::vector<std::string> strategies;
};

bool say_the_same(const Verdict& a, const Verdict& b) {
  if (a.kind != b.kind) return false;
  if (a.workspace_room_bytes && b.workspace_room_bytes) return true;
  return first_reason(a) == first_reason(b);
}

void add(const CaseResult& result, std::vector<Note>& notes) {
  const Verdict* verdict = shown_verdict(result);
  if (verdict == nullptr || verdict->kind == VerdictKind::exact) return;
  auto note = std::ranges::find_if(
      notes, [&](const Note& one) { return say_the_same(*one.verdict, *verdict); });
  const auto strategy = printable(row_name(result.spec));
  if (note == notes.end()) note = notes.insert(notes.end(), {verdict, strategy, {}});
  if (verdict->workspace_room_bytes < note->verdict->workspace_room_bytes) {
    note->verdict = verdict;
    note->of = strategy;
  }
  note->strategies.push_back(strategy);
}

// Of several rows that lack a workspace, the one with the least room.
std::string reason_of(const Note& note) {
  const auto reason = printable(first_reason(*note.verdict));
  const bool is_least = note.verdict->workspace_room_bytes && note.strategies.size() > 1;
  return is_least ? reason + "; so in " + note.of + ", the others have as much room or more"
                  : reason;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
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
  if (verdict.workspace_room_bytes) view.room = gib(*verdict.workspace_room_bytes);
  view.reasons = printable_texts(verdict.reasons);
  view.conditions = printable_texts(verdict.conditions);
  view.notes = printable_texts(verdict.notes);
  view.advice = printable_texts(verdict.advice);
  return view;
}

std::vector<VerdictNoteView> verdict_notes(const Group& group) {
  std::vector<Note> notes;
  for (const CaseResult* result : group.cases) add(*result, notes);
  std::ranges::stable_sort(notes, std::greater<>(),
                           [](const Note& note) { return result::doubt(note.verdict->kind); });
  std::vector<VerdictNoteView> views;
  for (const Note& note : notes)
    views.push_back({.word = verdict_word(note.verdict->kind),
                     .strategies = joined(note.strategies),
                     .reason = reason_of(note)});
  return views;
}

}  // namespace peakbench::reports
