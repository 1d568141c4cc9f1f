#include "result/case_json.h"

namespace peakbench::result {
namespace {

using nlohmann::ordered_json;

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

}  // namespace peakbench::result
