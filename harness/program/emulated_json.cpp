#include "program/emulated_json.h"

#include <fmt/format.h>

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
  CaseResult found;
  found.spec = spec_of_program(
      name_of(command),
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

std::optional<result::Run> read_emulated_json(const std::string& path) {
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
    result::Run run;
    run.cases.push_back(case_in(fields));
    run.title = run.cases.front().spec.model.id;
    run.command = fields.get<std::vector<std::string>>("command");
    run.environment = run.cases.front().environment;
    run.status = "complete";
    return run;
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace peakbench::program
