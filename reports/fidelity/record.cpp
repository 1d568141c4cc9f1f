#include "reports/fidelity/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "errors/errors.h"
#include "files/read_file.h"
#include "json/fields.h"
#include "json/lines.h"
#include "json/parse_json.h"
#include "reports/render/words.h"
#include "result/axes.h"
#include "result/device.h"
#include "units/bytes.h"

namespace peakbench::fidelity {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Texts = std::map<std::string, std::string>;

std::string required(const Fields& fields, const std::string& key) {
  auto text = fields.get<std::string>(key);
  if (text.empty()) throw FieldError(fields.pointer(key), "is empty");
  return text;
}

std::string optional_text(const Fields& fields, const std::string& key) {
  return fields.get_or<std::string>(key, "");
}

void read_figure(const Fields& fields, result::Published& figure) {
  fields.only({"metric", "value", "unit", "rounded_to", "printed"});
  figure.metric = required(fields, "metric");
  figure.value = fields.get("value", kMeasuredRate);
  figure.unit = required(fields, "unit");
  figure.rounded_to = fields.maybe("rounded_to", kMeasuredRate);
  figure.printed = optional_text(fields, "printed");
}

void read_source(const Fields& fields, result::Published& figure) {
  fields.only({"name", "url", "note"});
  figure.source = required(fields, "name");
  figure.url = optional_text(fields, "url");
  figure.note = optional_text(fields, "note");
}

// A case of ours, or a program of anybody's.
void read_configuration(const Fields& fields, Record& record) {
  if (fields.find("program")) {
    fields.only({"program", "packages", "streams"});
    record.program = fields.get<std::vector<std::string>>("program");
    if (record.program.empty()) throw FieldError(fields.pointer("program"), "is empty");
    record.packages = fields.get_or<Texts>("packages", {});
    record.streams = optional_text(fields, "streams");
    if (!record.streams.empty() && record.streams != "soon" && record.streams != "late")
      throw FieldError(fields.pointer("streams"),
                       fmt::format("expected soon or late, got \"{}\"", record.streams));
    return;
  }
  fields.only({"model", "strategy", "dtype", "batch_size", "sequence_length"});
  auto& figure = record.figure;
  figure.model = required(fields, "model");
  figure.strategy = required(fields, "strategy");
  figure.dtype = required(fields, "dtype");
  figure.batch_size = fields.get("batch_size", Range<std::int64_t>{1, result::kMostSamples});
  figure.sequence_length =
      fields.maybe("sequence_length", Range<std::int64_t>{1, result::kMostSamples});
}

// One for each card, none of them 0.
std::vector<std::int64_t> read_used(const Fields& fields) {
  auto used = fields.get_or<std::vector<std::int64_t>>("peak_used_bytes", {});
  for (const auto bytes : used)
    if (bytes == 0 || !kMeasured.holds(bytes))
      throw FieldError(fields.pointer("peak_used_bytes"),
                       fmt::format("expected bytes above 0, got {}", bytes));
  return used;
}

Emulated read_emulated(const Fields& fields) {
  fields.only({"bytes", "phase", "at_peak", "verdict", "versions", "date", "peak_used_bytes"});
  return {.bytes = fields.get("bytes", kMeasured),
          .phase = optional_text(fields, "phase"),
          .at_peak = optional_text(fields, "at_peak"),
          .verdict = optional_text(fields, "verdict"),
          .versions = fields.get_or<Texts>("versions", {}),
          .date = required(fields, "date"),
          .peak_used_bytes = read_used(fields)};
}

Step read_step(const Fields& fields) {
  fields.only({"changed", "arguments", "bytes", "phase"});
  Step step{.changed = required(fields, "changed"),
            .arguments = fields.get<std::vector<std::string>>("arguments"),
            .bytes = fields.maybe("bytes", kMeasured).value_or(0),
            .phase = optional_text(fields, "phase")};
  if (step.arguments.empty()) throw FieldError(fields.pointer("arguments"), "is empty");
  if (fields.find("bytes") && step.bytes == 0)
    throw FieldError(fields.pointer("bytes"), "expected bytes above 0, got 0");
  return step;
}

DeviceMemory read_device_memory(const Fields& fields) {
  fields.only({"value", "unit"});
  DeviceMemory memory{.value = fields.get("value", kMeasuredRate),
                      .unit = required(fields, "unit")};
  if (!bytes_of(1, memory.unit))
    throw FieldError(fields.pointer("unit"),
                     fmt::format("expected {}, got \"{}\"", kMemoryUnits, memory.unit));
  return memory;
}

// Where a record has what the figure calls otherwise.
std::string pointer_of(const Fields& record, const std::string& field) {
  static const Texts kPlaces = {
      {"metric", "/figure/metric"},
      {"value", "/figure/value"},
      {"unit", "/figure/unit"},
      {"rounded_to", "/figure/rounded_to"},
      {"printed", "/figure/printed"},
      {"url", "/source/url"},
      {"device", "/card"},
  };
  const auto locator = kPlaces.find(field);
  return record.pointer() + (locator == kPlaces.end() ? "/" + field : locator->second);
}

std::string card_device(const Fields& fields) {
  const auto device = result::emulated_device(required(fields, "card"));
  try {
    return result::device_from(device).id;
  } catch (const ConfigError& error) {
    throw FieldError(fields.pointer("card"), error.what());
  }
}

// Where in a file fields stand, for messages.
struct FieldLocator {
  const std::string& path;
  const JsonLines& lines;

  std::string of(const std::string& pointer) const {
    return fmt::format("{}:{}", path, lines.of(pointer));
  }
};

Record read_record(const Fields& fields, const FieldLocator& locator) {
  fields.only({"schema", "figure", "source", "card", "configuration", "versions", "grade", "cause",
               "explanation", "emulated", "measures", "device_memory", "steps"});
  Record record;
  record.where = locator.of(fields.pointer("configuration"));
  read_figure(fields.child("figure"), record.figure);
  read_source(fields.child("source"), record.figure);
  record.figure.device = card_device(fields);
  read_configuration(fields.child("configuration"), record);
  record.figure.versions = fields.get_or<Texts>("versions", {});
  record.figure.grade = required(fields, "grade");
  record.measures = fields.get_or<std::string>("measures", kTrainingStep);
  if (std::ranges::find(kMeasures, record.measures) == std::end(kMeasures))
    throw FieldError(
        fields.pointer("measures"),
        fmt::format("expected {}, got \"{}\"", fmt::join(kMeasures, " or "), record.measures));
  if (const auto memory = fields.maybe_child("device_memory"))
    record.device_memory = read_device_memory(*memory);
  record.figure.cause = optional_text(fields, "cause");
  record.figure.explanation = optional_text(fields, "explanation");
  if (const auto emulated = fields.maybe_child("emulated"))
    record.emulated = read_emulated(*emulated);
  else
    record.reason = "not measured yet";
  if (record.program.empty() && fields.find("steps"))
    throw FieldError(fields.pointer("steps"), "are of a program, and this is a case");
  fields.each("steps", [&](const Fields& item) { record.steps.push_back(read_step(item)); });
  if (const auto wrong = wrong_field_of(record.figure))
    throw FieldError(pointer_of(fields, wrong->field), wrong->problem);
  return record;
}

NotRebuilt read_not_rebuilt(const Fields& fields) {
  fields.only({"source", "url", "figures", "reason"});
  return {.source = required(fields, "source"),
          .url = optional_text(fields, "url"),
          .reason = required(fields, "reason"),
          .figures = fields.get_or("figures", std::int64_t{1}, Range<std::int64_t>{1, 1'000'000})};
}

void check_schema(const Fields& fields) {
  const auto schema = required(fields, "schema");
  if (schema != kSchema)
    throw FieldError(fields.pointer("schema"),
                     fmt::format("expected {}, got \"{}\"", kSchema, schema));
}

Records read(const Fields& fields, const FieldLocator& locator) {
  check_schema(fields);
  Records records;
  if (fields.find("figure")) {
    records.records.push_back(read_record(fields, locator));
    return records;
  }
  fields.only({"schema", "records", "not_rebuilt"});
  fields.each("records",
              [&](const Fields& item) { records.records.push_back(read_record(item, locator)); });
  fields.each("not_rebuilt",
              [&](const Fields& item) { records.not_rebuilt.push_back(read_not_rebuilt(item)); });
  return records;
}

ordered_json to_json(const Record& record) {
  const auto& figure = record.figure;
  ordered_json json = {
      {"figure", {{"metric", figure.metric}, {"value", figure.value}, {"unit", figure.unit}}},
      {"source", {{"name", figure.source}}},
      {"card", result::recorded_device(figure.device).card}};
  if (figure.rounded_to) json["figure"]["rounded_to"] = *figure.rounded_to;
  if (!figure.printed.empty()) json["figure"]["printed"] = figure.printed;
  if (record.measures != kTrainingStep) json["measures"] = record.measures;
  if (record.device_memory)
    json["device_memory"] = {{"value", record.device_memory->value},
                             {"unit", record.device_memory->unit}};
  if (!figure.url.empty()) json["source"]["url"] = figure.url;
  if (!figure.note.empty()) json["source"]["note"] = figure.note;
  if (record.program.empty()) {
    json["configuration"] = {{"model", figure.model},
                             {"strategy", figure.strategy},
                             {"dtype", figure.dtype},
                             {"batch_size", figure.batch_size.value_or(1)}};
    if (figure.sequence_length) json["configuration"]["sequence_length"] = *figure.sequence_length;
  } else {
    json["configuration"] = {{"program", record.program}};
    if (!record.packages.empty()) json["configuration"]["packages"] = record.packages;
    if (!record.streams.empty()) json["configuration"]["streams"] = record.streams;
  }
  if (!figure.versions.empty()) json["versions"] = figure.versions;
  json["grade"] = figure.grade;
  if (!figure.cause.empty()) json["cause"] = figure.cause;
  if (!figure.explanation.empty()) json["explanation"] = figure.explanation;
  for (const Step& step : record.steps) {
    ordered_json one = {{"changed", step.changed}};
    one["arguments"] = step.arguments;
    if (step.bytes != 0) one["bytes"] = step.bytes;
    if (!step.phase.empty()) one["phase"] = step.phase;
    json["steps"].push_back(one);
  }
  if (!record.emulated) return json;
  const auto& emulated = *record.emulated;
  auto& ours = json["emulated"] = {{"bytes", emulated.bytes}};
  if (!emulated.phase.empty()) ours["phase"] = emulated.phase;
  if (!emulated.at_peak.empty()) ours["at_peak"] = emulated.at_peak;
  if (!emulated.peak_used_bytes.empty()) ours["peak_used_bytes"] = emulated.peak_used_bytes;
  if (!emulated.verdict.empty()) ours["verdict"] = emulated.verdict;
  if (!emulated.versions.empty()) ours["versions"] = emulated.versions;
  ours["date"] = emulated.date;
  return json;
}

// What is a twentieth of the peak at least, largest first: "activations 12.1 GiB, ...".
std::string at_peak_text(const result::Memory& memory) {
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (const auto& [category, bytes] : memory.at_peak)
    if (bytes * 20 >= memory.peak_allocated_bytes) parts.emplace_back(bytes, category);
  std::ranges::sort(parts, std::greater());
  std::vector<std::string> texts;
  for (const auto& [bytes, category] : parts)
    texts.push_back(fmt::format("{} {}", reports::category_label(category), gib_text(bytes, 2)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Record record_of(const result::Published& figure, const result::Run& run) {
  Record record{.figure = figure};
  const auto about = std::ranges::find_if(run.cases, [&](const auto& one) {
    return one.spec.device == figure.device && is_about(figure, one.spec);
  });
  if (about == run.cases.end())
    record.reason = "the run has no such case";
  else if (about->status != result::Status::kOk || !about->memory)
    record.reason = fmt::format("{}: {}", to_string(about->status), about->reason);
  else if (!bytes_of_kind(*about->memory, figure.metric))
    record.reason = "nothing is reserved on this device";
  else
    record.emulated = emulated_by(*about, figure.metric, run);
  return record;
}

}  // namespace

Records records_from(std::string_view text, const std::string& path) {
  try {
    const auto parsed = parse_json(text);
    const JsonLines lines(text);
    const FieldLocator locator{path, lines};
    try {
      return read(Fields(parsed), locator);
    } catch (const FieldError& error) {
      throw ConfigError(fmt::format("{}: {}", locator.of(error.pointer), error.what()));
    }
  } catch (const RunFileError& error) {
    throw ConfigError(fmt::format("{}: {}", path, error.what()));
  }
}

Records read_records(const std::string& path) {
  return records_from(files::read_regular_file(path, files::kMostSmallText), path);
}

Records records_of(const result::Run& run) {
  Records records;
  for (const auto& figure : run.published)
    if (!figure.grade.empty()) records.records.push_back(record_of(figure, run));
  return records;
}

Emulated emulated_by(const result::CaseResult& result, const std::string& metric,
                     const result::Run& run) {
  const auto& memory = result.memory.value();
  Emulated emulated{.bytes = bytes_of_kind(memory, metric).value(),
                    .phase = memory.peak_phase,
                    .at_peak = at_peak_text(memory),
                    .date = run.created.substr(0, 10)};
  if (const auto libtorch = run.environment.find("libtorch_version");
      libtorch != run.environment.end() && libtorch->is_string())
    emulated.versions["libtorch"] = libtorch->get<std::string>();
  return emulated;
}

void add(Records& records, const Record& record) {
  // Once read, a record written twice is the same text.
  const auto identity = [](const Record& one) {
    auto json = to_json(one);
    return ordered_json::array(
        {json["figure"]["metric"], json["source"]["name"], json["card"], json["configuration"]});
  };
  const auto same = std::ranges::find(records.records, identity(record), identity);
  if (same == records.records.end()) {
    records.records.push_back(record);
    return;
  }
  auto steps = std::move(same->steps);
  const auto bytes = same->emulated ? same->emulated->bytes : 0;
  *same = record;
  // They begin at the program's own figure.
  if (record.steps.empty() && record.emulated && record.emulated->bytes == bytes)
    same->steps = std::move(steps);
}

std::string name_of(const Record& record) {
  return fmt::format("{}: {}", record.figure.source, configuration_of(record));
}

std::string configuration_of(const Record& record) {
  if (record.program.empty()) {
    const auto& figure = record.figure;
    auto text = fmt::format("{} / {} / {} b{}", figure.model, figure.strategy, figure.dtype,
                            figure.batch_size.value_or(1));
    if (figure.sequence_length) text += fmt::format(" s{}", *figure.sequence_length);
    return text;
  }
  auto text = std::filesystem::path(record.program[0]).filename().string();
  for (std::size_t at = 1; at < record.program.size(); ++at) text += " " + record.program[at];
  if (!record.streams.empty()) text += fmt::format(" (streams={})", record.streams);
  return text;
}

ordered_json to_json(const Records& records) {
  ordered_json json = {{"schema", kSchema}, {"records", ordered_json::array()}};
  for (const auto& record : records.records) json["records"].push_back(to_json(record));
  if (records.not_rebuilt.empty()) return json;
  for (const auto& left : records.not_rebuilt) {
    ordered_json item = {{"source", left.source}};
    if (!left.url.empty()) item["url"] = left.url;
    item["figures"] = left.figures;
    item["reason"] = left.reason;
    json["not_rebuilt"].push_back(std::move(item));
  }
  return json;
}

}  // namespace peakbench::fidelity
