#include <fmt/format.h>

#include "cli/commands.h"
#include "files/file.h"
#include "text/printable.h"

namespace peakbench::cli {

manifest::Found find_plugins(World& world, const std::vector<std::string>& folders) {
  std::vector<std::string> all;
  // A program without plugins of its own still runs with those of a folder that is named.
  if (folders.empty() || files::is_folder(world.places.plugins))
    all.push_back(world.places.plugins);
  all.insert(all.end(), folders.begin(), folders.end());
  auto found = manifest::discover(all);
  for (const auto& problem : found.problems)
    world.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
  return found;
}

}  // namespace peakbench::cli
