#include "program/emulated_json.h"

#include <fmt/format.h>

#include <limits>

#include "errors/errors.h"
#include "files/file.h"
#include "json/fields.h"
#include "plan/case_id.h"
#include "program/run_folder.h"
#include "program/traced.h"
#include "result/case_json.h"
#include "result/device.h"

namespace peakbench::program {
namespace {

using result::CaseResult;
using result::Status;

bool is_of_emulate(const nlohmann::json& json) {
  return json.is_object() && json.contains("emulated") && json.contains("processes") &&
         json.contains("verdict") && !json.contains("schema_version");
}

// Of the process with the most allocated.
std::optional<result::Memory> memory_in(const Fields& fields) {
  std::optional<result::Memory> most;
  fields.each("processes", [&](const Fields& process) {
    process.each("devices", [&](const Fields& device) {
      const auto allocated = device.maybe("peak_allocated_bytes", kMeasured);
      if (!allocated || (most && most->peak_allocated_bytes >= *allocated)) return;
      auto& memory = most.emplace();
      memory.space = fmt::format("cuda:{}", device.get_or("index", std::int64_t{0}, kMeasured));
      memory.peak_allocated_bytes = *allocated;
      memory.peak_reserved_bytes = device.maybe("peak_reserved_bytes", kMeasured);
    });
  });
  return most;
}

// What fills the peak, where that is the memory's own.
std::optional<Fields> peak_in(const Fields& fields, const std::optional<result::Memory>& memory) {
  auto peak = fields.maybe_child("peak");
  if (!peak || !memory ||
      peak->get<std::int64_t>("peak_allocated_bytes", kMeasured) != memory->peak_allocated_bytes)
    return std::nullopt;
  return peak;
}

void add_peak(const Fields& peak, result::Memory& memory) {
  memory.peak_phase = peak.get<std::string>("peak_phase");
  memory.peak_step = peak.get<std::int64_t>("peak_step", kMeasured);
  const auto parts = peak.child("at_peak");
  for (const auto& category : parts.keys())
    memory.at_peak[category] = parts.get<std::int64_t>(category, kMeasured);
}

constexpr Range<std::int64_t> kLineNumber{0, std::numeric_limits<std::int32_t>::max()};

std::vector<trace::LineShare> lines_in(const Fields& peak) {
  std::vector<trace::LineShare> lines;
  peak.each("lines", [&](const Fields& fields) {
    auto& one = lines.emplace_back();
    one.line.file = fields.maybe<std::string>("file").value_or("");
    one.line.function = fields.get_or<std::string>("function", "");
    one.line.line = static_cast<std::int32_t>(fields.get_or("line", std::int64_t{0}, kLineNumber));
    one.bytes = fields.get<std::int64_t>("bytes", kMeasured);
  });
  return lines;
}

void read_end(const Fields& fields, CaseResult& found) {
  const auto answer = fields.child("answer");
  const auto code = fields.get<std::int64_t>("exit_code");
  if (code == 0) return;
  const bool ran_out = answer.maybe_child("out_of_memory").has_value();
  found.status = ran_out ? Status::kOutOfMemory : Status::kCrashed;
  found.reason = ran_out ? answer.get<std::string>("sentence")
                         : fmt::format("the program ended with exit code {}", code);
}

CaseResult case_in(const Fields& fields) {
  const auto command = fields.get<std::vector<std::string>>("command");
  const auto name = fields.maybe<std::string>("name");
  CaseResult found;
  found.spec = spec_of_program(
      name.value_or(name_of(command)),
      result::device_from(result::emulated_device(fields.get<std::string>("card"))).id);
  read_end(fields, found);
  found.memory = memory_in(fields);
  found.throughput_reason = facts_of(found.spec.kind).no_times;
  auto& emulation = found.emulation.emplace();
  emulation.card = fields.get<std::string>("card");
  emulation.verdict = result::read_verdict(fields.child("verdict"));
  if (const auto torch = fields.maybe_child("torch"))
    found.environment["libtorch"] = torch->get<std::string>("version");
  return found;
}

}  // namespace

std::optional<EmulatedFile> read_emulated_json(const std::string& path) {
  if (!files::is_there(path) || files::is_folder(path)) return std::nullopt;
  nlohmann::json json;
  try {
    json = files::read_json_file(path);
  } catch (const RunFileError&) {  // whoever reads runs says what is wrong with it
    return std::nullopt;
  }
  if (!is_of_emulate(json)) return std::nullopt;
  try {
    const Fields fields(json);
    EmulatedFile file;
    auto& run = file.run;
    run.cases.push_back(case_in(fields));
    auto& memory = run.cases.front().memory;
    if (const auto peak = peak_in(fields, memory)) {
      add_peak(*peak, *memory);
      file.lines = lines_in(*peak);
    }
    run.title = run.cases.front().spec.model.id;
    run.command = fields.get<std::vector<std::string>>("command");
    run.environment = run.cases.front().environment;
    run.status = "complete";
    return file;
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace peakbench::program
