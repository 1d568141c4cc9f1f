#include "result/case_json.h"

#include <stdexcept>

#include "result/axes.h"
#include "result/device.h"
#include "result/run_paths.h"

namespace peakbench::result {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::string read_trace_path(const Fields& fields) {
  const auto path = fields.get_or<std::string>("trace", "");
  if (!path.empty() && !is_path_inside(path))
    throw FieldError(fields.pointer("trace"),
                     "expected a path inside the run's folder, got " + describe(path));
  return path;
}

std::string read_slug(const Fields& fields) {
  const auto slug = fields.get<std::string>("slug");
  if (!is_file_name(slug))
    throw FieldError(fields.pointer("slug"), "expected a safe file name, got " + describe(slug));
  return slug;
}

ordered_json to_json(const PluginBuild& build) {
  return {{"kind", build.kind}, {"id", build.id}, {"file", build.file}, {"sha256", build.sha256}};
}

PluginBuild read_plugin_build(const Fields& fields) {
  return {.kind = fields.get<std::string>("kind"),
          .id = fields.get<std::string>("id"),
          .file = fields.get_or<std::string>("file", ""),
          .sha256 = fields.get_or<std::string>("sha256", "")};
}

CaseSpec read_spec(const Fields& fields) {
  CaseSpec spec;
  spec.id = fields.get<std::string>("id");
  spec.slug = read_slug(fields);
  read_setting(fields, spec);
  if (!facts_of(spec.kind).has_stack && !spec.strategies.empty())
    throw FieldError(fields.pointer("strategies"),
                     "expected none: a " + to_string(spec.kind) + " has no stack");
  return spec;
}

void append_spec(ordered_json& object, const CaseSpec& spec) {
  object["id"] = spec.id;
  object["slug"] = spec.slug;
  append_json(object, spec);
}

}  // namespace

ordered_json to_json(const Selection& selection) {
  return {{"id", selection.id}, {"options", ordered_json(selection.options)}};
}

ordered_json to_json(const Rank& rank) {
  return {{"rank", rank.rank}, {"memory", optional_to_json(rank.memory)}, {"trace", rank.trace}};
}

Rank read_rank(const Fields& fields) {
  return {.rank = fields.get_or<std::int64_t>("rank", 0, kMeasured),
          .memory = read_optional(fields, "memory", read_memory),
          .trace = read_trace_path(fields)};
}

Selection read_selection(const Fields& fields) {
  return {.id = fields.get<std::string>("id"),
          .options = fields.get_or<json>("options", json::object())};
}

Status read_status(const Fields& fields, const std::string& key) {
  const auto text = fields.get<std::string>(key);
  try {
    return status_from_string(text);
  } catch (const std::invalid_argument&) {
    throw FieldError(
        fields.pointer(key),
        "expected ok, out_of_memory, timeout, crashed, unsupported, conflict, no_effect, "
        "host_failure or interrupted, got \"" +
            text + "\"");
  }
}

ordered_json to_json(const CaseResult& result) {
  ordered_json object;
  append_spec(object, result.spec);
  object["added_for"] = result.added_for;
  object["status"] = to_string(result.status);
  object["reason"] = result.reason;
  object["emulated"] = is_emulated(result);
  object["memory"] = optional_to_json(result.memory);
  object["work"] = optional_to_json(result.work);
  object["throughput"] = optional_to_json(result.throughput);
  object["throughput_reason"] = result.throughput_reason;
  object["equivalence"] = optional_to_json(result.equivalence);
  object["out_of_memory"] = optional_to_json(result.out_of_memory);
  object["emulation"] = optional_to_json(result.emulation);
  object["losses"] = losses_to_json(result.losses);
  object["ranks"] = ordered_json::array();
  for (const auto& rank : result.ranks) object["ranks"].push_back(to_json(rank));
  object["plugins"] = ordered_json::array();
  for (const auto& build : result.plugins) object["plugins"].push_back(to_json(build));
  object["settings"] = result.settings;
  object["environment"] = result.environment;
  object["wall_ns"] = result.wall_ns;
  return object;
}

CaseResult read_case(const Fields& fields) {
  CaseResult result;
  result.spec = read_spec(fields);
  result.added_for = fields.get_or<std::string>("added_for", "");
  result.status = read_status(fields, "status");
  result.reason = fields.get_or<std::string>("reason", "");
  result.memory = read_optional(fields, "memory", read_memory);
  result.work = read_optional(fields, "work", read_step_work);
  result.throughput = read_optional(fields, "throughput", read_throughput);
  result.throughput_reason = fields.get_or<std::string>("throughput_reason", "");
  result.equivalence = read_optional(fields, "equivalence", read_equivalence);
  result.out_of_memory = read_optional(fields, "out_of_memory", read_out_of_memory);
  result.emulation = read_optional(fields, "emulation", read_emulation);
  result.losses = read_losses(fields);
  fields.each("ranks", [&](const Fields& item) { result.ranks.push_back(read_rank(item)); });
  fields.each("plugins",
              [&](const Fields& item) { result.plugins.push_back(read_plugin_build(item)); });
  result.settings = fields.get_or<json>("settings", json::object());
  result.environment = fields.get_or<json>("environment", json::object());
  result.wall_ns = fields.get_or<std::int64_t>("wall_ns", 0, kMeasured);
  return result;
}

}  // namespace peakbench::result
