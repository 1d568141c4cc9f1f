// How far the figures of emulated cases can be relied on: of one row, and in sentences below the
// table.
#pragma once

#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/report/group.h"

namespace peakbench::reports {

struct VerdictView {
  std::string word;
  bool exact = false, doubtful = false;
  std::vector<std::string> reasons, conditions, notes, advice;

  FieldValues fields() const {
    return {{"word", word, "exact, exact if, lower bound, upper bound, unreliable"},
            {"exact", exact, "It is exact, without a condition"},
            {"doubtful", doubtful,
             "It is unreliable, or a bound of which nobody can say how far off it is"},
            {"reasons", reasons, "What the figures do not contain, or rest on"},
            {"conditions", conditions, "What the program's path must not depend on"},
            {"notes", notes, "What else to know"},
            {"advice", advice, "What to do about it"}};
  }
};

struct VerdictNoteView {
  std::string word, strategies, text;

  FieldValues fields() const {
    return {{"word", word, "The verdict"},
            {"strategies", strategies,
             "The stacks that have it for this reason; `every row` where three or more are all"},
            {"text", text,
             "What the verdict means, its first reason or condition, and how large a missing "
             "workspace would have to be to matter"}};
  }
};

VerdictView verdict_view(const result::Verdict& verdict);

// A sentence for each reason why figures of the table are not exact, the most doubtful first. Rows
// that lack workspaces only share one, of the workspace with the least room.
std::vector<VerdictNoteView> verdict_notes(const Group& group);

}  // namespace peakbench::reports
