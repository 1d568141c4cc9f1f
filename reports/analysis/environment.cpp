#include "reports/analysis/environment.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "records/device.h"

namespace peakbench::reports {

using nlohmann::json;

std::string fact_text(const json& object, const std::string& name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  return json_line(*found);
}

const json& device_facts(const records::CaseResult& result) {
  static const json none = json::object();
  return result.environment.is_object() ? result.environment : none;
}

std::string fact_of(const records::CaseResult& result, const records::Run& run,
                    const std::string& name) {
  const auto own = fact_text(result.environment, name);
  return own.empty() ? fact_text(run.environment, name) : own;
}

std::string real_card_of(const records::CaseResult& result, const records::Run& run) {
  // A run of schema 1.0 on real and emulated cards tells only the last one's.
  if (records::is_emulated(result) || fact_of(result, run, "emulated") == "true") return "";
  const auto name = fact_of(result, run, "card");
  const auto memory = fact_of(result, run, "card_memory_bytes");
  return memory.empty() ? name : fmt::format("{} ({} bytes)", name, memory);
}

std::string own_space(const records::CaseResult& result) {
  if (result.memory && !result.memory->space.empty()) return result.memory->space;
  return records::recorded_device(result.spec.device).space;
}

}  // namespace peakbench::reports

namespace peakbench::analysis {
namespace {

using records::Run;
using reports::fact_text;

// Of the cases, those on real cards first: an emulated card's driver is made up.
std::string fact_of_cases(const Run& run, const char* name) {
  for (const bool emulated : {false, true})
    for (const auto& result : run.cases)
      if (records::is_emulated(result) == emulated)
        if (const auto text = fact_text(result.environment, name); !text.empty()) return text;
  return fact_text(run.environment, name);
}

// A real card's own driver is recorded with its times. The other counts as cudaDriverGetVersion
// does: 13000 is CUDA 13.0.
std::string driver_of(const Run& run) {
  for (const auto& result : run.cases) {
    const auto found = result.settings.find("driver_version");
    if (found != result.settings.end() && found->is_string()) return found->get<std::string>();
  }
  const auto text = fact_of_cases(run, "driver_cuda_version");
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return fact_of_cases(run, "driver");
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

std::int64_t steps_of(const Run& run) {
  const auto found = run.settings.find("steps");
  return found != run.settings.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

void note(std::string& text, const char* what, const std::string& before, const std::string& now) {
  if (before == now) return;
  const auto named = [](const std::string& value) { return value.empty() ? "unknown" : value; };
  text += fmt::format("{}{} {} → {}", text.empty() ? "" : "; ", what, named(before), named(now));
}

template <typename Value>
void forget_unless_both(Value& before, Value& now) {
  if (before == Value{} || now == Value{}) before = now = Value{};
}

}  // namespace

Conditions conditions_of(const Run& run) {
  return {fact_text(run.environment, "libtorch"),
          fact_text(run.environment, "libtorch_git_version"),
          fact_text(run.environment, "libtorch_cuda"), driver_of(run), steps_of(run)};
}

std::string difference(const Conditions& before, const Conditions& now) {
  std::string text;
  note(text, "LibTorch", before.libtorch, now.libtorch);
  if (before.libtorch == now.libtorch)
    note(text, "LibTorch's revision", before.libtorch_git_version.substr(0, 12),
         now.libtorch_git_version.substr(0, 12));
  note(text, "LibTorch's CUDA", before.libtorch_cuda, now.libtorch_cuda);
  note(text, "driver", before.driver, now.driver);
  note(text, "steps", std::to_string(before.steps), std::to_string(now.steps));
  return text;
}

std::string known_difference(Conditions before, Conditions now) {
  forget_unless_both(before.libtorch, now.libtorch);
  forget_unless_both(before.libtorch_git_version, now.libtorch_git_version);
  forget_unless_both(before.libtorch_cuda, now.libtorch_cuda);
  forget_unless_both(before.driver, now.driver);
  forget_unless_both(before.steps, now.steps);
  return difference(before, now);
}

}  // namespace peakbench::analysis
