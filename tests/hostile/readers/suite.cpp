// A suite as far as `run --dry-run` goes: to the cases, with plugins of its own.
#include "planning/plan.h"
#include "readers/readers.h"
#include "support/fake_plugins.h"

namespace peakbench::hostile {

void read_suite_file(const std::string& path) {
  static const auto plugins = testing::fake_plugins();
  planning::make_plan(planning::read_suite(path), plugins);
}

}  // namespace peakbench::hostile
