// Parameters by patterns of their paths.
#pragma once

#include <string>
#include <vector>

namespace peakbench::freeze {

// "a.*.c:b" -> {"a.*.c", "b"}. Throws OptionError where a pattern is empty.
std::vector<std::string> parse(const std::string& patterns);

// Whether the pattern is the path itself or that of a module above it. `*` stands for any text,
// dots too: "model.layers.1" and "*.1" hold "model.layers.1.mlp.up_proj.weight".
bool matches(const std::string& pattern, const std::string& path);

}  // namespace peakbench::freeze
