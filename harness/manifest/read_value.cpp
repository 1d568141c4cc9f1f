#include "manifest/read_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/nearest.h"

namespace peakbench::manifest {

using Names = std::vector<std::string>;

std::string read_text(const Fields& fields, const std::string& key) {
  auto text = fields.get<std::string>(key);
  if (text.empty()) throw FieldError(fields.pointer(key), "is empty");
  return text;
}

std::string read_one_of(const Fields& fields, const std::string& key, const Names& known) {
  auto text = fields.get<std::string>(key);
  if (std::ranges::count(known, text) == 0) {
    throw FieldError(fields.pointer(key), "unknown \"" + text + "\"" + suggestion(text, known));
  }
  return text;
}

Names read_names(const Fields& fields, const std::string& key,
                 const std::function<void(const std::string&, const std::string&)>& check) {
  auto names = fields.get_or<Names>(key, {});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto pointer = fmt::format("{}/{}", fields.pointer(key), i);
    check(names[i], pointer);
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw FieldError(pointer, "\"" + names[i] + "\" is there twice");
    }
  }
  return names;
}

}  // namespace peakbench::manifest
