// Sizes and lists as people type them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peakbench::cli {

// "60GiB", "1.5 GB", "4096": bytes. Throws ConfigError that names `option`.
std::int64_t bytes_from(const std::string& text, const std::string& option);

// Values of a repeatable option, split at commas. Where a value may carry options (NAME,key=value),
// only values without any are split. Empty pieces are errors.
std::vector<std::string> split_values(const std::vector<std::string>& values, bool with_options,
                                      const std::string& option);

// Whole numbers from 1 to `most`: "8", "4k" (4096), and all from one to another, "1..8", of which
// no more than a thousand. Throws ConfigError that names `option`.
std::vector<std::int64_t> positive_numbers(const std::vector<std::string>& values,
                                           const std::string& option, std::int64_t most);

}  // namespace peakbench::cli
