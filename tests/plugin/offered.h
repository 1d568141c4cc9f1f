// What the bundled plugins and the examples offer, opened without the worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peakbench/plugin.h"
#include "planning/manifest.h"

namespace peakbench::test {

using Values = std::map<std::string, Options::Value>;

// An id with its entry, and its options: the defaults with `given` over them.
struct Offered {
  std::string path;
  planning::Entry entry;

  const PluginEntry& code() const;
  Options options(const Values& given = {}) const;
};

void PrintTo(const Offered& offered, std::ostream* out);

std::vector<Offered> offered(planning::Kind kind);
// Throws std::runtime_error where no plugin offers it.
Offered find(planning::Kind kind, const std::string& id);

}  // namespace peakbench::test
