// Records of fidelity as a page: how far ours are from the published figures, row by row, and
// counted by grade and cause.
#pragma once

#include <cstdint>
#include <string>

#include "reports/fidelity/record.h"

namespace peakbench::fidelity {

// Within this, two figures are called the same; further apart, a cause is named.
inline constexpr double kAgreement = 0.005;

// Ours against the published figure, as a fraction of it. The record has `emulated`.
double difference(const Record& record);
// Not further apart than the published figure's own last digit.
bool is_within_rounding(const Record& record);
// "versions", ...; "unknown" where nobody named one. Empty where no cause is needed.
std::string cause_of(const Record& record);

struct PageOptions {
  std::string template_directory;  // the user's: each file in it replaces ours
  std::string builtin_template_directory;
};

// Markdown, from the template markdown/fidelity.md. The same records give the same bytes.
std::string page(const Records& records, const PageOptions& options);

// For a terminal of `width` columns: a line a record.
std::string to_text(const Records& records, int width);

}  // namespace peakbench::fidelity
