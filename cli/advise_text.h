// What `peakbench advise` found, for a terminal and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "search/advise.h"

namespace peakbench::cli {

struct Advice {
  std::string id;                           // of the case, as it was measured
  bool ran_out = false;                     // of memory, when it was measured
  search::WithStrategy now;                 // the case as it is
  std::string card;                         // that all were measured as on, without its limit
  std::vector<search::WithStrategy> tried;  // as they were tried
};

// The strategies that are meant for the parts that hold most of the peak, those of the largest part
// first, then `more`, of which nobody says what they are meant for; none that is in the stack.
std::vector<std::string> strategies_to_try(const records::CaseResult& now,
                                           const std::vector<std::string>& more);

// The answer in a sentence first; what the peak is; a line a strategy, what saves most first; those
// that do not run, with the reason.
std::string advice_text(const Advice& advice, int width);
nlohmann::ordered_json to_json(const Advice& advice);

}  // namespace peakbench::cli
