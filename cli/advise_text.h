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

// The answer in a sentence first; what the peak is; a line a strategy, what saves most first; those
// that do not run, with the reason.
std::string advice_text(const Advice& advice, int width);
nlohmann::ordered_json to_json(const Advice& advice);

}  // namespace peakbench::cli
