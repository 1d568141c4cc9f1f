#include "cli/commands.h"
#include "cli/plugin_folders.h"
#include "cli/worker.h"
#include "text/printable.h"

namespace peakbench::cli {

manifest::Found find_plugins(World& world, const std::vector<std::string>& typed,
                             const std::vector<manifest::Folder>& of_suite) {
  const auto& worker = worker_of(world);
  auto found = manifest::discover(with_own(worker, named_folders(typed, of_suite)), worker.stamp);
  for (const auto& problem : found.problems)
    world.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
  return found;
}

}  // namespace peakbench::cli
