#include "cli/one_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "text/nearest.h"

namespace peakbench::cli {

CLI::Validator one_of(const std::vector<std::string>& words,
                      const std::map<std::string, std::string>& other_names) {
  const auto check = [words, other_names](std::string& word) -> std::string {
    if (const auto other = other_names.find(word); other != other_names.end()) word = other->second;
    if (std::ranges::count(words, word) != 0) return "";
    const auto near = nearest(word, words);
    return fmt::format("\"{}\" is none of {}{}", word, fmt::join(words, ", "),
                       near ? fmt::format("; did you mean \"{}\"?", *near) : "");
  };
  return {check, fmt::format("{{{}}}", fmt::join(words, ","))};
}

}  // namespace peakbench::cli
