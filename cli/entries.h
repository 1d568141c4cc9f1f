// What the plugins offer, as `list` and `describe` show it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "manifest/manifest.h"

namespace peakbench::cli {

struct Listed {
  const manifest::Entry* entry = nullptr;  // points into the Found
  std::string path;
};

// Strategies in the order in which they are stacked, models by family as their plugin has them.
std::vector<Listed> entries_of(const manifest::Found& found, manifest::Kind kind);

// Name, default, range, unit, what it is, within `width` columns. Ends with a newline.
std::string option_line(const manifest::Option& option, int width);

nlohmann::ordered_json entry_json(const Listed& listed, manifest::Kind kind);

}  // namespace peakbench::cli
