#include "reports/analysis/environment.h"

#include <fmt/format.h>

#include "result/device.h"

namespace peakbench::reports {

using nlohmann::json;

std::string fact_text(const json& object, const std::string& name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->dump(-1, ' ', false, json::error_handler_t::replace);
}

const json& device_facts(const result::CaseResult& result) {
  static const json none = json::object();
  return result.environment.is_object() ? result.environment : none;
}

std::string fact_of(const result::CaseResult& result, const result::Run& run,
                    const std::string& name) {
  const auto own = fact_text(result.environment, name);
  return own.empty() ? fact_text(run.environment, name) : own;
}

std::string real_card_of(const result::CaseResult& result, const result::Run& run) {
  // A run of schema 1.0 on real and emulated cards tells only the last one's.
  if (result::is_emulated(result) || fact_of(result, run, "emulated") == "true") return "";
  const auto name = fact_of(result, run, "card");
  const auto memory = fact_of(result, run, "card_memory_bytes");
  return memory.empty() ? name : fmt::format("{} ({} bytes)", name, memory);
}

std::string own_space(const result::CaseResult& result) {
  if (result.memory && !result.memory->space.empty()) return result.memory->space;
  return result::recorded_device(result.spec.device).space;
}

}  // namespace peakbench::reports
