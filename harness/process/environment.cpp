#include "process/environment.h"

#include <unistd.h>

#include <algorithm>
#include <map>

namespace peakbench::process {

std::vector<std::string> merged_environment(const Environment& added,
                                            const std::vector<std::string>& without) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    const bool left_out = std::ranges::any_of(
        without, [&](const std::string& beginning) { return text.starts_with(beginning); });
    if (equals != std::string::npos && !left_out)
      all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace peakbench::process
