// What the bundled plugins and the examples offer, opened without the worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "peakbench/plugin.h"

namespace peakbench::test {

using Values = std::map<std::string, Options::Value>;

// An id with its entry, and its options: the defaults with `given` over them.
struct Offered {
  std::string path;
  manifest::Entry entry;

  const PluginEntry& code() const;
  Options options(const Values& given = {}) const;
};

void PrintTo(const Offered& offered, std::ostream* out);

std::vector<Offered> offered(manifest::Kind kind);
// Throws std::runtime_error where no plugin offers it.
Offered find(manifest::Kind kind, const std::string& id);

}  // namespace peakbench::test
