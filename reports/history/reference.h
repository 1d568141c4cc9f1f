// `history:[BRANCH][@WHICH][,suite=NAME][,card=TEXT]` (source.h) as a record.
#pragma once

#include <optional>
#include <string>

#include "reports/history/history.h"

namespace peakbench::history {

struct Reference {
  enum class Which { kLatest, kPrevious, kGood, kNumber, kCommit };
  std::string branch;
  Which which = Which::kLatest;
  std::int64_t number = 0;  // kNumber
  std::string commit;       // kCommit: a prefix
  std::string suite, card;
};

// nullopt where `text` does not begin with `history:`. Throws ConfigError: an unknown key, a commit
// that is too short.
std::optional<Reference> reference_from(const std::string& text);

// Throws ConfigError: nothing fits, or several commits do.
RunRow find_run(const History& history, const Reference& reference, const std::string& text);

}  // namespace peakbench::history
