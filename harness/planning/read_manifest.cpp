#include "planning/read_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "planning/option.h"
#include "planning/vocabulary.h"

namespace peakbench::planning {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kIdExpected = "expected small letters, digits, '.', '_' and '-', got \"";

std::string read_id(const Fields& fields) {
  auto id = fields.get<std::string>("id");
  if (is_name(id, kIdAlso)) return id;
  throw FieldError(fields.pointer("id"), kIdExpected + id + "\"");
}

// Of one line, as people type them.
Names read_aliases(const Fields& fields) {
  constexpr std::size_t kLongest = 100;
  return read_names(fields, "aliases", [](const auto& name, const auto& pointer) {
    if (!spelling(name).empty() && name.size() <= kLongest &&
        name.find_first_of(" ,+=\"\n") == std::string::npos)
      return;
    throw FieldError(pointer, "expected a name without spaces, ',', '+', '=' and quotes");
  });
}

std::vector<Option> read_options(const Fields& fields, Problems& problems) {
  std::vector<Option> options;
  fields.each("options", [&](const Fields& item) {
    auto option = read_option(item, problems);
    const auto same = [&](const Option& other) { return other.name == option.name; };
    if (!option.name.empty() && std::ranges::any_of(options, same)) {
      problems.check([&] {
        throw FieldError(item.pointer("name"), "\"" + option.name + "\" is there twice");
      });
    }
    options.push_back(std::move(option));
  });
  return options;
}

// A list of which every name is known.
Names read_names_of(const Fields& fields, const std::string& key, const Names& known) {
  return read_names(fields, key, [&](const auto& name, const auto& pointer) {
    if (std::ranges::count(known, name) != 0) return;
    throw FieldError(pointer, "unknown \"" + name + "\"" + suggestion(name, known));
  });
}

// [{"id": "sam", "reason": "..."}]
std::vector<Conflict> read_conflicts(const Fields& fields, const std::string& id) {
  std::vector<Conflict> conflicts;
  fields.each("conflicts", [&](const Fields& item) {
    item.only({"id", "reason"});
    Conflict conflict{read_id(item), read_text(item, "reason")};
    if (conflict.id == id)
      throw FieldError(item.pointer("id"), "\"" + id + "\" is this strategy itself");
    const auto same = [&](const Conflict& other) { return other.id == conflict.id; };
    if (std::ranges::any_of(conflicts, same))
      throw FieldError(item.pointer("id"), "\"" + conflict.id + "\" is there twice");
    conflicts.push_back(std::move(conflict));
  });
  return conflicts;
}

// Absent, or sentences on what the strategy makes of each.
Cost read_cost(const Fields& fields) {
  if (fields.find("cost") == nullptr) return {};
  const Fields cost = fields.child("cost");
  cost.only({"parameters", "gradients", "optimizer_state", "activations"});
  const auto read = [&](const char* key) {
    return cost.find(key) == nullptr ? std::string() : read_text(cost, key);
  };
  return {read("parameters"), read("gradients"), read("optimizer_state"), read("activations")};
}

// Absent, an integer, or {"option": the name of an integer option, "plus": an integer}.
std::optional<Period> read_period(const Fields& fields, const Entry& entry) {
  const auto* value = fields.find("period");
  if (value == nullptr || value->is_null()) return std::nullopt;
  const auto check = [](const Fields& of, const std::string& key, std::int64_t steps,
                        std::int64_t least) {
    constexpr std::int64_t kMost = 1'000'000;
    if (steps < least || steps > kMost)
      throw FieldError(of.pointer(key), "expected an integer from " + std::to_string(least) +
                                            " to " + std::to_string(kMost));
    return steps;
  };
  if (!value->is_object())
    return Period{"", check(fields, "period", fields.get<std::int64_t>("period"), 1)};
  const Fields parts = fields.child("period");
  parts.only({"option", "plus"});
  Period period{parts.get<std::string>("option"), 0};
  period.steps = check(parts, "plus", parts.get_or<std::int64_t>("plus", 0), 0);
  const auto is_it = [&](const Option& option) {
    return option.name == period.option && option.type == OptionType::kInteger;
  };
  if (std::ranges::none_of(entry.options, is_it))
    throw FieldError(parts.pointer("option"),
                     "\"" + period.option + "\" is none of its integer options");
  return period;
}

void check_capabilities(const Fields& fields, const Entry& entry) {
  if (!updates_in_backward(entry) || !needs_all_gradients(entry)) return;
  throw FieldError(fields.pointer("capabilities"),
                   "updates_in_backward, but a strategy that needs all gradients at once "
                   "(needs_all_gradients, or the wrapper gradient_transforms) cannot");
}

double read_above_zero(const Fields& fields, const std::string& key) {
  const double value = fields.get<double>(key);
  if (value > 0) return value;
  throw FieldError(fields.pointer(key),
                   "expected a number above 0, got " + describe(fields.require(key)));
}

// A number, or {"absolute": a number, "relative": a number} with one of them or both.
void read_tolerance(const Fields& fields, Entry& entry) {
  const auto* value = fields.find("tolerance");
  const bool wanted = entry.promise == "within_tolerance";
  if (wanted != (value != nullptr)) {
    throw FieldError(fields.pointer("tolerance"),
                     wanted ? "the promise within_tolerance needs a number above 0, or an object "
                              "with absolute, relative or both"
                            : "only the promise within_tolerance has one");
  }
  if (!wanted) return;
  if (!value->is_object()) {
    entry.tolerance = read_above_zero(fields, "tolerance");
    return;
  }
  const Fields parts = fields.child("tolerance");
  parts.only({"absolute", "relative"});
  if (parts.find("absolute")) entry.tolerance = read_above_zero(parts, "absolute");
  if (parts.find("relative")) entry.relative_tolerance = read_above_zero(parts, "relative");
  if (!entry.tolerance && !entry.relative_tolerance) {
    throw FieldError(fields.pointer("tolerance"), "has neither absolute nor relative");
  }
}

int read_order(const Fields& fields) {
  const auto order = fields.get<std::int64_t>("order");
  constexpr std::int64_t kMost = 1'000'000;
  if (order >= -kMost && order <= kMost) return static_cast<int>(order);
  throw FieldError(fields.pointer("order"), "expected an integer from -1000000 to 1000000");
}

void read_strategy(const Fields& fields, Entry& entry, Problems& problems) {
  problems.check([&] { entry.order = read_order(fields); });
  problems.check([&] { entry.slots = read_names_of(fields, "slots", slots()); });
  const bool wrapped =
      problems.check([&] { entry.wrappers = read_names_of(fields, "wrappers", wrappers()); });
  const bool capable = problems.check(
      [&] { entry.capabilities = read_names_of(fields, "capabilities", capabilities()); });
  if (wrapped && capable) problems.check([&] { check_capabilities(fields, entry); });
  problems.check([&] { entry.needs = read_facts(fields, "needs"); });
  problems.check([&] { entry.requires_slots = read_names_of(fields, "requires", slots()); });
  problems.check([&] { entry.conflicts = read_conflicts(fields, entry.id); });
  problems.check([&] { entry.period = read_period(fields, entry); });
  problems.check([&] { entry.cost = read_cost(fields); });
  if (problems.check([&] { entry.promise = read_one_of(fields, "promise", promises()); })) {
    problems.check([&] { read_tolerance(fields, entry); });
  }
}

void read_sequence(const Fields& fields, Entry& entry) {
  entry.has_sequence = fields.get<bool>("has_sequence");
  entry.default_sequence_length = fields.get_or<std::int64_t>("default_sequence_length", 0);
  if (entry.has_sequence ? entry.default_sequence_length > 0 : entry.default_sequence_length == 0) {
    return;
  }
  throw FieldError(fields.pointer("default_sequence_length"),
                   entry.has_sequence ? "expected an integer of 1 or more, as has_sequence is true"
                                      : "expected 0, as has_sequence is false");
}

Names read_parts(const Fields& fields, const std::string& key) {
  return read_names(fields, key, [](const auto& name, const auto& pointer) {
    if (is_part(name)) return;
    throw FieldError(pointer, "unknown \"" + name + "\"" + suggestion(name, parts()));
  });
}

// [{"parts": ["q_proj"], "reason": "..."}]
std::vector<MissingLinears> read_missing_linears(const Fields& fields, const Names& linears) {
  std::vector<MissingLinears> all;
  fields.each("missing_linears", [&](const Fields& item) {
    item.only({"parts", "reason"});
    item.require("parts");
    MissingLinears missing{read_parts(item, "parts"), read_text(item, "reason")};
    for (const auto& part : missing.parts) {
      if (std::ranges::count(linears, part) != 0)
        throw FieldError(item.pointer("parts"), "\"" + part + "\" is in linears, too");
    }
    all.push_back(std::move(missing));
  });
  return all;
}

void read_model(const Fields& fields, Entry& entry, Problems& problems) {
  problems.check([&] { entry.family = read_text(fields, "family"); });
  problems.check([&] { entry.facts = read_facts(fields, "facts"); });
  if (problems.check([&] { entry.linears = read_parts(fields, "linears"); })) {
    problems.check([&] { entry.missing_linears = read_missing_linears(fields, entry.linears); });
  }
  problems.check([&] { read_sequence(fields, entry); });
  if (fields.find("loss") != nullptr)
    problems.check([&] { entry.loss = read_one_of(fields, "loss", losses()); });
  problems.check([&] {
    entry.parameters = fields.get<std::int64_t>("parameters");
    if (entry.parameters < 0) {
      throw FieldError(fields.pointer("parameters"), "expected an integer of 0 or more");
    }
  });
}

Entry read_entry(const Fields& fields, Kind kind, Problems& problems) {
  Names known{"id", "title", "summary", "source_url", "aliases", "options"};
  const Names of_model{"family",          "facts",        "linears",
                       "missing_linears", "has_sequence", "default_sequence_length",
                       "parameters",      "loss"};
  const Names of_strategy{"order",     "slots", "wrappers", "capabilities", "needs", "requires",
                          "conflicts", "cost",  "promise",  "tolerance",    "period"};
  const Names& own = kind == Kind::kModel ? of_model : of_strategy;
  known.insert(known.end(), own.begin(), own.end());
  problems.check_keys(fields, known);

  Entry entry;
  problems.check([&] { entry.id = read_id(fields); });
  problems.check([&] { entry.title = read_text(fields, "title"); });
  problems.check([&] { entry.summary = read_text(fields, "summary"); });
  problems.check([&] { entry.source_url = fields.get<std::string>("source_url"); });
  problems.check([&] { entry.aliases = read_aliases(fields); });
  problems.check([&] { entry.options = read_options(fields, problems); });
  if (kind == Kind::kModel) {
    read_model(fields, entry, problems);
  } else {
    read_strategy(fields, entry, problems);
  }
  return entry;
}

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

std::int64_t period_of(const Entry& strategy, const nlohmann::json& options) {
  if (!strategy.period) return 1;
  const auto& [option, steps] = *strategy.period;
  return option.empty() ? steps : options.at(option).get<std::int64_t>() + steps;
}

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

}  // namespace peakbench::planning
