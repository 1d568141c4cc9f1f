// Where a worker was when a signal ended it, as it says itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace peakbench::launch {

struct CrashSite {
  std::string path, plugin;  // the library and the id in it; empty: no plugin's code was known
  std::string call;          // "run"; empty where the signal came outside of the worker's calls
  std::string place;         // "step 2 of 3, forward"; empty before the first step
  std::vector<std::string> frames;  // the innermost first, from the plugin's own on
};

// Throws where that is none. A plugin can write such a line too: texts are bounded.
CrashSite crash_site_from_json(const nlohmann::json& json);

// For the middle of a sentence: " in PATH: ID, in run, step 2 of 3, forward; at Sgd::update()
// (sgd.so+0x12ab), ...".
std::string in_words(const CrashSite& site);

}  // namespace peakbench::launch
