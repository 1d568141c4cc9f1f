#include "records/job.h"

#include <stdexcept>

#include "records/axes.h"
#include "records/case_json.h"
#include "records/setting.h"

namespace peakbench::records {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

ordered_json to_json(const PluginUse& use) {
  return {{"selection", to_json(use.selection)},
          {"options", ordered_json(use.options)},
          {"path", use.path}};
}

PluginUse read_plugin_use(const Fields& fields) {
  return {.selection = read_selection(fields.child("selection")),
          .options = fields.get<json>("options"),
          .path = fields.get<std::string>("path")};
}

JobMode read_mode(const Fields& fields) {
  const auto mode = fields.get<std::string>("mode");
  if (mode == "memory") return JobMode::kMemory;
  if (mode == "throughput") return JobMode::kThroughput;
  throw FieldError(fields.pointer("mode"), "expected memory or throughput, got \"" + mode + "\"");
}

ordered_json to_json(const ProgramCommand& program) {
  return {{"arguments", program.arguments},
          {"environment", program.environment},
          {"folder", program.folder},
          {"typed_folder", program.typed_folder},
          {"timeout_s", program.timeout_s}};
}

ProgramCommand read_program(const Fields& fields) {
  return {.arguments = fields.get<std::vector<std::string>>("arguments"),
          .environment = fields.get<std::map<std::string, std::string>>("environment"),
          .folder = fields.get<std::string>("folder"),
          .typed_folder = fields.get<std::string>("typed_folder"),
          .timeout_s = fields.get<std::int64_t>("timeout_s")};
}

// In the places of the setting's model and strategies, which are chosen with them.
void read_plugins(const Fields& fields, Job& job) {
  job.model_plugin = read_plugin_use(fields.child("model"));
  fields.require("strategies");
  fields.each("strategies", [&](const Fields& item) {
    job.strategy_plugins.push_back(read_plugin_use(item));
    job.strategies.push_back(job.strategy_plugins.back().selection);
  });
  job.model = job.model_plugin.selection;
  job.strategies = without_plain_baseline(std::move(job.strategies));
}

}  // namespace

json to_json(const Job& job) {
  ordered_json object;
  append_json(object, job);
  auto strategies = ordered_json::array();
  for (const auto& use : job.strategy_plugins) strategies.push_back(to_json(use));
  object["model"] = to_json(job.model_plugin);
  object["strategies"] = std::move(strategies);
  object["mode"] = job.mode == JobMode::kMemory ? "memory" : "throughput";
  object["case_id"] = job.case_id;
  object["steps"] = job.steps;
  object["warmup"] = job.warmup;
  object["memory_limit_bytes"] = job.memory_limit_bytes;
  object["assume"] = job.assume;
  object["second_guesses"] = job.second_guesses;
  object["threads"] = job.threads;
  object["result_path"] = job.result_path;
  object["trace_path"] = job.trace_path;
  object["write_parameters_path"] = job.write_parameters_path;
  object["read_parameters_path"] = job.read_parameters_path;
  object["promise"] = to_json(job.promise);
  if (job.program) object["program"] = to_json(*job.program);
  return object;
}

Job job_from_json(const json& object) {
  const Fields fields(object);
  Job job;
  job.mode = read_mode(fields);
  job.case_id = fields.get<std::string>("case_id");
  read_plugins(fields, job);
  for (const auto& row : axes())
    if (row.axis != Axis::kModel && row.axis != Axis::kStrategy) row.read(fields, row, job);
  job.steps = fields.get<std::int64_t>("steps");
  job.warmup = fields.get<std::int64_t>("warmup");
  job.memory_limit_bytes = fields.get_or<std::int64_t>("memory_limit_bytes", 0);
  job.assume = fields.get_or<std::string>("assume", "");
  job.second_guesses = fields.get_or<std::int64_t>("second_guesses", 0);
  job.threads = fields.get_or<std::int64_t>("threads", 0);
  job.result_path = fields.get<std::string>("result_path");
  job.trace_path = fields.get_or<std::string>("trace_path", "");
  job.write_parameters_path = fields.get_or<std::string>("write_parameters_path", "");
  job.read_parameters_path = fields.get_or<std::string>("read_parameters_path", "");
  job.promise = read_equivalence(fields.child("promise"));
  job.program = read_optional(fields, "program", read_program);
  return job;
}

json to_json(const WorkerResult& result) {
  auto ranks = json::array();
  for (const auto& rank : result.ranks) ranks.push_back(json(to_json(rank)));
  return {{"status", to_string(result.status)},
          {"reason", result.reason},
          {"memory", json(optional_to_json(result.memory))},
          {"work", json(optional_to_json(result.work))},
          {"throughput", json(optional_to_json(result.throughput))},
          {"equivalence", json(optional_to_json(result.equivalence))},
          {"out_of_memory", json(optional_to_json(result.out_of_memory))},
          {"emulation", json(optional_to_json(result.emulation))},
          {"losses", losses_to_json(result.losses)},
          {"ranks", std::move(ranks)},
          {"settings", result.settings},
          {"environment", result.environment}};
}

WorkerResult worker_result_from_json(const json& object) {
  WorkerResult result;
  read_worker_result(Fields(object), result);
  return result;
}

json to_json(const Progress& progress) {
  return {{"phase", progress.phase},
          {"step", progress.step},
          {"steps", progress.steps},
          {"allocated_bytes", progress.allocated_bytes},
          {"peak_bytes", progress.peak_bytes}};
}

Progress progress_from_json(const json& object) {
  const Fields fields(object);
  return {.phase = fields.get<std::string>("phase"),
          .step = fields.get_or<std::int64_t>("step", 0),
          .steps = fields.get_or<std::int64_t>("steps", 0),
          .allocated_bytes = fields.get_or<std::int64_t>("allocated_bytes", 0),
          .peak_bytes = fields.get_or<std::int64_t>("peak_bytes", 0)};
}

}  // namespace peakbench::records
