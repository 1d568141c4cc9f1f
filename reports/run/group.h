#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "records/run.h"
#include "reports/render/record.h"

namespace peakbench::reports {

// Groups of cases, one a table, and facts about a case. Pure.
//
// A group has cases of one run that differ only by strategy, release of PyTorch and build: their
// model, device, dtype, batch and sequence length are equal. Or it has the programs of a run on a
// device. So figures of emulated and of real devices never share a table.

struct Group {
  const records::Run* run = nullptr;
  std::vector<const records::CaseResult*> cases = {};  // plan order, at least one
  std::vector<const records::CaseResult*> added = {};  // for `ablation` alone: no rows of the table
  const records::CaseResult* reference = nullptr;      // ran to its end, or nullptr
  // The reference where it ran out of memory, and what it needs is known; else nullptr.
  const records::CaseResult* reference_out = nullptr;
};

// What peaks are compared with: the reference's peak allocated, or what it would have been without
// a limit.
std::optional<std::int64_t> reference_peak(const Group& group);

// The same case under the previous release or build; nullptr if there is none.
const records::CaseResult* build_before(const Group& group, const records::CaseResult& result);

std::vector<Group> group_cases(const std::vector<records::Run>& runs);

bool ran(const records::CaseResult& result);             // to its end
bool breaks_promise(const records::CaseResult& result);  // such a case is never recommended
// Its steps replay a captured graph. Its allocated peak is never compared.
bool replays_steps(const records::CaseResult& result);
bool trains_differently(const records::CaseResult& result);
bool only_claims_training(const records::CaseResult& result);  // as the baseline, but unchecked
// What a reader must know of a case before choosing it: "claimed"; empty where there is nothing.
std::string mark_of(const records::CaseResult& result);

std::optional<std::int64_t> peak_of(const records::CaseResult& result);  // allocated
std::int64_t widest_bar(const Group& group);  // the largest peak of the group's cases, at least 1

// Other spaces than the case's own with more than a little in them; "3.400 GiB pinned host memory".
// Empty if there are none.
std::set<std::string> spaces_beside(const records::CaseResult& result);
std::string beside_text(const records::CaseResult& result);

// How far the figures of emulated cases can be relied on: of one row, and in sentences below the
// table.

struct VerdictView {
  PEAKBENCH_VIEW(text(word, "exact, exact if, estimate, lower bound, upper bound, unreliable"),
                 flag(exact, "It is exact, without a condition"),
                 flag(doubtful, "It is unreliable, or a bound whose error is unknown"),
                 texts(reasons, "What the figures do not contain, or rest on"),
                 texts(conditions, "What the program's path must not depend on"),
                 texts(notes, "What else to know"),
                 texts(advice, "What to do about it"));
};

struct VerdictNoteView {
  PEAKBENCH_VIEW(text(word, "The verdict"),
                 text(strategies, "The stacks that have it for this reason; `every row` where "
                      "three or more are all"),
                 text(text, "What the verdict means, its first reason or condition, and how large "
                      "a missing workspace would have to be to matter"));
};

VerdictView verdict_view(const records::Verdict& verdict);

// One sentence for each reason why figures of the table are not exact, the most doubtful first.
// Rows that only lack workspaces share a sentence, about the workspace with the smallest margin.
std::vector<VerdictNoteView> verdict_notes(const Group& group);

}  // namespace peakbench::reports
