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

// JSON in which no object has a key twice (a parser would keep the last without a word) and every
// number is one; otherwise null, and what is wrong, with line and column, goes to `problems`.
nlohmann::json parse_manifest(const std::string& text, Problems& problems);

// All that is wrong with the text of a plugin.json; empty: nothing.
std::vector<std::string> problems_in(const std::string& text);

}  // namespace peakbench::planning
