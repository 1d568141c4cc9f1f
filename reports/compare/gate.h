// Judges a comparison by its policy: pass or not, why, and the exit code.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/compare/compare.h"

namespace peakbench::compare {

// Also the program's exit codes (docs/reference/exit-codes.md).
enum class Outcome {
  kPassed = 0,
  kUnusable = 2,    // a case, or every case, could not be compared: no result about the code
  kRegression = 4,  // memory, step time or a verdict is worse than the policy lets pass
  kFailedCase = 5,  // a case that ended ok does not any more, or is missing
};
const char* to_string(Outcome outcome);  // "passed", "unusable", "regression", "failed_case"

// One reason why a gate does not pass.
struct Finding {
  std::string case_id;  // empty: for all cases
  Outcome outcome = Outcome::kRegression;
  std::string sentence;              // "memory is worse: allocated +512 bytes in forward"
  std::vector<std::string> details;  // figures and the parts that grew, a line each
};
std::string headline(const Finding& finding);  // "CASE: SENTENCE", the sentence alone without case

// One line of a test report.
struct Checked {
  std::string case_id;
  double seconds = 0;                 // NEW's wall time
  std::vector<std::size_t> findings;  // in Decision::findings
  std::string skipped;                // why nothing was checked; empty where something was
};

struct Decision {
  Outcome outcome = Outcome::kPassed;
  std::string summary;                // one line
  std::vector<std::string> settings;  // that are not the same in both: "steps: 1 -> 3"
  std::vector<Finding> findings;
  std::vector<Checked> cases;  // every case of the comparison, in its order

  int exit_code() const { return static_cast<int>(outcome); }
};

// Where the runs are not comparable (Comparison::incomparable), what would be a regression is
// kUnusable, and so is a case whose memory is better: neither is known to be the code's.
//
// Where several reasons are found, the outcome is the first that applies of kUnusable,
// kFailedCase, kRegression. Without any, a comparison in which no case's memory was compared is
// kUnusable, unless `allow_nothing`: a gate that checked nothing must not look like one that
// passed.
Decision decide(const Comparison& comparison, bool allow_nothing = false);

// The comparison's JSON with `gate` {outcome, exit_code, summary, findings} in front.
nlohmann::ordered_json to_json(const Comparison& comparison, const Decision& decision);

// As JUnit XML, for those who show test results: a test case a case. `template_directories` as for
// reports.
std::string junit(const Comparison& comparison, const Decision& decision,
                  const std::string& template_directory,
                  const std::string& builtin_template_directory);

// "Gate: passed" and why not, for a terminal of `width` columns, below the comparison's own text.
std::string to_text(const Decision& decision, int width);

}  // namespace peakbench::compare
