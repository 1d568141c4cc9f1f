#include "manifest/read_entry.h"

#include <algorithm>
#include <set>

#include "manifest/option.h"
#include "result/nearest.h"

namespace peakbench::manifest {
namespace {

using result::FieldError;
using result::Fields;
using Names = std::vector<std::string>;

// Ids are typed in NAME,key=value and joined with '+', so they hold none of these characters.
bool is_name(const std::string& text, const char* also) {
  const std::string allowed = std::string("abcdefghijklmnopqrstuvwxyz0123456789") + also;
  return !text.empty() && text.size() <= 64 && std::isalnum(static_cast<unsigned char>(text[0])) &&
         text.find_first_not_of(allowed) == std::string::npos;
}

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

std::optional<double> read_bound(const Fields& fields, const std::string& key, OptionType type) {
  const auto bound = fields.maybe<double>(key);
  if (bound && type != OptionType::kInteger && type != OptionType::kNumber) {
    throw FieldError(fields.pointer(key), "only an integer or a number has one");
  }
  return bound;
}

Names read_choices(const Fields& fields, OptionType type) {
  if (type != OptionType::kChoice) {
    if (fields.find("choices"))
      throw FieldError(fields.pointer("choices"), "only a choice has them");
    return {};
  }
  auto choices = fields.get<Names>("choices");
  if (choices.empty()) throw FieldError(fields.pointer("choices"), "is empty");
  return choices;
}

Option read_option(const Fields& fields) {
  fields.only({"name", "type", "default", "minimum", "maximum", "choices", "unit", "summary"});
  Option option;
  option.name = fields.get<std::string>("name");
  if (!is_name(option.name, "_")) {
    throw FieldError(fields.pointer("name"),
                     "expected small letters, digits and _, got \"" + option.name + "\"");
  }
  option.type = *option_type_from_string(
      read_one_of(fields, "type", {"integer", "number", "boolean", "string", "choice", "path"}));
  option.summary = read_text(fields, "summary");
  option.unit = fields.get_or<std::string>("unit", "");
  option.minimum = read_bound(fields, "minimum", option.type);
  option.maximum = read_bound(fields, "maximum", option.type);
  option.choices = read_choices(fields, option.type);
  const auto accepted = accept(option, fields.require("default"));
  if (!accepted) {
    throw FieldError(fields.pointer("default"), "expected " + expected(option) + ", got " +
                                                    result::describe(fields.require("default")));
  }
  option.default_value = *accepted;
  return option;
}

std::vector<Option> read_options(const Fields& fields) {
  std::vector<Option> options;
  std::set<std::string> names;
  fields.each("options", [&](const Fields& item) {
    options.push_back(read_option(item));
    if (!names.insert(options.back().name).second) {
      throw FieldError(item.pointer("name"), "\"" + options.back().name + "\" is there twice");
    }
  });
  return options;
}

// A list of which every name is known.
Names read_names_of(const Fields& fields, const std::string& key, const Names& known) {
  auto names = fields.get_or<Names>(key, {});
  for (const auto& name : names) {
    if (std::ranges::count(known, name) != 0) continue;
    throw FieldError(fields.pointer(key), "unknown \"" + name + "\"" + suggestion(name, known));
  }
  return names;
}

void read_strategy(const Fields& fields, Entry& entry) {
  entry.order = static_cast<int>(
      std::clamp<std::int64_t>(fields.get<std::int64_t>("order"), INT32_MIN, INT32_MAX));
  entry.slots = read_names_of(fields, "slots", slots());
  entry.wrappers = read_names_of(fields, "wrappers", wrappers());
  entry.capabilities = read_names_of(fields, "capabilities", capabilities());
  entry.needs = fields.get_or<Names>("needs", {});
  entry.conflicts = fields.get_or<Names>("conflicts", {});
  entry.promise =
      read_one_of(fields, "promise", {"bit_identical", "within_tolerance", "different_problem"});
  entry.tolerance = fields.maybe<double>("tolerance");
  const bool wanted = entry.promise == "within_tolerance";
  if (wanted != entry.tolerance.has_value() || (wanted && !(*entry.tolerance > 0))) {
    throw FieldError(fields.pointer("tolerance"),
                     wanted ? "the promise within_tolerance needs a number above 0"
                            : "only the promise within_tolerance has one");
  }
}

void read_model(const Fields& fields, Entry& entry) {
  entry.family = read_text(fields, "family");
  entry.facts = fields.get_or<Names>("facts", {});
  entry.has_sequence = fields.get<bool>("has_sequence");
  entry.default_sequence_length = fields.get_or<std::int64_t>("default_sequence_length", 0);
  if (entry.has_sequence != (entry.default_sequence_length > 0)) {
    throw FieldError(fields.pointer("default_sequence_length"),
                     entry.has_sequence
                         ? "expected an integer of 1 or more, as has_sequence is true"
                         : "expected 0, as has_sequence is false");
  }
  entry.parameters = fields.get<std::int64_t>("parameters");
}

}  // namespace

const Names& wrappers() {
  static const Names names{"freezing",      "block_wrappers",      "saved_tensor_hooks",
                           "step_contexts", "gradient_transforms", "around_update"};
  return names;
}

const Names& capabilities() {
  static const Names names{"updates_in_backward", "needs_all_gradients"};
  return names;
}

const Names& slots() {
  static const Names names{"base_weights", "adapters",      "update_rule", "kernel_grouping",
                           "schedule",     "micro_batches", "loss_head"};
  return names;
}

Entry read_entry(const Fields& fields, Kind kind) {
  Names known{"id", "title", "summary", "source_url", "options"};
  const Names of_model{"family", "facts", "has_sequence", "default_sequence_length", "parameters"};
  const Names of_strategy{"order", "slots",     "wrappers", "capabilities",
                          "needs", "conflicts", "promise",  "tolerance"};
  const Names& own = kind == Kind::kModel ? of_model : of_strategy;
  known.insert(known.end(), own.begin(), own.end());
  fields.only(known);

  Entry entry;
  entry.id = fields.get<std::string>("id");
  if (!is_name(entry.id, "._-")) {
    throw FieldError(fields.pointer("id"),
                     "expected small letters, digits, '.', '_' and '-', got \"" + entry.id + "\"");
  }
  entry.title = read_text(fields, "title");
  entry.summary = read_text(fields, "summary");
  entry.source_url = fields.get<std::string>("source_url");
  entry.options = read_options(fields);
  kind == Kind::kModel ? read_model(fields, entry) : read_strategy(fields, entry);
  return entry;
}

}  // namespace peakbench::manifest
