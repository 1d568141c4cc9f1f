// The published list itself. Adding a field: here, in view*.cpp, and regenerate
// docs/reference/report_fields.md (its test says how).
#include "reports/render/fields.h"
#include "reports/render/make_field.h"

namespace peakbench::reports {
namespace {

using namespace reports::make_field;

std::vector<Field> fact_fields() {
  return {text("name", "What it is, in words"), text("value", "For people"),
          text("exact", "The exact figure where `value` is rounded, else empty")};
}

std::vector<Field> bytes_fields() {
  return {text("gib", "GiB, three decimals"), text("bytes", "The exact count, with separators"),
          text("raw", "The exact count, digits only")};
}

// A difference in step time: one of `faster`, `slower`, `noise` and `no_interval` holds.
Field time_field() {
  return object(
      "time", "Step time against the reference; absent where there is nothing to compare",
      {text("percent", "Signed per cent"),
       text("interval", "Its interval, `+1.0 to +5.2`; empty with fewer than three rounds"),
       text("half_width", "Half of the interval's width, without a sign"),
       text("rounds", "The rounds it is from"),
       flag("faster", "Faster than the reference, beyond noise"),
       flag("slower", "Slower than the reference, beyond noise"),
       flag("noise", "Not distinguishable from noise"),
       text("more_rounds", "Then: rounds more that should settle it, where that is known"),
       text("no_interval", "Why it has no interval, else empty")});
}

// A difference to the reference.
std::vector<Field> delta_fields() {
  return {text("gib", "Signed GiB"), text("bytes", "Signed exact bytes"),
          text("percent", "Signed per cent of the reference"), flag("less", "Below the reference"),
          flag("more", "Above the reference")};
}

std::vector<Field> segment_fields() {
  return {text("category", "The category's name in run.json"),
          text("label", "The same in words"),
          text("colour", "A class for the palette: a known category, or `other`"),
          text("gib", "GiB, three decimals"),
          text("bytes", "The exact count"),
          text("percent", "Per cent of the case's peak"),
          text("start", "Where it starts, as a fraction of the table's widest bar"),
          text("width", "Its width, as a fraction of the table's widest bar")};
}

std::vector<Field> published_fields_of_row() {
  return {text("original", "As published, with its unit"),
          text("gib", "Memory: converted to GiB"),
          text("value", "Throughput: as published"),
          text("unit", "The unit as published"),
          text("off_percent",
               "Ours against the published figure, signed per cent; empty where they cannot be "
               "compared"),
          text("source", "Who published it"),
          text("url", "Where (http or https only)"),
          text("note", "What to know about it"),
          text("number", "The number of its source in `sources`")};
}

std::vector<Field> equivalence_fields() {
  return {text("label", "Promise and verdict in words"),
          text("promise", "bit_identical, within_tolerance, different_problem"),
          text("verdict", "held, broken, not_checked"),
          flag("held", "The promise held"),
          flag("broken", "The promise is broken"),
          flag("not_checked", "The promise is claimed: nothing was compared here"),
          flag("different",
               "Trains another problem than the baseline; its promise is then held against the "
               "parts that make it so, if it has others"),
          text("max_abs_difference", "Largest difference seen, `not a number` where it is none"),
          text("tolerance", "Largest difference allowed: absolute, `+`, relative"),
          text("reference_case", "The case compared with"),
          text("reason", "Why not checked, or what broke")};
}

std::vector<Field> phase_fields() {
  return {text("phase", "build, forward, backward, optimizer_step"),
          text("label", "The same in words"),
          text("gib", "Peak allocated in the phase"),
          text("bytes", "The exact count"),
          text("width", "As a fraction of the case's largest phase"),
          flag("is_peak", "The case's peak is here")};
}

std::vector<Field> space_fields() {
  return {text("space", "cuda:0, cpu, pinned"),
          text("gib", "Peak allocated"),
          text("bytes", "The exact count"),
          text("requested_gib", "Peak asked for"),
          text("requested_bytes", "The exact count"),
          text("reserved_gib", "Peak reserved; empty where the space has none"),
          text("reserved_bytes", "The exact count")};
}

Field timeline_field() {
  return object(
      "timeline",
      "The case's memory over all its events; in a box 1000 wide and high, the highest of the "
      "table's cases at the top",
      {list("areas", "Categories, the topmost first: each path covers what lies under it, too",
            {text("label", "The category in words"), text("colour", "A class for the palette"),
             text("path", "An SVG path")}),
       list("bands", "Phases in order",
            {text("phase", "build, forward, backward, optimizer_step"), text("label", "In words"),
             text("step", "1-based; empty while building"),
             flag("starts_step", "A step begins here"), text("x", "Where it begins"),
             text("width", "How wide it is")}),
       text("events", "How many allocations and frees"),
       text("peak_event", "The event of the peak"), text("peak_x", "The peak's place"),
       text("peak_y", "The peak's place")});
}

Field alive_field() {
  return object(
      "alive", "What was alive at the peak",
      {text("event", "The event"), text("count", "How many allocations"),
       list("tree", "Modules, operators, allocations, flattened: from one per cent of the peak",
            {text("depth", "0 is outermost"), text("kind", "module, operator, allocation, rest"),
             text("label", "Its name"), text("colour", "Allocations: a class for the palette"),
             text("gib", "GiB"), text("bytes", "The exact count"), text("percent", "Of the peak"),
             text("count", "Allocations at or below it"), flag("several", "More than one")}),
       list(
           "largest", "The largest single allocations",
           {text("name", "Its name, empty where it has none"), text("module", "Where"),
            text("op", "By which operator"), text("category", "In words"),
            text("colour", "A class for the palette"), text("phase", "The phase that allocated it"),
            text("shape", "Where known"), text("dtype", "Where known"), text("gib", "GiB"),
            text("bytes", "The exact count"), text("percent", "Of the peak")})});
}

Field waterfall_field() {
  return object(
      "waterfall", "From the reference's peak to this one's, exactly; absent for the reference",
      {text("from_gib", "The reference's peak"), text("from_width", "As a fraction of the widest"),
       text("to_gib", "This peak"), text("to_width", "As a fraction of the widest"),
       list("steps", "Savings first, then what was added",
            {text("category", "In words"), text("colour", "A class for the palette"),
             text("phase", "The phase that allocated it"), text("gib", "Signed GiB"),
             text("bytes", "Signed exact bytes"), flag("less", "A saving"),
             text("start", "Where its bar starts, 0 to 1"),
             text("width", "How wide it is, 0 to 1")})});
}

std::vector<Field> row_fields() {
  return {
      text("index", "0-based, within the table"),
      text("number", "1-based, within the table"),
      text("anchor", "An id for links, unique in the report"),
      text("id", "The case id"),
      text("strategy", "The stack as in the case id"),
      text("short", "The stack, cut to fit a drawing"),
      list("parts", "The stack's strategies, one text each",
           {text("name", "The strategy with its options"), text("base", "Without them"),
            text("options", "They alone, from the comma on"),
            flag("first", "The first of the stack")}),
      flag("is_reference", "The differences are against this row"),
      flag("ok", "It ran to its end"),
      flag("failed", "It did not"),
      text("status",
           "ok, out_of_memory, timeout, crashed, unsupported, conflict, no_effect, host_failure"),
      text("status_label", "The same in words"),
      text("reason", "One sentence: why it failed"),
      list("oom_facts", "Out of memory: what was asked, what was there", fact_fields()),
      object("needed",
             "Out of memory on an emulated card: the peak reserved when run without a limit",
             bytes_fields()),
      object("peak", "Peak allocated", bytes_fields()),
      object("requested", "Peak asked for", bytes_fields()),
      object("reserved", "Peak reserved (CUDA)", bytes_fields()),
      list("beside", "A cell for each of the table's `beside`; empty where it did not run",
           {text("label", "The column's"), text("gib", "Peak allocated there"),
            text("bytes", "The exact count")}),
      object("rss", "Largest resident set of the worker process", bytes_fields()),
      object("delta", "Peak against the reference", delta_fields()),
      text("bar", "The peak as a fraction of the table's largest"),
      flag("is_lowest", "The least memory in the table, of those whose promise is not broken"),
      flag("is_fastest",
           "The least step time in the table, of the same; none where `fastest` is absent"),
      text("peak_phase", "The phase of the peak, in words"),
      text("peak_step", "1-based step of the peak"),
      text("steps", "How many steps were measured"),
      text("step_ms", "Median step time in milliseconds"),
      text("step_min_ms", "The fastest step"),
      text("step_p90_ms", "The 90th percentile"),
      text("step_count", "How many steps were timed"),
      time_field(),
      text("step_percent", "The same as `time`'s `percent`: not to be shown without the rest"),
      flag("slower", "Slower than the reference, beyond noise"),
      flag("faster", "Faster than the reference, beyond noise"),
      list("rounds", "The rounds it was timed in",
           {text("number", "1-based"), text("place", "When in the round it was its turn, 1-based"),
            text("step_ms", "The round's median step"),
            text("other_cores", "Cores that other processes kept busy; empty where not known"),
            flag("busy", "That is more than a tenth of the cores")}),
      text("samples_per_second", "From the median"),
      text("tokens_per_second", "From the median; language models"),
      text("clock", "Which clock timed it"),
      text("threads", "Threads of the timed process"),
      text("throughput_reason", "Why there is no throughput"),
      list("published_memory", "Published peaks of this model and stack",
           published_fields_of_row()),
      list("published_throughput", "Published throughput of this model and stack",
           published_fields_of_row()),
      object("equivalence", "Does it train the same?", equivalence_fields()),
      flag("has_phases", "`phases` is not empty"),
      flag("has_losses", "`losses` is not empty"),
      flag("several_spaces", "It used more than one space"),
      flag("has_facts",
           "Some of training, settings, losses, duration, trace or failure facts are known"),
      list("segments", "The peak by category", segment_fields()),
      list("phases", "Peaks by phase", phase_fields()),
      list("spaces", "Peaks by space", space_fields()),
      list("settings", "What the worker ran with", fact_fields()),
      list("losses", "One loss a measured step"),
      text("wall", "Start of its first process to the end of its last"),
      text("trace", "Its trace, relative to the run folder"),
      text("trace_note", "Why its trace is not shown"),
      timeline_field(),
      alive_field(),
      waterfall_field(),
      text("why",
           "Why the strategy lowered the peak, or did not, in a sentence or two; of the "
           "reference where its peak is"),
      text("data",
           "HTML: the packed trace for the interactive chart (reports/report/trace_data.h)"),
      list("emulation", "What the emulated card could not answer", fact_fields())};
}

std::vector<Field> tick_fields() {
  return {text("label", "The value at the tick"), text("at", "Its place, 0 to 1")};
}

std::vector<Field> pareto_fields() {
  return {list("points", "One a case with both figures",
               {text("number", "The row's number"), text("strategy", "The stack"),
                text("short", "The stack and its mark, cut to fit a drawing"),
                text("mark",
                     "What to know before choosing it: `claimed`, `trains differently`, `not as "
                     "promised`; else empty"),
                text("beside", "What it takes beside the device's memory, in words"),
                text("position", "0-based, among the points"), text("x", "Throughput, 0 to 1"),
                text("y", "Peak memory, 0 to 1"), text("gib", "Peak memory"),
                text("rate", "Throughput, in `unit`"),
                flag("on_front",
                     "No other case is both smaller and faster; never one whose promise is "
                     "broken"),
                flag("is_reference", "The reference")}),
          list("front", "Corners of the Pareto front, from left to right",
               {text("x", "0 to 1"), text("y", "0 to 1")}),
          list("x_ticks", "Throughput", tick_fields()),
          list("y_ticks", "Peak memory in GiB", tick_fields()),
          text("unit", "samples/s or tokens/s"),
          text("extra_points", "How many points beyond twelve"),
          flag("has_claimed", "Some point's promise is claimed, not checked"),
          flag("has_broken", "Some point's promise is broken")};
}

std::vector<Field> best_fields() {
  return {text("strategy", "The stack"),
          text("gib", "Its peak allocated"),
          text("bytes", "The exact count"),
          text("reserved", "Its peak reserved in GiB; empty where the device has none"),
          text("beside", "What it takes beside that, in words: `3.400 GiB pinned host memory`"),
          text("percent", "Against the reference, signed; empty for the reference itself"),
          time_field(),
          text("step_percent", "The same as `time`'s `percent`"),
          flag("is_reference", "It is the reference"),
          flag("different", "It changes what is trained: not comparable with full training"),
          flag("claimed", "That it trains as the baseline does was not checked here")};
}

std::vector<Field> share_fields() {
  return {
      text("strategy", "The stack"),
      text("number", "Its row's"),
      text("bare", "The stack without all its parts"),
      object("together", "The stack against `bare`", delta_fields()),
      object("sum", "What the parts save alone, added up; absent unless all are known",
             delta_fields()),
      list("parts", "Its strategies but the baseline",
           {text("part", "The strategy"), text("others", "The stack without it"),
            object("alone", "It alone against `bare`", delta_fields()),
            text("alone_missing", "Why there is no `alone`"),
            object("without", "`others` against the stack: what the stack loses", delta_fields()),
            text("without_missing", "Why there is no `without`")})};
}

std::vector<Field> group_fields() {
  return {
      text("index", "0-based"),
      text("anchor", "An id for links and file names"),
      text("model", "Model and options"),
      text("device", "As in the case id"),
      text("dtype", "The weights' dtype"),
      text("batch_size", "Samples a step"),
      text("sequence_length", "Tokens a sample; empty where there are none"),
      list("settings", "What else the heading says: dtype, batch size, sequence length, in words",
           {text("name", "As in a suite's rules: batch_size"), text("label", "batch size"),
            text("value", "1,024"), text("text", "1,024 tokens a sample"),
            text("short", "sequence 1,024")}),
      text("run_title", "Its run, where the report has several"),
      text("reference", "The stack that differences are against"),
      flag("has_reference", "The reference ran to its end"),
      flag("emulated", "Figures from an emulated card"),
      text("card", "The emulated card"),
      text("cards", "The real card and its memory; empty for other devices"),
      flag("has_throughput", "Some case was timed"),
      flag("has_tokens", "Some case has tokens a second"),
      flag("has_published", "Some case has a published peak"),
      flag("has_published_throughput", "Some case has published throughput"),
      flag("has_reserved", "Some case has reserved memory"),
      flag("has_equivalence", "Some case's training was compared"),
      flag("has_bars", "Some case has a peak by category"),
      flag("has_legend", "`categories` is not empty"),
      flag("has_timelines", "Some case has a timeline"),
      flag("has_whys", "Some case has a `why`"),
      flag("has_data", "Some case has `data`"),
      text("timeline_picture", "Markdown: file name of the timelines; empty where there are none"),
      flag("has_spaces", "Some case used more than one space"),
      flag("has_ablation", "`ablation` is not empty"),
      text("row_count", "How many rows"),
      list("beside",
           "Spaces beside the device's own with more than a little in them, a column each",
           {text("space", "pinned, cpu, cuda:1"), text("label", "A heading: pinned, host, cuda:1"),
            text("words", "In a sentence")}),
      flag("has_beside", "`beside` is not empty"),
      text("outcome_columns", "How many columns a failed case's reason takes the place of"),
      object("lowest",
             "The case with the least memory allocated at the peak; like the next two never one "
             "whose promise is broken",
             best_fields()),
      object("lowest_same",
             "The least memory among those that train as the reference does; absent where "
             "`lowest` does",
             best_fields()),
      object(
          "fastest",
          "The case with the least step time; absent where it has no interval against some other",
          {text("strategy", "The stack"), text("step_ms", "Its median step"),
           flag("is_reference", "It is the reference"),
           text("percent", "Against the reference, signed"), time_field(),
           text("tied", "Others that are not distinguishable from it, each with its mark, joined"),
           flag("different", "It changes what is trained: not comparable with full training"),
           flag("claimed", "That it trains as the baseline does was not checked here"),
           text("beside", "What it takes beside the device's memory, in words")}),
      list("left_out", "Cases that are no answer: their promise about training is broken",
           {text("strategy", "The stack"), flag("first", "The first of them")}),
      flag("has_left_out", "`left_out` is not empty"),
      list("not_finite", "Cases whose loss is not finite",
           {text("strategy", "The stack"), text("what", "not a number, infinite"),
            text("step", "From which measured step on, 1-based")}),
      text("round_count", "Rounds of timing; empty where nothing was timed in rounds"),
      flag("has_intervals", "Some difference in time has an interval"),
      flag("has_noise", "Some is not distinguishable from noise"),
      flag("lacks_intervals", "Some has no interval"),
      object("busy", "Other processes were at work while timing; absent where they were not",
             {text("most", "The most cores that they kept busy"), text("cores", "Of so many"),
              text("count", "Timings disturbed: by more than a tenth of the cores"),
              text("timings", "Timings whose load is known")}),
      text("axis_gib", "The largest peak, for the bars' axis"),
      list("bar_ticks", "Ticks of the bars' axis", tick_fields()),
      list("rows", "The cases, failed ones too", row_fields()),
      list("ablation",
           "Of each stack: what its parts save alone, and what the stack loses without them",
           share_fields()),
      list("categories",
           "The legend: categories that occur at a peak or in a timeline, in the order of the bars",
           {text("category", "Its name in run.json"), text("label", "In words"),
            text("colour", "A class for the palette"),
            text("column", "Its place in a legend of five columns, 0 to 4"),
            text("line", "Its line in such a legend")}),
      text("peak_picture", "Markdown: file name of the bars; empty where there are none"),
      text("pareto_picture",
           "Markdown: file name of memory against throughput; empty where there is none"),
      object("pareto", "Memory against throughput; absent with fewer than two timed cases",
             pareto_fields())};
}

Field make_root() {
  return object(
      "", "",
      {text("title", "The run's title"),
       text("created", "When, for people"),
       text("created_iso", "When, RFC 3339"),
       flag("interrupted", "Some run was stopped before its end"),
       flag("several_runs", "The report joins several runs"),
       text("case_count", "Cases with an outcome, of those that were asked for"),
       flag("one_case", "It is one"),
       text("ok_count", "Of these, `ok`"),
       text("failed_count", "Of these, not `ok`; empty if none"),
       text("pending_count", "Planned and not run; empty if none"),
       list("pending", "Their ids"),
       flag("has_emulated", "Some figures come from an emulated card"),
       flag("has_measured", "Some figures come from a real device"),
       flag("has_sources", "Some published figure is shown"),
       flag("has_not_measured", "`not_measured` is not empty"),
       flag("mixed", "Both: they are never compared with each other"),
       list("groups", "One table each: cases that differ by strategy only", group_fields()),
       list("sources", "Published figures' sources, numbered",
            {text("number", "1-based"), text("anchor", "An id for links"), text("source", "Who"),
             text("url", "Where")}),
       list("runs", "How the figures were obtained",
            {text("title", "The run's title"), text("created", "When, for people"),
             text("status", "complete, interrupted, running"),
             text("command", "As typed, quoted for a shell"), text("suite", "Suite file"),
             text("schema_version", "Of run.json"),
             list("environment", "Where it ran", fact_fields()),
             list("devices", "What each device of the run was, once",
                  {text("device", "As in the case id"),
                   list("facts", "Card, driver, processor's capability", fact_fields())}),
             list("settings", "How it was measured", fact_fields())}),
       object("charts",
              "HTML: the library of the interactive chart; absent where Peakbench was built "
              "without it",
              {text("script", "Its source"), text("licence", "Its licence")}),
       list(
           "not_measured", "What was not measured, and why",
           {text("what", "What is missing"), text("reason", "Why"), text("count", "How many cases"),
            flag("one", "It is one case"), list("cases", "Their ids, the first few")})});
}

}  // namespace

const Field& published_fields() {
  static const Field root = make_root();
  return root;
}

}  // namespace peakbench::reports
