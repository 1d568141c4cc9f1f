#include "cli/commands.h"
#include "cli/plugin_folders.h"
#include "text/printable.h"

namespace peakbench::cli {

manifest::Found find_plugins(World& world, const std::vector<std::string>& typed,
                             const std::vector<manifest::Folder>& of_suite) {
  auto found = manifest::discover(with_own(world, named_folders(typed, of_suite)));
  for (const auto& problem : found.problems)
    world.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
  return found;
}

}  // namespace peakbench::cli
