// The main table for a terminal: the same view as the other reports, as many columns as fit.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/columns.h"
#include "base/nearest.h"
#include "reports/render/text.h"
#include "reports/run/report.h"
#include "reports/run/view.h"

namespace peakbench::reports {
namespace {

constexpr const char* kTime = "time";
constexpr const char* kTraining = "training";

struct Column {
  std::string heading;
  int importance;  // 0 stays longest
  std::function<std::string(const RowView& row)> cell;
};

std::string published(const RowView& row) {
  if (row.published_memory.empty()) return "";
  const PublishedView& figure = row.published_memory.front();
  return figure.gib + " (" + figure.original + ")";
}

std::string delta(const RowView& row) {
  return row.delta && !row.delta->percent.empty() ? row.delta->percent + "%" : "";
}

// A figure only where it is told from noise.
std::string step_delta(const RowView& row) {
  if (!row.time) return "";
  if (!row.time->no_interval.empty()) return "?";
  const std::string figure = row.time->noise ? "~" : row.time->percent + "%";
  return figure + " ±" + row.time->half_width;
}

std::string with_unit(const std::string& gib) { return gib.empty() ? "" : gib + " GiB"; }
std::string with_unit(const std::optional<BytesView>& bytes) {
  return bytes ? with_unit(bytes->gib) : "";
}

// Whether a case fits a card goes by what is reserved, and an offload costs what is beside it: both
// stay longer than times.
std::vector<Column> columns_of(const GroupView& group, int width) {
  constexpr int kWide = 80;
  const std::string peak = width < kWide ? "" : "peak ";
  std::vector<Column> columns;
  if (std::ranges::any_of(group.rows, [](const RowView& row) { return !row.build.empty(); }))
    columns.push_back({"ran with", 0, [](const RowView& row) { return row.build; }});
  columns.insert(columns.end(),
                 {{peak + "allocated", 0, [](const RowView& row) { return with_unit(row.peak); }},
                  {"memory", 1, delta}});
  if (group.has_reserved)
    columns.push_back(
        {peak + "reserved", 2, [](const RowView& row) { return with_unit(row.reserved); }});
  for (std::size_t i = 0; i < group.beside.size(); ++i)
    columns.push_back({group.beside[i].label, 2,
                       [i](const RowView& row) { return with_unit(row.beside[i].gib); }});
  if (group.has_verdicts)
    columns.push_back(
        {"figure", 2, [](const RowView& row) { return row.verdict ? row.verdict->word : ""; }});
  if (group.has_published) columns.push_back({"published", 6, published});
  if (group.has_throughput) {
    columns.push_back({"ms/step", 3, [](const RowView& row) { return row.step_ms; }});
    columns.push_back({kTime, 4, step_delta});
  }
  if (group.has_equivalence) {
    columns.push_back({kTraining, 5, [](const RowView& row) {
                         return row.equivalence ? row.equivalence->label : "";
                       }});
  }
  return columns;
}

// Failed: its outcome in place of figures.
std::string outcome(const RowView& row) {
  std::string line = row.status_label;
  if (row.least)
    line += ", runs in " + row.least->gib + " GiB and no less";
  else if (row.needed)
    line += ", needs " + row.needed->gib + " GiB (reserved)";
  return line + (row.reason.empty() ? "" : ": " + row.reason);
}

std::string heading(const GroupView& group) {
  std::string line = group.model + "  " + group.device;
  for (const SettingView& setting : group.settings) line += " " + setting.short_text;
  if (!group.cards.empty()) line += "  (" + group.cards + ")";
  if (!group.run_title.empty()) line += "  (" + group.run_title + ")";
  return line;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// What the table's signs mean, and a machine that was busy.
std::string timing_notes(const GroupView& group, const Table& shown, int width) {
  std::string out;
  if (group.has_noise && shown.shows(kTime))
    out += wrapped("~ not distinguishable from noise: the interval, ± so many %, holds 0.", width);
  if (group.lacks_intervals && shown.shows(kTime))
    out += wrapped("? no interval, so noise may be as large: --repetitions 3 or more gives one.",
                   width);
  if (const auto& busy = group.busy)
    out += wrapped("The machine was busy: other processes used up to " + busy->most + " of " +
                       busy->cores + " cores while timing (" + busy->count + " of " +
                       busy->timings + " timings).",
                   width);
  return out;
}

std::string those_that(const std::vector<RowView>& rows, bool EquivalenceView::*flag) {
  std::string names;
  for (const RowView& row : rows)
    if (row.ok && row.equivalence && (*row.equivalence).*flag)
      names += (names.empty() ? "" : ", ") + row.strategy;
  return names;
}

// Where there was no room for the column, what nobody should choose a case without knowing.
std::string training_notes(const GroupView& group, const Table& shown, int width) {
  if (!group.has_equivalence || shown.shows(kTraining)) return "";
  constexpr std::pair<bool EquivalenceView::*, const char*> kNotes[] = {
      {&EquivalenceView::different, "Trains differently: "},
      {&EquivalenceView::not_checked, "Training is claimed, not checked here: "}};
  std::string out;
  for (const auto& [flag, words] : kNotes)
    if (const auto names = those_that(group.rows, flag); !names.empty())
      out += wrapped(words + names + ".", width);
  return out;
}

std::string warnings(const GroupView& group, int width) {
  std::string out;
  for (const BrokenPromiseView& one : group.broken_promises)
    out += wrapped(
        "The training of " + one.strategy + " is not what it promises: " + one.reason + ".", width);
  for (const UnseenMemoryView& one : group.unseen_memory)
    out += wrapped("The memory of " + one.strategy + " may be larger: " + one.by + " shows it in " +
                       one.period + " steps, and " + one.steps + " were measured (--steps " +
                       one.period + ").",
                   width);
  for (const MoreRanksView& one : group.more_ranks)
    out += wrapped(one.strategy + ": " + one.text + ".", width);
  for (const NotFiniteView& one : group.not_finite)
    out += wrapped(
        "The loss of " + one.strategy + " is " + one.what + " from step " + one.step + ".", width);
  return out;
}

// Why figures are not exact.
std::string figure_notes(const GroupView& group, int width) {
  std::string out;
  for (const VerdictNoteView& note : group.verdict_notes)
    out += wrapped(note.word + " (" + note.strategies + "): " + note.text, width);
  return out;
}

// Of programs: where the peak is and what was found.
std::string sentences(const GroupView& group, int width) {
  std::string out;
  for (const RowView& row : group.rows) {
    if (!row.lines) continue;
    const bool several = group.rows.size() > 1;
    for (const SentenceView& one : row.lines->sentences)
      out += wrapped((several ? row.strategy + ": " : "") + one.text, width);
  }
  return out;
}

// Of what is run with several releases or builds: what differs from the one before.
std::string reasons(const GroupView& group, int width) {
  std::string out;
  for (const RowView& row : group.rows)
    if (!row.build.empty() && !row.is_reference && !row.why.empty())
      out += wrapped(row.strategy + ": " + row.why, width);
  return out;
}

Table table_of(const GroupView& group, int width) {
  const std::vector<Column> columns = columns_of(group, width);
  std::vector<TableColumn> headings{{lower(group.row_heading)}};
  for (const Column& column : columns)
    headings.push_back({column.heading, column.importance, /*right=*/true});
  std::vector<TableRow> rows;
  for (const RowView& row : group.rows) {
    TableRow cells{{row.ok ? row.name : row.strategy}, row.ok ? "" : outcome(row)};
    for (const Column& column : columns) cells.cells.push_back(column.cell(row));
    rows.push_back(std::move(cells));
  }
  return {std::move(headings), std::move(rows), width};
}

std::string group_text(const GroupView& group, int width) {
  std::string out = without_trailing_spaces(fit(heading(group), width));
  if (group.emulated)
    out += without_trailing_spaces(
        fit(group.all_exact ? "Emulated card: the allocator's own bytes, exact; no times."
                            : "Emulated card: the allocator's own bytes, no times.",
            width));
  const Table table = table_of(group, width);
  return out + table.text() + sentences(group, width) + reasons(group, width) +
         figure_notes(group, width) + training_notes(group, table, width) + warnings(group, width) +
         timing_notes(group, table, width);
}

}  // namespace

std::string main_table(const records::Run& run, int width, const std::string& folder) {
  const std::vector<records::Run> runs{run};
  const ReportView view = make_view(runs, read_anatomies_for_terminal(runs, {folder}));
  std::string out;
  for (const GroupView& group : view.groups)
    out += (out.empty() ? "" : "\n") + group_text(group, std::max(width, 20));
  return out.empty() ? "No case has ended yet.\n" : out;
}

}  // namespace peakbench::reports
