#include "result/case_json.h"

namespace peakbench::result {
namespace {

using nlohmann::ordered_json;
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

}  // namespace peakbench::result
