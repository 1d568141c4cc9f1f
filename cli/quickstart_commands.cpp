// What ci/quickstart needs before the rest of the program is compiled.
#include "cli/commands.h"

namespace peakbench::cli {

Commands add_commands(CLI::App& app, World& world) {
  return {{"quickstart", add_quickstart(app, world)},
          {"run", add_run(app, world)},
          {"report", add_report(app, world)}};
}

}  // namespace peakbench::cli
