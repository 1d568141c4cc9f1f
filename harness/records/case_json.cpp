#include "records/case_json.h"

#include <stdexcept>

#include "records/axes.h"
#include "records/device.h"
#include "records/run_files.h"

namespace peakbench::records {

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

void read_worker_result(const Fields& fields, WorkerResult& result) {
  result.status = read_status(fields, "status");
  result.reason = fields.get_or<std::string>("reason", "");
  result.memory = read_optional(fields, "memory", read_memory);
  result.work = read_optional(fields, "work", read_step_work);
  result.throughput = read_optional(fields, "throughput", read_throughput);
  result.equivalence = read_optional(fields, "equivalence", read_equivalence);
  result.out_of_memory = read_optional(fields, "out_of_memory", read_out_of_memory);
  result.emulation = read_optional(fields, "emulation", read_emulation);
  result.losses = read_losses(fields);
  fields.each("ranks", [&](const Fields& item) { result.ranks.push_back(read_rank(item)); });
  result.settings = fields.get_or<json>("settings", json::object());
  result.environment = fields.get_or<json>("environment", json::object());
}

CaseResult read_case(const Fields& fields) {
  CaseResult result;
  result.spec = read_spec(fields);
  result.added_for = fields.get_or<std::string>("added_for", "");
  read_worker_result(fields, result);
  result.throughput_reason = fields.get_or<std::string>("throughput_reason", "");
  fields.each("plugins",
              [&](const Fields& item) { result.plugins.push_back(read_plugin_build(item)); });
  result.wall_ns = fields.get_or<std::int64_t>("wall_ns", 0, kMeasured);
  return result;
}

namespace {

PhaseMemory read_phase(const Fields& fields) {
  return {
      .peak_allocated_bytes = fields.get("peak_allocated_bytes", kMeasured),
      .peak_requested_bytes = fields.get_or<std::int64_t>("peak_requested_bytes", 0, kMeasured)};
}

SpaceMemory read_space(const Fields& fields) {
  return {.peak_allocated_bytes = fields.get("peak_allocated_bytes", kMeasured),
          .peak_requested_bytes = fields.get_or<std::int64_t>("peak_requested_bytes", 0, kMeasured),
          .peak_reserved_bytes = fields.maybe("peak_reserved_bytes", kMeasured)};
}

template <class T>
void read_named(const Fields& fields, const std::string& key, T (*read)(const Fields&),
                std::map<std::string, T>& named) {
  const auto parts = fields.maybe_child(key);
  if (!parts) return;
  for (const auto& [name, value] : fields.require(key).items()) {
    named.emplace(name, read(parts->child(name)));
  }
}

}  // namespace

ordered_json to_json(const Memory& memory) {
  ordered_json phases = ordered_json::object(), spaces = ordered_json::object();
  for (const auto& [name, phase] : memory.phases) {
    phases[name] = {{"peak_allocated_bytes", phase.peak_allocated_bytes},
                    {"peak_requested_bytes", phase.peak_requested_bytes}};
  }
  for (const auto& [name, space] : memory.spaces) {
    spaces[name] = {{"peak_allocated_bytes", space.peak_allocated_bytes},
                    {"peak_requested_bytes", space.peak_requested_bytes},
                    {"peak_reserved_bytes", optional_to_json(space.peak_reserved_bytes)}};
  }
  ordered_json json{{"space", memory.space},
                    {"peak_allocated_bytes", memory.peak_allocated_bytes},
                    {"peak_requested_bytes", memory.peak_requested_bytes},
                    {"peak_reserved_bytes", optional_to_json(memory.peak_reserved_bytes)},
                    {"at_peak", ordered_json(memory.at_peak)},
                    {"peak_phase", memory.peak_phase},
                    {"peak_step", memory.peak_step},
                    {"steps", memory.steps},
                    {"phases", std::move(phases)},
                    {"spaces", std::move(spaces)},
                    {"context_bytes", optional_to_json(memory.context_bytes)},
                    {"worker_peak_rss_bytes", memory.worker_peak_rss_bytes}};
  if (memory.least_memory_bytes) json["least_memory_bytes"] = *memory.least_memory_bytes;
  if (memory.replays_steps) json["replays_steps"] = true;
  if (memory.period)
    json["period"] = {{"strategy", memory.period->strategy}, {"steps", memory.period->steps}};
  return json;
}

Memory read_memory(const Fields& fields) {
  Memory memory;
  memory.space = fields.get_or<std::string>("space", "");
  memory.peak_allocated_bytes = fields.get("peak_allocated_bytes", kMeasured);
  memory.peak_requested_bytes = fields.get("peak_requested_bytes", kMeasured);
  memory.peak_reserved_bytes = fields.maybe("peak_reserved_bytes", kMeasured);
  memory.least_memory_bytes = fields.maybe("least_memory_bytes", kMeasured);
  if (const auto parts = fields.maybe_child("at_peak")) {
    for (const auto& category : parts->keys())
      memory.at_peak[category] = parts->get(category, kMeasured);
  }
  memory.peak_phase = fields.get_or<std::string>("peak_phase", "");
  memory.peak_step = fields.get_or<std::int64_t>("peak_step", 0, kMeasured);
  memory.steps = fields.get_or<std::int64_t>("steps", 0, kMeasured);
  read_named(fields, "phases", read_phase, memory.phases);
  read_named(fields, "spaces", read_space, memory.spaces);
  memory.context_bytes = fields.maybe("context_bytes", kMeasured);
  memory.worker_peak_rss_bytes = fields.get_or<std::int64_t>("worker_peak_rss_bytes", 0, kMeasured);
  memory.replays_steps = fields.get_or<bool>("replays_steps", false);
  if (const auto period = fields.maybe_child("period"))
    memory.period = {period->get<std::string>("strategy"),
                     period->get<std::int64_t>("steps", kMeasured)};
  return memory;
}

namespace {

using Counts = std::map<std::string, std::int64_t>;

// A step may take more of them than kMostMeasured.
constexpr Range<std::int64_t> kFlops{0, std::int64_t{1} << 60};
constexpr Range<std::int64_t> kPerSecond{1, std::int64_t{1} << 60};

// One list for both directions.
template <typename Work, typename Visit>
void visit_device(Work& device, Visit&& visit) {
  visit("kernel_launches", device.kernel_launches);
  visit("copies_to_device", device.copies_to_device);
  visit("copies_to_device_bytes", device.copies_to_device_bytes);
  visit("copies_to_host", device.copies_to_host);
  visit("copies_to_host_bytes", device.copies_to_host_bytes);
  visit("copies_in_device", device.copies_in_device);
  visit("copies_in_device_bytes", device.copies_in_device_bytes);
}

Counts read_counts(const Fields& fields, const std::string& key, const Range<std::int64_t>& range) {
  Counts counts;
  if (const auto parts = fields.maybe_child(key))
    for (const auto& name : parts->keys()) counts[name] = parts->get(name, range);
  return counts;
}

void append(ordered_json& json, const WorkCounts& counts) {
  json["operators"] = counts.operators;
  json["flops"] = counts.flops;
  json["recomputed_flops"] = counts.recomputed_flops;
  json["flops_by_precision"] = ordered_json(counts.flops_by_precision);
  json["read_bytes"] = counts.read_bytes;
  json["written_bytes"] = counts.written_bytes;
  if (counts.device)
    visit_device(*counts.device, [&](const char* key, std::int64_t value) { json[key] = value; });
}

WorkCounts read_work_counts(const Fields& fields) {
  WorkCounts counts{.operators = fields.get("operators", kMeasured),
                    .flops = fields.get("flops", kFlops),
                    .recomputed_flops = fields.get("recomputed_flops", kFlops),
                    .flops_by_precision = read_counts(fields, "flops_by_precision", kFlops),
                    .read_bytes = fields.get("read_bytes", kMeasured),
                    .written_bytes = fields.get("written_bytes", kMeasured),
                    .device = std::nullopt};
  if (!fields.find("kernel_launches")) return counts;
  visit_device(counts.device.emplace(),
               [&](const char* key, std::int64_t& value) { value = fields.get(key, kMeasured); });
  return counts;
}

ordered_json bound_json(const StepBound& bound) {
  return {{"least_step_ns", bound.least_step_ns},
          {"memory_bytes_per_second", bound.memory_bytes_per_second},
          {"flops_per_second", ordered_json(bound.flops_per_second)}};
}

StepBound read_bound(const Fields& fields) {
  return {.least_step_ns = fields.get("least_step_ns", kMeasured),
          .memory_bytes_per_second = fields.get("memory_bytes_per_second", kPerSecond),
          .flops_per_second = read_counts(fields, "flops_per_second", kPerSecond)};
}

}  // namespace

ordered_json to_json(const StepWork& work) {
  ordered_json json{{"step", work.step}};
  append(json, work.total);
  json["phases"] = ordered_json::object();
  for (const auto& [name, counts] : work.phases) append(json["phases"][name], counts);
  json["without_formula"] = ordered_json(work.without_formula);
  json["bound"] = work.bound ? bound_json(*work.bound) : ordered_json(nullptr);
  return json;
}

StepWork read_step_work(const Fields& fields) {
  StepWork work;
  work.step = fields.get("step", kMeasured);
  work.total = read_work_counts(fields);
  if (const auto phases = fields.maybe_child("phases"))
    for (const auto& name : phases->keys())
      work.phases.emplace(name, read_work_counts(phases->child(name)));
  work.without_formula = read_counts(fields, "without_formula", kMeasured);
  work.bound = read_optional(fields, "bound", read_bound);
  return work;
}

}  // namespace peakbench::records
