#include "reports/site/fields.h"

#include "reports/render/make_field.h"

namespace peakbench::site {
namespace {

using reports::Field;
using namespace reports::make_field;

Field site_field() {
  return object(
      "site", "On every page",
      {text("title", "The site's title"), text("branch", "The branch that trends show"),
       text("root", "From this page to the index: empty, `../` or `../../`"),
       text("run_count", "Runs in the history, of all branches"),
       text("branch_run_count", "Runs on the branch"),
       text("trend_count", "Cases, on each card by itself"),
       text("report_count", "Runs that have a report here"),
       text("newest", "When the newest run began, for people"),
       text("newest_iso", "The same, RFC 3339"), flag("comparison", "There is a comparison")});
}

std::vector<Field> run_fields() {
  return {text("number", "As `peakbench history list` numbers it"),
          text("anchor", "An id for links"),
          text("href", "Its report, or its place in the list of runs"),
          flag("has_report", "It has a report here"),
          text("created", "When it began, for people"),
          text("created_iso", "The same, RFC 3339"),
          text("branch", "Branch"),
          text("commit", "The first twelve characters"),
          text("commit_full", "All of them"),
          text("verdict", "passed, regressed, failed, unknown, accepted, or empty"),
          text("verdict_label", "In words"),
          flag("bad", "regressed or failed"),
          flag("good", "passed or accepted"),
          text("note", "Why it was accepted"),
          text("title", "The run's title"),
          text("suite", "Suite file"),
          text("cases", "How many cases"),
          text("ok", "How many ended ok"),
          flag("some_failed", "Not all of them"),
          text("status", "interrupted, where it was; else empty"),
          text("libtorch", "LibTorch's version"),
          text("driver", "The driver's, where there is one"),
          flag("clock_back", "Created earlier than the previous run (clock skew)")};
}

std::vector<Field> tick_fields() {
  return {text("label", "What it says"), text("at", "Its place, 0 to 1")};
}

std::vector<Field> date_fields() {
  return {text("label", "A date"), text("at", "Its place, 0 to 1"),
          flag("minor", "May be left out where there is little room")};
}

std::vector<Field> chart_fields() {
  return {text("unit", "GiB, MiB, KiB, bytes or ms"),
          text("from", "Where the axis begins to count, when not at 0"),
          text("count", "How many points there are"),
          text("drawn", "How many are drawn, where not all"),
          flag("many", "More than sixty are drawn"),
          list("lines", "One a stretch of comparable points",
               {text("path", "An SVG path in a box 1000 wide and high")}),
          list("points", "Each leads to its run",
               {text("x", "Per cent from the left"), text("y", "Per cent from the bottom"),
                text("href", "Its run"), text("label", "Run, date, commit, figure, change"),
                flag("failed", "No figure: the case did not end ok"),
                flag("worse", "A gate found its run worse"),
                flag("changed", "Memory, and not as at the point before"),
                flag("quiet", "None of these, and not the last")}),
          flag("has_breaks", "`breaks` is not empty"),
          list("breaks", "Where points cannot be compared",
               {text("x", "Per cent from the left"), text("label", "What changed"),
                text("number", "1-based")}),
          list("y_ticks", "Ticks of the figure", tick_fields()),
          list("x_ticks", "Ticks of the runs, evenly", date_fields())};
}

std::vector<Field> trend_row_fields() {
  return {text("case", "The case id"),
          text("href", "Its page"),
          text("model", "Model and options"),
          text("strategy", "The stack"),
          text("setting", "dtype, batch, sequence length"),
          text("options", "Device options, as JSON"),
          flag("ok", "It ended ok in the last run that had it"),
          text("status", "How it ended, in words, where not ok"),
          text("gib", "Peak allocated"),
          text("bytes", "The exact count"),
          text("change", "Against the point before: \"+512 bytes\"; empty where equal"),
          flag("more", "More than the point before"),
          flag("less", "Less than the point before"),
          flag("incomparable", "The point before cannot be compared"),
          text("break_reason", "Why"),
          text("step_ms", "Median step time"),
          text("spark", "An SVG path of its last points, in a box 1000 wide and high"),
          text("spark_y", "The last point's height in that box"),
          text("run", "The run of its last point"),
          flag("old", "Not of the newest run of its suite")};
}

std::vector<Field> point_row_fields() {
  return {object("run", "Its run", run_fields()),
          text("status", "How the case ended, in words, where not ok"),
          text("gib", "Peak allocated"),
          text("bytes", "The exact count"),
          text("requested", "Peak requested, the exact count"),
          text("reserved", "Peak reserved, GiB"),
          text("step_ms", "Median step time"),
          text("change", "Of allocated, against the point before"),
          flag("more", "More than the point before"),
          flag("less", "Less than the point before"),
          text("break_reason", "What makes it incomparable with the point before"),
          flag("clock_back", "The run's clock says that it came before the point before")};
}

Field page_links() {
  return list(
      "pages", "All pages of the list",
      {text("number", "1-based"), text("href", "From this page"), flag("here", "This page")});
}

void describe(const Field& parent, const std::string& path, std::string& out) {
  out += "\n#### " + path + "\n\n| field | kind | what it is |\n|---|---|---|\n";
  for (const Field& field : parent.fields) {
    static constexpr const char* kKinds[] = {"text", "flag", "object", "list"};
    out += "| `" + field.name + "` | " + kKinds[static_cast<int>(field.kind)] + " | " +
           field.summary + " |\n";
  }
  for (const Field& field : parent.fields)
    if (!field.fields.empty() && field.name != "site")
      describe(field, path + " `" + field.name + "`", out);
}

}  // namespace

const Field& index_fields() {
  static const Field fields = object(
      "", "",
      {site_field(), list("latest", "The newest run of each suite of the branch", run_fields()),
       list("cards", "Trends, by card",
            {text("card", "The card"), flag("emulated", "An emulated one: bytes, no times"),
             flag("has_step", "Some case was timed"), flag("has_options", "Some have options"),
             list("rows", "One a case", trend_row_fields())}),
       list("changes", "Cases whose memory changed in the newest run", trend_row_fields()),
       list("recent", "The newest runs, of all branches", run_fields())});
  return fields;
}

const Field& trend_fields() {
  static const Field fields = object(
      "", "",
      {site_field(), text("case", "The case id"), text("model", "Model and options"),
       text("strategy", "The stack"), text("card", "The card"),
       text("setting", "dtype, batch, ..."), text("options", "Device options, as JSON"),
       flag("emulated", "An emulated card"),
       object("memory", "Peak allocated; absent where there is none", chart_fields()),
       object("step", "Median step time; absent where there is none", chart_fields()),
       flag("has_step", "Some point was timed"), flag("has_reserved", "Some has reserved memory"),
       list("changes",
            "Points where the figure, the outcome or the conditions changed, the newest "
            "first",
            point_row_fields()),
       text("changes_left_out", "How many older ones are not listed; empty if none"),
       list("points", "The newest points, the newest first", point_row_fields()),
       text("points_left_out", "How many older ones are not listed; empty if none")});
  return fields;
}

const Field& runs_fields() {
  static const Field fields =
      object("", "",
             {site_field(), list("runs", "Runs of all branches, the newest first", run_fields()),
              flag("several_pages", "There is more than one page"), page_links(),
              text("page", "1-based")});
  return fields;
}

std::string fields_as_markdown() {
  std::string out;
  describe(*index_fields().find("site"), "On every page: `site`", out);
  describe(index_fields(), "index.html", out);
  describe(trend_fields(), "trend.html", out);
  describe(runs_fields(), "runs.html", out);
  return out;
}

}  // namespace peakbench::site
