#include "cli/commands.h"
#include "cli/plugin_folders.h"
#include "cli/worker.h"
#include "text/printable.h"

namespace peakbench::cli {

manifest::Found find_plugins(World& world, const std::vector<std::string>& typed,
                             const std::vector<manifest::Folder>& of_suite) {
  return find_plugins(world, worker_of(world), typed, of_suite);
}

manifest::Found find_plugins(World& world, const manifest::Worker& worker,
                             const std::vector<std::string>& typed,
                             const std::vector<manifest::Folder>& of_suite) {
  auto found = manifest::discover(with_own(worker, named_folders(typed, of_suite)), worker.stamp);
  for (const auto& problem : found.problems)
    world.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
  return found;
}

}  // namespace peakbench::cli
