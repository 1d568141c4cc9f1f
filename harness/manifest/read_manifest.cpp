#include "manifest/read_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "errors/errors.h"
#include "json/parse_json.h"
#include "manifest/read_entry.h"
#include "manifest/read_value.h"
#include "text/bounded_text.h"

namespace peakbench::manifest {
namespace {

using nlohmann::json;

void read_entries(const Fields& fields, Manifest& manifest, Problems& problems) {
  fields.require("entries");
  fields.each("entries", [&](const Fields& item) {
    auto entry = read_entry(item, manifest.kind, problems);
    const auto same = [&](const Entry& other) { return other.id == entry.id; };
    if (!entry.id.empty() && std::ranges::any_of(manifest.entries, same)) {
      problems.check(
          [&] { throw FieldError(item.pointer("id"), "\"" + entry.id + "\" is there twice"); });
    }
    manifest.entries.push_back(std::move(entry));
  });
  if (manifest.entries.empty()) throw FieldError(fields.pointer("entries"), "is empty");
}

// The keys of the objects that the parser is in, and how long texts are.
class Keys {
 public:
  explicit Keys(Problems& problems) : problems_(problems) {}

  void operator()(json::parse_event_t event, const json& value) {
    if (value.is_string()) check_length(value.get_ref<const std::string&>());
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && !open_.back().insert(value.get<std::string>()).second)
      problems_.add("the key " + value.dump() + " is there twice in one object");
  }

 private:
  void check_length(const std::string& text) {
    constexpr std::size_t kShown = 40;
    if (text.size() <= kLongestText) return;
    problems_.add(fmt::format("a text has {} bytes, {} at most: {}", text.size(), kLongestText,
                              bounded(text, kShown)));
  }

  Problems& problems_;
  std::vector<std::set<std::string>> open_;
};

}  // namespace

Manifest read_manifest(const Fields& fields, Problems& problems) {
  Manifest manifest;
  problems.check_keys(fields, {"kind", "entries"});
  const bool known = problems.check([&] {
    const auto kind = read_one_of(fields, "kind", {"strategy", "model"});
    manifest.kind = kind == "model" ? Kind::kModel : Kind::kStrategy;
  });
  if (known) problems.check([&] { read_entries(fields, manifest, problems); });
  return manifest;
}

json parse_manifest(const std::string& text, Problems& problems) {
  Keys keys(problems);
  try {
    return parse_json(text, [&keys](int, json::parse_event_t event, json& value) {
      keys(event, value);
      return true;
    });
  } catch (const RunFileError& error) {
    problems.add(error.what());
    return nullptr;
  }
}

std::vector<std::string> problems_in(const std::string& text) {
  Problems problems;
  const auto content = parse_manifest(text, problems);
  if (problems.empty()) {
    problems.check([&] { read_manifest(Fields(content), problems); });
  }
  return problems.take();
}

}  // namespace peakbench::manifest
