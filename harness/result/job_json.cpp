#include <stdexcept>

#include "result/case_json.h"
#include "result/job.h"

namespace peakbench::result {

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

}  // namespace

json to_json(const Job& job) {
  json strategies = json::array();
  for (const auto& use : job.strategies) strategies.push_back(json(to_json(use)));
  return {{"mode", job.mode == JobMode::kMemory ? "memory" : "throughput"},
          {"case_id", job.case_id},
          {"model", json(to_json(job.model))},
          {"strategies", std::move(strategies)},
          {"device", job.device},
          {"dtype", job.dtype},
          {"device_options", job.device_options},
          {"batch_size", job.batch_size},
          {"sequence_length", json(optional_to_json(job.sequence_length))},
          {"seed", job.seed},
          {"steps", job.steps},
          {"warmup", job.warmup},
          {"memory_limit_bytes", job.memory_limit_bytes},
          {"threads", job.threads},
          {"result_path", job.result_path},
          {"trace_path", job.trace_path},
          {"write_parameters_path", job.write_parameters_path},
          {"read_parameters_path", job.read_parameters_path},
          {"promise", json(to_json(job.promise))}};
}

Job job_from_json(const json& object) {
  const Fields fields(object);
  Job job;
  job.mode = read_mode(fields);
  job.case_id = fields.get<std::string>("case_id");
  job.model = read_plugin_use(fields.child("model"));
  fields.require("strategies");
  fields.each("strategies",
              [&](const Fields& item) { job.strategies.push_back(read_plugin_use(item)); });
  job.device = fields.get<std::string>("device");
  job.dtype = fields.get<std::string>("dtype");
  job.device_options = fields.get_or<json>("device_options", json::object());
  job.batch_size = fields.get<std::int64_t>("batch_size");
  job.sequence_length = fields.maybe<std::int64_t>("sequence_length");
  job.seed = fields.get<std::uint64_t>("seed");
  job.steps = fields.get<std::int64_t>("steps");
  job.warmup = fields.get<std::int64_t>("warmup");
  job.memory_limit_bytes = fields.get_or<std::int64_t>("memory_limit_bytes", 0);
  job.threads = fields.get_or<std::int64_t>("threads", 0);
  job.result_path = fields.get<std::string>("result_path");
  job.trace_path = fields.get_or<std::string>("trace_path", "");
  job.write_parameters_path = fields.get_or<std::string>("write_parameters_path", "");
  job.read_parameters_path = fields.get_or<std::string>("read_parameters_path", "");
  job.promise = read_equivalence(fields.child("promise"));
  return job;
}

json to_json(const WorkerResult& result) {
  return {{"status", to_string(result.status)},
          {"reason", result.reason},
          {"memory", json(optional_to_json(result.memory))},
          {"throughput", json(optional_to_json(result.throughput))},
          {"equivalence", json(optional_to_json(result.equivalence))},
          {"out_of_memory", json(optional_to_json(result.out_of_memory))},
          {"emulation", json(optional_to_json(result.emulation))},
          {"losses", losses_to_json(result.losses)},
          {"settings", result.settings},
          {"environment", result.environment}};
}

WorkerResult worker_result_from_json(const json& object) {
  const Fields fields(object);
  WorkerResult result;
  result.status = read_status(fields, "status");
  result.reason = fields.get_or<std::string>("reason", "");
  result.memory = read_optional(fields, "memory", read_memory);
  result.throughput = read_optional(fields, "throughput", read_throughput);
  result.equivalence = read_optional(fields, "equivalence", read_equivalence);
  result.out_of_memory = read_optional(fields, "out_of_memory", read_out_of_memory);
  result.emulation = read_optional(fields, "emulation", read_emulation);
  result.losses = read_losses(fields);
  result.settings = fields.get_or<json>("settings", json::object());
  result.environment = fields.get_or<json>("environment", json::object());
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

}  // namespace peakbench::result
