#pragma once

#include <string>
#include <vector>

#include "base/fields.h"
#include "planning/manifest.h"
#include "planning/vocabulary.h"

namespace peakbench::planning {

// A manifest: the content of a plugin.json, wherever it is read from.

struct Manifest {
  Kind kind = Kind::kStrategy;
  std::vector<Entry> entries;
};

// Everything that is wrong goes to `problems`, each as "POINTER: what is wrong".
Manifest read_manifest(const Fields& fields, Problems& problems);

// JSON without duplicate keys in an object (a parser would silently keep the last) and with valid
// numbers. Otherwise null, and `problems` gets the mistakes with line and column.
nlohmann::json parse_manifest(const std::string& text, Problems& problems);

// All that is wrong with the text of a plugin.json; empty: nothing.
std::vector<std::string> problems_in(const std::string& text);

}  // namespace peakbench::planning
