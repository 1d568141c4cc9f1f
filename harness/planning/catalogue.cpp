#include "planning/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "planning/option.h"

namespace peakbench::planning {
namespace {

using planning::Kind;

const planning::Option* find_option(const planning::Entry& entry, const std::string& name) {
  for (const auto& option : entry.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::vector<std::string> option_names(const planning::Entry& entry) {
  std::vector<std::string> names;
  for (const auto& option : entry.options) names.push_back(option.name);
  return names;
}

bool is_spelled(const planning::Entry& entry, const std::string& wanted) {
  return spelling(entry.id) == wanted ||
         std::ranges::any_of(entry.aliases,
                             [&](const std::string& alias) { return spelling(alias) == wanted; });
}

// Null: nothing is, or several are.
const Offer* only_one_spelled(const std::map<std::string, Offer>& known, const std::string& name) {
  const auto wanted = spelling(name);
  const Offer* found = nullptr;
  for (const auto& [id, offer] : known) {
    if (!is_spelled(*offer.entry, wanted)) continue;
    if (found != nullptr) return nullptr;
    found = &offer;
  }
  return found;
}

}  // namespace

const char* to_string(Kind kind) { return kind == Kind::kModel ? "model" : "strategy"; }

Catalogue::Catalogue(const planning::Found& found) : problems_(found.problems) {
  for (const auto& plugin : found.plugins) {
    for (const auto& entry : plugin.entries) {
      offers_[plugin.kind].emplace(entry.id, Offer{&entry, plugin.path});
    }
  }
}

const Offer& Catalogue::find(Kind kind, const std::string& name) const {
  static const std::map<std::string, Offer> kNone;
  const auto of_kind = offers_.find(kind);
  const auto& known = of_kind == offers_.end() ? kNone : of_kind->second;
  if (const auto found = known.find(name); found != known.end()) return found->second;
  if (const auto* found = only_one_spelled(known, name)) return *found;
  std::vector<std::string> ids;
  for (const auto& [id, offer] : known) ids.push_back(id);
  // The plugin that offers it may be one of those left out.
  const auto left_out =
      problems_.empty()
          ? std::string()
          : fmt::format(" (plugins left out: {}; `peakbench doctor` says why)", problems_.size());
  throw ConfigError(fmt::format("unknown {} \"{}\"{}{}", to_string(kind), name,
                                suggestion(name.substr(name.rfind('/') + 1), ids), left_out));
}

nlohmann::json Catalogue::value(const Offer& offer, const std::string& name,
                                const std::string& text) const {
  const auto* option = find_option(*offer.entry, name);
  if (!option) {
    throw ConfigError(fmt::format("unknown option \"{}\" of {}{}", name, offer.entry->id,
                                  suggestion(name, option_names(*offer.entry))));
  }
  if (const auto value = planning::accept_text(*option, text)) return *value;
  throw ConfigError(fmt::format("{},{}={}: expected {}", offer.entry->id, name, text,
                                planning::expected(*option)));
}

Choice Catalogue::choose(Kind kind, const TypedSelection& typed, const OptionTables& tables) const {
  Choice choice{.offer = find(kind, typed.id), .use = {}};
  auto& [selection, options, path] = choice.use;
  selection.id = choice.offer.entry->id;
  path = choice.offer.path;
  options = default_options(*choice.offer.entry);
  if (const auto table = tables.find(selection.id); table != tables.end())
    for (const auto& [name, text] : table->second) options[name] = value(choice.offer, name, text);
  for (const auto& [name, text] : typed.options) options[name] = value(choice.offer, name, text);
  for (const auto& option : choice.offer.entry->options) {
    if (options[option.name] == option.default_value) continue;
    selection.options[option.name] = options[option.name];
  }
  return choice;
}

nlohmann::json default_options(const planning::Entry& entry) {
  auto options = nlohmann::json::object();
  for (const auto& option : entry.options) options[option.name] = option.default_value;
  return options;
}

}  // namespace peakbench::planning
