// The folder of a site: what was written there, and by whom. For the room's own use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/site/site.h"

namespace peakbench::site {

struct Page {
  std::string name;                    // relative, with slashes
  std::function<std::string()> bytes;  // made when it is written: a site need not fit into memory
};

inline constexpr const char* kManifest = "peakbench-site.json";

// Writes the pages, and removes those of an earlier publish that are no more. The manifest names
// every page before the first is written, so that a publish that was killed is taken up by the
// next.
Published write_pages(const std::string& directory, const std::vector<Page>& pages);

}  // namespace peakbench::site
