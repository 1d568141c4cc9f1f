#include <fmt/format.h>

#include <filesystem>

#include "base/errors.h"
#include "base/numbers.h"
#include "base/regular_file.h"
#include "planning/axes.h"
#include "planning/device.h"
#include "planning/plan.h"
#include "planning/suite_programs.h"
#include "planning/suite_table.h"

namespace peakbench::planning {
namespace {

using records::asked_axes;

constexpr Range<std::int64_t> kSizes{1, records::kMostSamples};

std::vector<std::string> make_keys() {
  std::vector<std::string> keys{"title", "plugins"};
  for (const auto* row : asked_axes()) keys.emplace_back(row->asked->list);
  for (const char* key : {"programs", "model_options", "strategy_options", "device_options",
                          "exclude", "include", "published", "steps", "warmup", "repetitions",
                          "timeout_s", "memory_limit", "threads", "seed", "gate"})
    keys.emplace_back(key);
  return keys;
}

std::vector<std::string> rule_keys() {
  std::vector<std::string> keys;
  for (const auto* row : asked_axes()) keys.emplace_back(row->name);
  return keys;
}

// Fills a Request from the suite's tables, and Request::where on the way.
class SuiteReader {
 public:
  SuiteReader(const toml::table& table, const std::string& file) : suite_(table, file) {
    request_.suite_file = file;
  }

  Request read() {
    suite_.only(suite_keys());
    request_.title =
        suite_.text("title").value_or(std::filesystem::path(request_.suite_file).stem().string());
    read_plugins();
    read_lists();
    read_numbers();
    read_options("model_options", request_.model_options);
    read_options("strategy_options", request_.strategy_options);
    read_device_options();
    read_gate();
    read_rules("exclude", request_.excludes);
    read_rules("include", request_.includes);
    suite_.each_in_list("published", [&](const SuiteTable& table) { read_published(table); });
    request_.programs = read_programs(suite_, request_.suite_file, request_.where);
    need_cases();
    return std::move(request_);
  }

 private:
  void read_list(const std::string& key, bool integers, std::vector<std::string>& target) {
    if (!suite_.has(key)) return;
    target.clear();
    for (const auto& [text, where] : integers ? suite_.integers(key) : suite_.texts(key)) {
      target.push_back(text);
      request_.where.emplace(key + "/" + text, where);
    }
    if (target.empty()) suite_.fail(key, "the list is empty");
  }

  // Found from the suite's file, wherever it is run from.
  void read_plugins() {
    const auto beside = std::filesystem::path(request_.suite_file).parent_path();
    for (const auto& [text, where] : suite_.texts("plugins")) {
      if (text.empty())
        throw ConfigError(fmt::format("{}: plugins: expected a folder, got \"\"", where));
      request_.plugins.emplace_back((beside / text).lexically_normal().string(),
                                    fmt::format("{}: plugins", where));
    }
  }

  void read_lists() {
    for (const auto* row : asked_axes())
      read_list(row->asked->list, row->is_integer, request_.lists[row->axis]);
  }

  void read_number(const std::string& key, std::int64_t& target) {
    const auto value = suite_.integer(key);
    if (!value) return;
    target = *value;
    request_.where.emplace(key, suite_.where(key));
  }

  void read_numbers() {
    read_number("steps", request_.steps);
    read_number("warmup", request_.warmup);
    read_number("repetitions", request_.repetitions);
    read_number("timeout_s", request_.timeout_s);
    read_number("threads", request_.threads);
    if (const auto seed = suite_.integer("seed", {.least = 0}))
      request_.seed = static_cast<std::uint64_t>(*seed);
    if (const auto limit = suite_.text("memory_limit")) {
      const auto bytes = bytes_from_text(*limit);
      if (!bytes)
        suite_.fail("memory_limit", fmt::format("expected {}, got \"{}\"", kExpectedBytes, *limit));
      request_.memory_limit_bytes = *bytes;
    }
  }

  void read_options(const std::string& section,
                    std::map<std::string, std::map<std::string, std::string>>& target) {
    suite_.each_table(section, [&](const std::string& id, const SuiteTable& table) {
      const std::string key = section + "/" + id;
      request_.where.emplace(key, table.here());
      target[id];
      for (const auto& [name, value] : table.scalars()) {
        target[id][name] = value.text;
        request_.where.emplace(key + "/" + name, value.where);
      }
    });
  }

  void read_device_options() {
    if (const auto table = suite_.table("device_options")) {
      for (const auto& [name, value] : table->scalars()) {
        if (is_allocator_key(name)) {
          add_allocator_setting(*table, name, value.text);
          continue;
        }
        request_.device_options[name] = value.text;
        request_.where.emplace("device_options/" + name, value.where);
      }
    }
  }

  // One setting for all cases, as suites had it before the axis: the only value of its list.
  void add_allocator_setting(const SuiteTable& table, const std::string& name,
                             const std::string& value) {
    if (suite_.has("allocator"))
      table.fail(name, "the suite's list `allocator` has such settings; put this one there");
    const auto setting = fmt::format("{}:{}", name, value);
    at_place({{name, table.where(name)}}, name, [&] { normal_allocator(setting); });
    auto& list = request_.lists[records::Axis::kAllocator];
    list = {list.empty() || list[0].empty() ? setting : fmt::format("{},{}", list[0], setting)};
  }

  void read_gate() {
    const auto table = suite_.table("gate");
    if (!table) return;
    table->only(records::gate_keys());
    request_.gate.emplace();
    for (const auto& [key, value] : table->scalars())
      records::set_gate(*request_.gate, key, value.text, value.where + ": gate." + key);
  }

  void read_rules(const std::string& key, std::vector<Rule>& target) {
    suite_.each_in_list(key, [&](const SuiteTable& table) {
      table.only(rule_keys());
      Rule rule;
      for (const auto* row : asked_axes()) {
        if (!table.has(row->name)) continue;
        rule.fields[row->name] =
            row->is_integer ? std::to_string(*table.integer(row->name)) : *table.text(row->name);
      }
      for (const auto& [name, text] : rule.fields) rule.where[name] = table.where(name);
      if (rule.fields.empty())
        table.fail_here("this " + key + " says nothing; it needs one key at least");
      target.push_back(std::move(rule));
    });
  }

  void read_published(const SuiteTable& table) {
    table.only({"model", "strategy", "device", "dtype", "batch_size", "sequence_length", "metric",
                "value", "unit", "rounded_to", "source", "url", "note", "versions", "grade",
                "cause", "explanation"});
    const auto required = [&](const char* key) {
      const auto text = table.text(key);
      if (!text || text->empty()) table.fail(key, "missing; a published figure needs it");
      return *text;
    };
    const auto text = [&](const char* key) { return table.text(key).value_or(""); };
    records::Published figure;
    figure.model = required("model");
    figure.strategy = text("strategy");
    figure.device = text("device");
    figure.dtype = text("dtype");
    figure.batch_size = table.integer("batch_size", kSizes);
    figure.sequence_length = table.integer("sequence_length", kSizes);
    figure.metric = required("metric");
    figure.value = table.number("value", kMeasuredRate).value_or(0);
    figure.unit = text("unit");
    figure.rounded_to = table.number("rounded_to", kMeasuredRate);
    figure.url = text("url");
    figure.note = text("note");
    figure.grade = text("grade");
    figure.cause = text("cause");
    figure.explanation = text("explanation");
    if (const auto versions = table.table("versions"))
      for (const auto& [name, version] : versions->scalars()) figure.versions[name] = version.text;
    if (const auto wrong = wrong_field_of(figure)) table.fail(wrong->field, wrong->problem);
    figure.source = required("source");
    for (const char* key : {"model", "strategy", "dtype", "device"}) {
      request_.where.emplace(fmt::format("published/{}/{}", request_.published.size(), key),
                             table.where(key));
    }
    request_.published.push_back(std::move(figure));
  }

  void need_cases() const {
    if (!request_.includes.empty() || !needs_worker(request_)) return;
    for (const auto* row : asked_axes()) {
      if (row->asked->required && !suite_.has(row->asked->list)) {
        throw ConfigError(fmt::format(
            "{}: {}: missing; a suite names at least one, or has an include or programs",
            request_.suite_file, row->asked->list));
      }
    }
  }

  SuiteTable suite_;
  Request request_;
};

toml::table parse(const std::string& text, const std::string& path) {
  if (const auto line = line_of_endless_key(text)) {
    throw ConfigError(fmt::format("{}:{}: a key of more than {} parts; no key of a suite has them",
                                  path, *line, kMostKeyParts));
  }
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}: not TOML: {}", place_text(path, error.source().begin),
                                  error.description()));
  }
}

}  // namespace

const std::vector<std::string>& suite_keys() {
  static const auto keys = make_keys();
  return keys;
}

Request suite_from_text(const std::string& text, const std::string& path) {
  const toml::table table = parse(text, path);
  return SuiteReader(table, path).read();
}

Request read_suite(const std::string& path) {
  return suite_from_text(files::read_regular_file(path, files::kMostSmallText), path);
}

}  // namespace peakbench::planning
