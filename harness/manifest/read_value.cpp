#include "manifest/read_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "manifest/vocabulary.h"
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

std::vector<std::string> read_facts(const Fields& fields, const std::string& key) {
  return read_names(fields, key, [](const auto& name, const auto& pointer) {
    if (std::ranges::count(facts(), name) != 0 || is_own_fact(name)) return;
    const char* own = nearest(name, facts()) ? ""
                                             : "; a fact of your own has a dot in its name, like "
                                               "\"acme.packed\"";
    throw FieldError(pointer, "unknown \"" + name + "\"" + suggestion(name, facts()) + own);
  });
}

}  // namespace peakbench::manifest
