// Cases that are shown in one table, and what is said of a case wherever it stands. Pure.
//
// A group is a table: cases of a run that differ by strategy, release of PyTorch and build only
// (same model, device, dtype, batch, sequence length), or the programs of a run on a device. So an
// emulated card's figures never stand in one table with a measured device's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "result/run.h"

namespace peakbench::reports {

struct Group {
  const result::Run* run = nullptr;
  std::vector<const result::CaseResult*> cases = {};  // plan order, at least one
  std::vector<const result::CaseResult*> added = {};  // for `ablation` alone: no rows of the table
  const result::CaseResult* reference = nullptr;      // ran to its end, or nullptr
  // The reference where it ran out of memory, and what it needs is known; else nullptr.
  const result::CaseResult* reference_out = nullptr;
};

// What peaks are compared with: the reference's peak allocated, or what it would have been without
// a limit.
std::optional<std::int64_t> reference_peak(const Group& group);

// The same case as the release or build before it ran it; nullptr where there is none.
const result::CaseResult* build_before(const Group& group, const result::CaseResult& result);

std::vector<Group> group_cases(const std::vector<result::Run>& runs);

bool ran(const result::CaseResult& result);             // to its end
bool breaks_promise(const result::CaseResult& result);  // it may be recommended to nobody
// Its steps replay a captured graph: its allocated peak is compared with nobody's.
bool replays_steps(const result::CaseResult& result);
bool trains_differently(const result::CaseResult& result);
bool only_claims_training(const result::CaseResult& result);  // the baseline's, and nobody checked
// What a reader must know of a case before choosing it: "claimed"; empty where there is nothing.
std::string mark_of(const result::CaseResult& result);

std::optional<std::int64_t> peak_of(const result::CaseResult& result);  // allocated
std::int64_t widest_bar(const Group& group);  // the largest peak of the group's cases, at least 1

// Spaces beside the case's own with more than a little in them; "3.400 GiB pinned host memory",
// empty where there are none.
std::set<std::string> spaces_beside(const result::CaseResult& result);
std::string beside_text(const result::CaseResult& result);

}  // namespace peakbench::reports
