// What a row says from traces: its timeline, what was alive, and against the reference why and by
// what the peak moved.
#include <algorithm>

#include "reports/render/text.h"
#include "reports/report/explain.h"
#include "reports/report/view_row.h"

namespace peakbench::reports {
namespace {

const CaseAnatomy* find(const Anatomies& anatomies, const result::CaseResult* result) {
  const auto found = anatomies.find(result);
  return found != anatomies.end() && found->second.known() ? &found->second : nullptr;
}

// The top of the table's small pictures: a case that ran out of memory has no bar, and may have
// climbed above all of them.
std::int64_t highest_of(const Group& group, const Anatomies& anatomies) {
  std::int64_t highest = widest_bar(group);
  for (const result::CaseResult* result : group.cases)
    if (const CaseAnatomy* known = find(anatomies, result))
      highest = std::max(highest, known->anatomy.peak.allocated_bytes);
  return highest;
}

// In the phase of the reference's peak.
Causes causes_in_its_phase(const CaseAnatomy& reference, const CaseAnatomy& own) {
  const auto before = reference.folds.find(reference.anatomy.peak.phase),
             after = own.folds.find(reference.anatomy.peak.phase);
  if (before == reference.folds.end() || after == own.folds.end()) return {};
  return after->second.against(before->second);
}

}  // namespace

void add_anatomy(const result::CaseResult& result, const Group& group, const Anatomies& anatomies,
                 RowView& row) {
  const auto entry = anatomies.find(&result);
  if (entry != anatomies.end()) row.trace_note = printable(entry->second.note);
  const CaseAnatomy* own = find(anatomies, &result);
  if (!own) return;
  row.timeline = timeline_view(*own, highest_of(group, anatomies));
  row.alive = own->alive;
  row.lines = own->lines;
  row.data = own->data;
  const CaseAnatomy* reference = find(anatomies, group.reference);
  if (reference == own && !own->lines) row.why = printable(tell_peak(own->anatomy));
  if (!reference || reference == own || !ran(result)) return;
  if (replays_steps(result)) {
    row.why =
        "Its steps replay a captured graph, whose memory counts as reserved and not as allocated: "
        "compare the peaks reserved.";
    return;
  }
  row.waterfall = waterfall_view(*reference, *own);
  const auto* before = build_before(group, result);
  const CaseAnatomy* from = before ? find(anatomies, before) : nullptr;
  if (!from) from = reference, before = group.reference;
  row.why = printable(explain(from->anatomy, own->anatomy, row_name(before->spec),
                              row_name(result.spec), causes_in_its_phase(*from, *own)));
}

}  // namespace peakbench::reports
