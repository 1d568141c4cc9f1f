// Compares one run with another: the outcome of each case, figures that grew, and the part of the
// model in which they grew. Plain records; other files make text, JSON, Markdown and HTML of them.
//
// Cases are matched by id. Figures of different cards, or of an emulated card and a real one, are
// never compared, and neither is anything that was not measured: such a case is kRefused. Whether a
// change may be merged is decided by a gate (reports/compare/gate.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "records/gate_policy.h"
#include "reports/analysis/causes.h"
#include "reports/analysis/timing.h"

namespace peakbench::compare {

using analysis::Source;

using statistics::Direction;
using statistics::SpeedDifference;
using Policy = records::GatePolicy;

// Something that is not a figure and differs: LibTorch, the commit, the processor, a setting.
struct Change {
  std::string name, base, now;  // empty: not there
  std::size_t cases = 0;        // settings of cases: how many changed so; else 0
  bool is_setting = false;      // of the run or its cases, or the PyTorch or driver: reported first
};

// One peak of memory, of the whole step or of a phase.
struct Measure {
  std::string where;   // peak, build, forward, backward, optimizer_step
  std::string space;   // empty: the case's own; else pinned, cpu, ...
  std::string figure;  // requested, allocated, reserved
  std::int64_t base = 0, now = 0;
  std::int64_t allowed = 0;  // how much more the policy lets pass
  Direction direction = Direction::kSame;
  bool is_held = true;  // the policy judges it: not a phase where it holds the peak alone
};

struct CategoryChange {  // at the peak; all categories of either, in the order of the bars
  std::string category;
  std::int64_t base = 0, now = 0;
};

// A part that is not as large as it was: its bytes are differences.
using Growth = analysis::Part;

// Allocations at a maximum that have no like one in the other run.
using Appeared = analysis::Alike;

// Why a maximum is another: parts whose differences sum to block_bytes exactly, what grew most
// first, what shrank at the end; and the same folded to causes. The bytes asked for are those at
// the maximum of allocated.
struct PhaseGrowth {
  std::string phase;
  std::string base_phase;  // BASE's; another one only of the peak, where that has moved
  Direction direction = Direction::kSame;             // the worst of the figures there
  std::int64_t requested_bytes = 0, block_bytes = 0;  // sums of the differences
  std::vector<analysis::CategoryCauses> causes;       // sum to the same
  std::vector<Growth> parts;
  std::vector<Appeared> appeared;  // the largest first; empty without both traces
};

// A line of a program's code that does not hold at the peak what it held.
struct LineChange {
  std::string line, function;  // `train.py:42`, as in the trace
  std::int64_t base = 0, now = 0;
};

// A probable mistake (analysis/why.h) that one of the two programs has.
struct FindingChange {
  bool is_new = false;  // NEW has it; else BASE alone
  std::string kind, sentence;
};

// How far the figures of an emulated case can be relied on (records/verdict.h).
struct VerdictChange {
  std::string base, now;  // exact, exact if, estimate, lower bound, upper bound, unreliable
  Direction direction = Direction::kSame;
  std::string reason;  // NEW's first, where it is not exact
};

struct Speed {
  std::int64_t base_ns = 0, now_ns = 0;  // medians of all steps
  SpeedDifference difference;
};

enum class CaseState {
  kCompared,     // both ended ok
  kNew,          // BASE has none
  kMissing,      // NEW has none, or the machine failed it there
  kFailed,       // ended ok in BASE, not in NEW; or is new and did not end ok
  kStillFailed,  // ended ok in neither
  kRecovered,    // ended ok in NEW only
  kRefused,      // of other cards, or without memory figures: not compared
};
const char* to_string(CaseState state);  // "compared", "new", ..., "still_failed"

struct CaseComparison {
  std::string id, slug;
  bool emulated = false;
  CaseState state = CaseState::kCompared;
  std::string base_status, now_status;  // as in run.json; empty where there is no such case
  std::string reason;                   // why it failed, is missing or is refused
  double now_seconds = 0;               // NEW's wall time

  // Of kCompared only.
  Direction memory = Direction::kSame;  // worse where any figure is, else better where any is
  std::vector<Measure> measures;
  std::vector<CategoryChange> categories;
  std::optional<PhaseGrowth> at_peak;  // where a figure of the peak is not the same
  std::vector<PhaseGrowth> growth;     // of phases with a figure that is not the same
  std::string growth_note;             // why the growth is unknown; else empty
  // Of programs whose traces have call stacks:
  std::vector<LineChange> lines;
  std::vector<FindingChange> findings;
  std::optional<Speed> speed;            // where both were timed
  std::optional<VerdictChange> verdict;  // where both have one
};

struct Side {
  std::string label, title, created, commit, status, schema_version;
};

struct Comparison {
  Side base, now;
  Policy policy;
  std::vector<Change> changes;  // settings first
  // Why a figure that differs says nothing of the code: "steps 1 → 3". Empty: it does.
  std::string incomparable;
  std::vector<std::string> notes;     // what a reader must know
  std::vector<CaseComparison> cases;  // NEW's order, then what is missing
};

// Which cases of two runs are compared.
enum class Pairing {
  by_id,
  of_programs,  // two runs of one program each, whatever the programs are called; else by_id
};

// Throws ConfigError where the two are the same run or have no case in common. Traces are read only
// for cases that changed; one that cannot be read is a growth_note.
Comparison compare(const Source& base, const Source& now, const Policy& policy,
                   Pairing pairing = Pairing::by_id);

// NEW's suite's policy, or BASE's, or the default.
Policy policy_of(const Source& base, const Source& now);

// For each reader. `schema_version` is kComparisonSchemaVersion; docs/how-to/compare.md has the
// fields.
inline constexpr const char* kComparisonSchemaVersion = "1.2.0";
nlohmann::ordered_json to_json(const Comparison& comparison);

// For a terminal of `width` columns. Ends with a newline.
std::string to_text(const Comparison& comparison, int width);
// A row a figure of a case, as `memory.figures` of the JSON; one of a case that has none.
std::string to_csv(const Comparison& comparison);

// What was allocated at the case's own peak; nullptr where that was not compared.
const Measure* peak_allocated(const CaseComparison& one);
// The figure by which a case is called worse or better. The first one that changed: the case's own
// peak; that of another space or rank; the phase that moved most. nullptr if none changed.
const Measure* telling_figure(const CaseComparison& one);
// Why that figure moved; nullptr if unknown.
const PhaseGrowth* explanation_of(const CaseComparison& one, const Measure& measure);
// The peak is this phase's maximum on both sides, and its growth the same.
bool is_told_at_peak(const CaseComparison& one, const PhaseGrowth& growth);

// What gates and summaries count.
std::size_t count(const Comparison& comparison, CaseState state);
std::size_t count_memory(const Comparison& comparison, Direction direction);
std::size_t count_speed(const Comparison& comparison, Direction direction);

}  // namespace peakbench::compare
