// The main table for a terminal: the same view as the other reports, as many columns as fit.
#include <algorithm>
#include <functional>
#include <utility>

#include "reports/render/table.h"
#include "reports/render/text.h"
#include "reports/report/report.h"
#include "reports/report/view.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;

constexpr const char* kNoise = "~";
constexpr const char* kNoInterval = "?";
constexpr const char* kTime = "time";
constexpr const char* kTraining = "training";

struct Column {
  std::string heading;
  int importance;  // 0 stays longest
  std::function<std::string(const json& row)> cell;
};

std::string text(const json& row, const char* field) { return row[field].get<std::string>(); }

std::string published(const json& row) {
  const json& figures = row["published_memory"];
  return figures.empty() ? "" : text(figures[0], "gib") + " (" + text(figures[0], "original") + ")";
}

std::string member(const json& row, const char* object, const char* field) {
  return row[object].is_object() ? text(row[object], field) : "";
}

std::string delta(const json& row) {
  const std::string percent = member(row, "delta", "percent");
  return percent.empty() ? "" : percent + "%";
}

// A figure only where it is told from noise.
std::string step_delta(const json& row) {
  const json& time = row["time"];
  if (!time.is_object()) return "";
  if (!text(time, "no_interval").empty()) return kNoInterval;
  const std::string figure = time["noise"] ? kNoise : text(time, "percent") + "%";
  return figure + " ±" + text(time, "half_width");
}

std::string with_unit(const std::string& gib) { return gib.empty() ? "" : gib + " GiB"; }

// Whether a case fits a card goes by what is reserved, and an offload costs what is beside it: both
// stay longer than times.
std::vector<Column> columns_of(const json& group, int width) {
  constexpr int kWide = 80;
  const std::string peak = width < kWide ? "" : "peak ";
  std::vector<Column> columns{
      {peak + "allocated", 0,
       [](const json& row) { return with_unit(member(row, "peak", "gib")); }},
      {"memory", 1, delta}};
  if (group["has_reserved"])
    columns.push_back({peak + "reserved", 2,
                       [](const json& row) { return with_unit(member(row, "reserved", "gib")); }});
  for (std::size_t i = 0; i < group["beside"].size(); ++i)
    columns.push_back({text(group["beside"][i], "label"), 2,
                       [i](const json& row) { return with_unit(text(row["beside"][i], "gib")); }});
  if (group["has_published"]) columns.push_back({"published", 6, published});
  if (group["has_throughput"]) {
    columns.push_back({"ms/step", 3, [](const json& row) { return text(row, "step_ms"); }});
    columns.push_back({kTime, 4, step_delta});
  }
  if (group["has_equivalence"]) {
    columns.push_back(
        {kTraining, 5, [](const json& row) { return member(row, "equivalence", "label"); }});
  }
  return columns;
}

// Failed: its outcome in place of figures.
std::string outcome(const json& row) {
  std::string line = text(row, "status_label");
  if (row["needed"].is_object())
    line += ", needs " + member(row, "needed", "gib") + " GiB (reserved)";
  const std::string reason = text(row, "reason");
  return line + (reason.empty() ? "" : ": " + reason);
}

std::string heading(const json& group) {
  std::string line = text(group, "model") + "  " + text(group, "device");
  for (const json& setting : group["settings"]) line += " " + text(setting, "short");
  if (!text(group, "cards").empty()) line += "  (" + text(group, "cards") + ")";
  if (!text(group, "run_title").empty()) line += "  (" + text(group, "run_title") + ")";
  return line;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Between words, what goes on two columns further in.
std::string wrapped(const std::string& words, int width) {
  std::string out, line;
  for (std::size_t begin = 0; begin < words.size();) {
    const auto end = std::min(words.find(' ', begin), words.size());
    const auto word = fit(words.substr(begin, end - begin), width - 2);
    begin = end + 1;
    if (!line.empty() && display_width(line + " " + word) > width) {
      out += line + "\n";
      line = "  " + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

// What the table's signs mean, and a machine that was busy.
std::string timing_notes(const json& group, const Table& shown, int width) {
  std::string out;
  if (group["has_noise"] && shown.shows(kTime))
    out += wrapped("~ not distinguishable from noise: the interval, ± so many %, holds 0.", width);
  if (group["lacks_intervals"] && shown.shows(kTime))
    out += wrapped("? no interval, so noise may be as large: --repetitions 3 or more gives one.",
                   width);
  if (const json& busy = group["busy"]; busy.is_object())
    out += wrapped("The machine was busy: other processes used up to " + text(busy, "most") +
                       " of " + text(busy, "cores") + " cores while timing (" +
                       text(busy, "count") + " of " + text(busy, "timings") + " timings).",
                   width);
  return out;
}

std::string those_that(const json& rows, const char* flag) {
  std::string names;
  for (const json& row : rows)
    if (row["ok"] && row["equivalence"].is_object() && row["equivalence"][flag])
      names += (names.empty() ? "" : ", ") + text(row, "strategy");
  return names;
}

// Where there was no room for the column, what nobody should choose a case without knowing.
std::string training_notes(const json& group, const Table& shown, int width) {
  if (!group["has_equivalence"] || shown.shows(kTraining)) return "";
  constexpr std::pair<const char*, const char*> kNotes[] = {
      {"broken", "Training is not what was promised: "},
      {"different", "Trains differently: "},
      {"not_checked", "Training is claimed, not checked here: "}};
  std::string out;
  for (const auto& [flag, words] : kNotes)
    if (const auto names = those_that(group["rows"], flag); !names.empty())
      out += wrapped(words + names + ".", width);
  return out;
}

std::string loss_notes(const json& group, int width) {
  std::string out;
  for (const json& one : group["not_finite"])
    out += wrapped("The loss of " + text(one, "strategy") + " is " + text(one, "what") +
                       " from step " + text(one, "step") + ".",
                   width);
  return out;
}

Table table_of(const json& group, int width) {
  const std::vector<Column> columns = columns_of(group, width);
  std::vector<TableColumn> headings{{"strategy"}};
  for (const Column& column : columns)
    headings.push_back({column.heading, column.importance, /*right=*/true});
  std::vector<TableRow> rows;
  for (const json& row : group["rows"]) {
    TableRow cells{{text(row, "strategy")}, row["failed"] ? outcome(row) : ""};
    for (const Column& column : columns) cells.cells.push_back(column.cell(row));
    rows.push_back(std::move(cells));
  }
  return {std::move(headings), std::move(rows), width};
}

std::string group_text(const json& group, int width) {
  std::string out = without_trailing_spaces(fit(heading(group), width));
  if (group["emulated"])
    out +=
        without_trailing_spaces(fit("Emulated card: the allocator's own bytes, no times.", width));
  const Table table = table_of(group, width);
  return out + table.text() + training_notes(group, table, width) + loss_notes(group, width) +
         timing_notes(group, table, width);
}

}  // namespace

std::string main_table(const result::Run& run, int width) {
  const json view = make_view({run});
  std::string out;
  for (const json& group : view["groups"])
    out += (out.empty() ? "" : "\n") + group_text(group, std::max(width, 20));
  return out.empty() ? "No case has ended yet.\n" : out;
}

}  // namespace peakbench::reports
