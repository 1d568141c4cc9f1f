#pragma once

#include <string>
#include <vector>

#include "planning/plan.h"
#include "records/run_facts.h"

namespace peakbench::launch {

// What tells one file from another that has its name.

// SHA-256 of the bytes of a regular file, 64 hexadecimal digits, as `sha256sum` prints it; empty
// where it cannot be read. A file is read again only where the system says that it was written:
// its inode, size or times of change differ. Any thread.
std::string content_hash(const std::string& path);

// Compares the current plugins of cases with those that a case was measured with.

// As they are now: libraries, or the scripts that a program's command names. One without a library,
// which only tests have, is left out.
std::vector<records::PluginBuild> plugin_builds(const planning::PlannedCase& planned);

// "lora.so is another build (sha256 0123456789ab then, ba9876543210 now)", with ", and 2 more
// plugins are" where it is not the only one; empty: they are the same.
std::string other_builds(const std::vector<records::PluginBuild>& then,
                         const std::vector<records::PluginBuild>& now);

// Why what was measured with these plugins says nothing of the case: one was replaced meanwhile.
// Empty: none was.
std::string replaced_since(const std::vector<records::PluginBuild>& then,
                           const planning::PlannedCase& planned);

}  // namespace peakbench::launch
