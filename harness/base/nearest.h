#pragma once

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench {

// A to Z as a to z; all else as it is.
inline std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

// The name that was probably meant, for errors about unknown names.

// The first of these:
//
// 1. the candidate with the fewest edits (insert, delete, replace, swap of neighbours; ignoring
//    case), if they are at most a third of the name;
// 2. the shortest candidate that contains the name, of three characters or more;
// 3. the candidate that begins like two thirds of the name, of four characters or more.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);

// Its letters, small, and digits: "RTX 4090" and rtx-4090 are rtx4090.
std::string bare_name(std::string_view name);

// The common form of differently spelled names, without everything before the last '/'.
// "meta-llama/Llama-3.1-8B" and llama-3.1-8b become llama318b.
std::string spelling(std::string_view name);

// What follows an unknown name in a message: `; did you mean "lora"?`, or `; known: baseline, lora`
// where nothing is near, or `; none is known`.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace peakbench
