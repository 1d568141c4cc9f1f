// The view model: from records to the fields that templates show (reports/render/fields.h). Pure.
//
// A group is a table: cases that differ by strategy only (same run, model, device, dtype, batch,
// sequence length). So an emulated card's figures never stand in one table with a measured
// device's.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reports/analysis/environment.h"
#include "reports/report/trace_view.h"
#include "result/run.h"

namespace peakbench::reports {

// Without `anatomies` nothing of any trace is shown.
nlohmann::json make_view(const std::vector<result::Run>& runs, const Anatomies& anatomies = {});

// The parts, each in a source of its own.
struct Group {
  const result::Run* run = nullptr;
  std::vector<const result::CaseResult*> cases;   // plan order, at least one
  std::vector<const result::CaseResult*> added;   // for `ablation` alone: no rows of the table
  const result::CaseResult* reference = nullptr;  // ran to its end, or nullptr
};

std::vector<Group> group_cases(const std::vector<result::Run>& runs);

// Numbers the sources of published figures in order of appearance.
class Sources {
 public:
  std::string number(const result::Published& published);
  nlohmann::json view() const { return list_; }

 private:
  nlohmann::json list_ = nlohmann::json::array();
};

nlohmann::json row_view(const result::CaseResult& result, const Group& group, Sources& sources);
nlohmann::json bytes_view(std::int64_t bytes);
nlohmann::json delta_view(std::int64_t ours, std::int64_t reference);
// What each part of the group's stacks saves alone, and what the stack loses without it.
nlohmann::json ablation_view(const Group& group);
// The step time against the reference's; false where there is nothing to compare.
nlohmann::json time_view(const result::CaseResult& result, const Group& group);
void add_throughput(const result::CaseResult& result, const Group& group, nlohmann::json& row);
// What a sentence says of a case that it names best: who, training what, at what cost beside.
nlohmann::json best_view(const result::CaseResult& best, const Group& group);
nlohmann::json fastest_view(const result::CaseResult* fastest, const Group& group);
// Is the case's time known with an interval against that of every timed case of the group?
bool has_intervals(const result::CaseResult& result, const Group& group);
// What a table says of its times: rounds, doubtful differences, a busy machine.
nlohmann::json timing_view(const Group& group, const nlohmann::json& rows);
nlohmann::json pareto_view(const Group& group);  // false with fewer than two points
nlohmann::json ticks_view(double low, double high,
                          int about);                // round values between, placed 0 to 1
nlohmann::json not_finite_view(const Group& group);  // cases whose loss stopped being a number
nlohmann::json run_view(const result::Run& run);
// Spaces beside the case's own with more than a little in them; "3.400 GiB pinned host memory",
// empty where there are none; and both for a table: a column a space, a cell a row.
std::set<std::string> spaces_beside(const result::CaseResult& result);
std::string beside_text(const result::CaseResult& result);
void add_beside(const Group& group, nlohmann::json& rows, nlohmann::json& view);
nlohmann::json not_measured_view(const std::vector<result::Run>& runs, const Anatomies& anatomies);
// Adds what is known from the case's trace, and what from the reference's beside it.
void add_anatomy(const result::CaseResult& result, const Group& group, const Anatomies& anatomies,
                 nlohmann::json& row);
// Any JSON as named facts, nested names joined; `_bytes` and `_ns` in people's units.
nlohmann::json facts_view(const nlohmann::ordered_json& object);

bool breaks_promise(const result::CaseResult& result);  // it may be recommended to nobody
bool trains_differently(const result::CaseResult& result);
bool only_claims_training(const result::CaseResult& result);  // the baseline's, and nobody checked
// What a reader must know of a case before choosing it: "claimed"; empty where there is nothing.
std::string mark_of(const result::CaseResult& result);
std::int64_t widest_bar(const Group& group);  // the largest peak of the group's cases, at least 1

}  // namespace peakbench::reports
