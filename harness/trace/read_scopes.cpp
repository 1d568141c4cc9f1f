#include "trace/read_scopes.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

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

// What must be right of the marks together.
class Order {
 public:
  void follow(const ScopeMark& mark) {
    if (mark.event < event_)
      throw Damage{fmt::format("before event {}, after one before event {}", mark.event, event_)};
    event_ = mark.event;
    if (mark.step != kNone) follow_step(mark.step);
    auto& open = open_[{mark.thread, mark.kind}];
    if (!mark.ends)
      ++open;
    else if (has_no_end(mark.kind) || open-- == 0)
      throw Damage{"the end of what did not begin"};
  }

 private:
  static bool has_no_end(ScopeKind kind) {
    return kind == ScopeKind::kPhase || kind == ScopeKind::kModule;
  }
  void follow_step(std::int32_t step) {
    if (step < step_) throw Damage{fmt::format("step {} after step {}", step, step_)};
    step_ = step;
  }

  std::uint64_t event_ = 0;
  std::int32_t step_ = kNone;
  std::map<std::pair<std::int32_t, ScopeKind>, std::int64_t> open_;
};

}  // namespace

std::vector<ScopeMark> read_scopes(const sqlite::Database& database, std::size_t events) {
  std::vector<ScopeMark> marks;
  Order order;
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
      order.follow(marks.back());
    } catch (const Damage& damage) {
      throw Damage{fmt::format("scope {}: {}", row[column::kId], damage.what)};
    }
  }
  return marks;
}

}  // namespace peakbench::trace
