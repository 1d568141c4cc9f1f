// The words that people read for the ids that records hold, and the order in which categories are
// stacked. An id this version does not know is shown as it is, with spaces.
#pragma once

#include <string>
#include <vector>

#include "result/case.h"

namespace peakbench::reports {

std::string category_label(const std::string& category);
// A class of the palette: the category itself, or "other" for one this version does not know.
std::string category_colour(const std::string& category);
// Known categories in the order of the bars (what stays for the whole step first), then the others
// by name.
std::vector<std::string> in_stacking_order(std::vector<std::string> categories);

std::string phase_label(const std::string& phase);
std::vector<std::string> in_phase_order(std::vector<std::string> phases);

// Of a program, which ends as it likes, `crashed` is "did not end well".
std::string status_label(result::Status status,
                         result::CaseKind kind = result::CaseKind::kStrategy);

// Does the stack train another problem than the baseline, whatever it keeps of that one?
bool trains_differently(const result::Equivalence& equivalence);
// A promise about training that nobody checked here. `case_id`: the case that `equivalence` is of;
// the case that others are held against claims nothing.
bool is_claimed(const result::Equivalence& equivalence, const std::string& case_id);
// For a table: "bit-identical", "bit-identical (claimed)", "as lora, not bit-identical". `held_to`
// is the stack of the reference case, empty where it is not known.
std::string equivalence_label(const result::Equivalence& equivalence, const std::string& case_id,
                              const std::string& held_to);
// "1.0e-05 + 1.0e-03 relative"; empty where nothing is allowed.
std::string tolerance_text(const result::Equivalence& equivalence);
std::string spaced(const std::string& identifier);  // "largest_free" -> "largest free"

}  // namespace peakbench::reports
