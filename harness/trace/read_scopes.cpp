#include "trace/read_scopes.h"

#include <fmt/format.h>

#include <array>

#include "trace/checks.h"
#include "trace/columns.h"

namespace peakbench::trace {
namespace {

namespace column {
enum : std::uint8_t { kId, kEvent, kThread, kKind, kEnds, kPhase, kStep, kCount };
constexpr std::uint32_t kNullable = 1U << kPhase | 1U << kStep;
}  // namespace column
using ScopeRow = std::array<std::int64_t, column::kCount>;

ScopeMark read_mark(const ScopeRow& row, std::size_t events) {
  ScopeMark mark;
  mark.event =
      narrow<std::uint64_t>(row[column::kEvent], "event", 0, static_cast<std::int64_t>(events));
  mark.thread = narrow<std::int32_t>(row[column::kThread], "thread", 0);
  mark.kind =
      static_cast<ScopeKind>(narrow<int>(row[column::kKind], "scope kind", 0, kScopeKindCount - 1));
  mark.ends = narrow<int>(row[column::kEnds], "ends", 0, 1) != 0;
  const bool says_phase = mark.kind == ScopeKind::kPhase;
  if (says_phase != (row[column::kPhase] != kNull))
    throw Damage{says_phase ? "a phase that is none" : "a phase where none is said"};
  if (!says_phase) return mark;
  mark.phase = static_cast<Phase>(narrow<int>(row[column::kPhase], "phase", 0, kPhaseCount - 1));
  mark.step = index_or_none(row[column::kStep], "step", kMostSteps);
  return mark;
}

}  // namespace

std::vector<ScopeMark> read_scopes(const sqlite::Database& database, std::size_t events) {
  std::vector<ScopeMark> marks;
  ScopeChecks order;
  sqlite::Statement rows(
      database, "SELECT id, event, thread, kind, ends, phase, step FROM scopes ORDER BY id");
  ScopeRow row{};
  while (rows.next()) {
    rows.integers(row.data(), column::kNullable, kNull);
    expect_number(row[column::kId], marks.size(), "scope");
    if (marks.size() == static_cast<std::size_t>(kMostEvents))
      throw Damage{fmt::format("more than {} scopes", kMostEvents)};
    try {
      marks.push_back(read_mark(row, events));
      order.add(marks.back());
    } catch (const Damage& damage) {
      throw Damage{fmt::format("scope {}: {}", row[column::kId], damage.what)};
    }
  }
  return marks;
}

}  // namespace peakbench::trace
