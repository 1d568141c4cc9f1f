// What reports show of a trace: the timeline, what was alive at the peak, why the peak is where it
// is. One trace is in memory at a time; what is kept of it is small.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "result/run.h"
#include "trace/anatomy.h"
#include "trace/timeline.h"

namespace peakbench::reports {

struct CaseAnatomy {
  trace::Anatomy anatomy;
  trace::Timeline timeline;  // a few hundred samples, for pictures
  std::vector<trace::PhaseSpan> spans;
  std::uint64_t events = 0;
  nlohmann::json alive;  // the template's fields
  std::string data;      // for the interactive chart (reports/report/trace_data.h), may be empty
  std::string note;      // why there is nothing of the above: then all of it is empty
  std::string cause;  // the same without names of this case, so that many of one cause are one line
  bool known() const { return note.empty(); }
};

using Anatomies = std::map<const result::CaseResult*, CaseAnatomy>;

// Reads the traces of all cases that have one. `folders`: the runs' own; an empty one has no
// traces. A trace that is missing, broken or of another run leaves a note, never an exception.
// `with_data`: for the interactive chart, too.
Anatomies read_anatomies(const std::vector<result::Run>& runs,
                         const std::vector<std::string>& folders, bool with_data);

// From an open trace; throws TraceError where it does not add up.
CaseAnatomy analyse(const trace::Trace& trace, bool with_data, bool whole);

// The template's fields. `highest`: the bytes at the top of the picture.
nlohmann::json timeline_view(const CaseAnatomy& anatomy, std::int64_t highest);
std::vector<std::string> categories_of(const CaseAnatomy& anatomy);  // that occur in its timeline
nlohmann::json waterfall_view(const CaseAnatomy& reference, const CaseAnatomy& strategy);
nlohmann::json alive_view(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                          std::uint64_t event);

}  // namespace peakbench::reports
