// The plugins of cases as they lie on the disk, held against those that a case was measured with.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "result/plugin_build.h"

namespace peakbench::launch {

// As they are now: libraries, or the scripts that a program's command names. One without a library,
// which only tests have, is left out.
std::vector<result::PluginBuild> plugin_builds(const plan::PlannedCase& planned);

// "lora.so is another build (sha256 0123456789ab then, ba9876543210 now)", with ", and 2 more
// plugins are" where it is not the only one; empty: they are the same.
std::string other_builds(const std::vector<result::PluginBuild>& then,
                         const std::vector<result::PluginBuild>& now);

// Why what was measured with these plugins says nothing of the case: one was replaced meanwhile.
// Empty: none was.
std::string replaced_since(const std::vector<result::PluginBuild>& then,
                           const plan::PlannedCase& planned);

}  // namespace peakbench::launch
