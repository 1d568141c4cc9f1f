// The fields that templates of comparisons may use. Adding one: here and in view.cpp;
// docs/reference/comparison_fields.md holds the same list, and a test keeps both equal.
#include "reports/compare/render.h"
#include "reports/render/make_field.h"

namespace peakbench::compare {
namespace {

using reports::Field;
using namespace reports::make_field;

std::vector<Field> side_fields() {
  return {text("label", "Where it was read from"), text("title", "The run's title"),
          text("created", "When it was made"), text("commit", "Of which commit")};
}

std::vector<Field> figure_fields() {
  return {text("where", "peak or the phase; `peak of SPACE` for another space"),
          text("figure", "requested, allocated or reserved"),
          text("base_gib", "BASE in GiB"),
          text("base_bytes", "The exact count"),
          text("now_gib", "NEW in GiB"),
          text("now_bytes", "The exact count"),
          text("difference", "Signed, in bytes or GiB, with its unit"),
          text("difference_bytes", "The exact count"),
          text("allowed", "What the policy lets pass; empty for nothing"),
          text("verdict", "worse, better, same"),
          flag("worse", "More than allowed"),
          flag("better", "Less, by more than the tolerance"),
          flag("changed", "Not the same number")};
}

std::vector<Field> part_fields() {
  return {text("allocated", "Signed difference of blocks, with its unit"),
          text("requested", "Signed difference of bytes asked for, with its unit"),
          text("category", "In words"),
          text("colour", "A class for the palette"),
          text("phase", "In which phase it was allocated"),
          text("module", "In which module"),
          text("op", "By which operator"),
          flag("more", "It grew")};
}

std::vector<Field> appeared_fields() {
  return {text("count", "How many alike"),
          text("requested", "Bytes asked for, each"),
          text("allocated", "Bytes of its block, each"),
          text("gib", "The block in GiB"),
          text("category", "In words"),
          text("colour", "A class for the palette"),
          text("phase", "In which phase it was allocated"),
          text("module", "In which module"),
          text("op", "By which operator"),
          text("name", "The recipe's name for it; empty where it has none"),
          text("shape", "Where known"),
          text("dtype", "Where known"),
          flag("gone", "It is BASE's and not NEW's")};
}

std::vector<Field> growth_fields() {
  return {text("phase", "The phase, in words"),
          flag("worse", "One of its figures is worse"),
          text("allocated", "Sum of the differences of blocks"),
          text("requested", "Sum of the differences of bytes asked for"),
          list("parts", "The largest difference first, grown or shrunk", part_fields()),
          text("more_parts", "How many are not shown; empty for none"),
          list("appeared", "Allocations alive at the maximum of one run only", appeared_fields()),
          flag("has_appeared", "`appeared` is not empty"),
          text("more_appeared", "How many are not shown; empty for none")};
}

std::vector<Field> mark_fields() {
  return {text("x", "Its place"), text("y", "Its height"), text("gib", "GiB"),
          text("bytes", "The exact count")};
}

Field overlay_field() {
  return object("overlay",
                "HTML: both timelines in a box 1000 wide and high; absent without both traces",
                {flag("aligned", "The same phase of the same step stands at the same place"),
                 list("bands", "NEW's phases in order",
                      {text("phase", "build, forward, backward, optimizer_step"),
                       text("label", "In words"), text("step", "1-based; empty while building"),
                       text("x", "Where it begins"), text("width", "How wide it is")}),
                 text("base", "An SVG path: BASE's allocated bytes"),
                 text("now", "An SVG path: NEW's allocated bytes"), text("area", "All below NEW's"),
                 object("base_peak", "BASE's peak", mark_fields()),
                 object("now_peak", "NEW's peak", mark_fields()),
                 text("base_events", "How many events BASE has"),
                 text("now_events", "How many events NEW has"),
                 text("axis_gib", "GiB at the top of the box")});
}

std::vector<Field> case_fields() {
  return {text("index", "0-based, in the page"),
          text("anchor", "An id for links, unique in the page"),
          text("id", "The case id"),
          flag("emulated", "Figures from an emulated card"),
          text("state", "What became of it, in a word or two"),
          flag("bad", "Not compared, failed, missing or worse"),
          flag("good", "Better"),
          text("reason", "Why it failed, is missing or is not compared"),
          object("peak", "Peak allocated", figure_fields()),
          list("figures", "Every peak of memory", figure_fields()),
          flag("has_changed_figures", "Some of `figures` changed"),
          list("categories", "The peak by category, both runs",
               {text("label", "The category in words"), text("colour", "A class for the palette"),
                text("base_gib", "BASE in GiB"), text("now_gib", "NEW in GiB"),
                text("difference", "Signed, with its unit"),
                text("difference_bytes", "The exact count"), flag("worse", "It grew"),
                flag("changed", "Not the same number")}),
          list("growth", "What grew, by phase", growth_fields()),
          text("growth_note", "Why it is not known what grew"),
          object("speed", "Step times; absent where one of the two has none",
                 {text("verdict", "worse, better, same, unknown"), flag("worse", "Slower"),
                  flag("better", "Faster"), text("base_ms", "BASE's median step"),
                  text("now_ms", "NEW's median step"), text("ratio", "Signed per cent"),
                  text("text", "With the interval, and why nothing is known")}),
          overlay_field(),
          flag("has_data", "HTML: `rows` is not empty"),
          list("rows", "HTML: NEW and BASE for the interactive chart",
               {text("anchor", "An id"), text("strategy", "NEW or BASE"),
                text("data", "The packed trace")})};
}

Field make_root() {
  return object(
      "", "",
      {text("title", "NEW's title"), object("base", "The run compared with", side_fields()),
       object("now", "The new run", side_fields()), text("summary", "What happened, in one line"),
       object(
           "gate", "What `peakbench gate` says; absent otherwise",
           {text("label", "passed, regression, failed case, unusable"),
            flag("passed", "It lets the change pass"), list("findings", "Why not, the first few"),
            text("more_findings", "How many are not shown; empty for none")}),
       list("changes", "What else differs: versions, machine, settings",
            {text("name", "What"), text("base", "In BASE"), text("now", "In NEW"),
             text("cases", "Settings of cases: how many; else empty")}),
       flag("has_changes", "`changes` is not empty"), list("notes", "What a reader must know"),
       flag("has_emulated", "Some figures come from an emulated card"),
       flag("has_times", "Some case was timed in both"), text("case_count", "Cases of either run"),
       list("changed", "Cases that are not the same, the gravest first", case_fields()),
       text("changed_count", "How many; empty for none"),
       text("more_changed", "How many of them are not shown; empty for none"),
       list("same", "Cases that are the same", case_fields()),
       text("same_count", "How many; empty for none"),
       text("more_same", "How many of them are not shown; empty for none"),
       object("charts", "HTML: the library of the interactive chart",
              {text("script", "Its source"), text("licence", "Its licence")})});
}

}  // namespace

const reports::Field& comparison_fields() {
  static const Field root = make_root();
  return root;
}

}  // namespace peakbench::compare
