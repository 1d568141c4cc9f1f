// On which line of a JSON text each field stands, for messages to people who wrote it by hand.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace peakbench {

class JsonLines {
 public:
  // `text`: what parse_json() has read.
  explicit JsonLines(std::string_view text);

  // The line, from 1, of the field with this JSON pointer; of the innermost object around it that
  // is there, for a field that is missing.
  std::size_t of(std::string pointer) const;

 private:
  std::map<std::string, std::size_t> lines_;  // of keys, and of objects and texts in lists
};

}  // namespace peakbench
