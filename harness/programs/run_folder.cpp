#include "programs/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/fnv1a.h"
#include "base/folder.h"
#include "launch/machine.h"
#include "launch/run_folder.h"
#include "planning/selection.h"
#include "programs/traced.h"
#include "records/case_json.h"
#include "records/device.h"
#include "records/run_files.h"
#include "trace/lifetimes.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;

std::vector<const ProgramProcess*> by_rank(const ProgramRun& run) {
  std::vector<const ProgramProcess*> processes;
  std::set<std::int64_t> ranks;
  for (const auto& process : run.processes) {
    if (process.rank < 0 || !ranks.insert(process.rank).second)
      throw std::invalid_argument(fmt::format("two processes of rank {}", process.rank));
    processes.push_back(&process);
  }
  std::ranges::sort(processes, {}, &ProgramProcess::rank);
  return processes;
}

// Derived once, for the file and the figures.
records::Rank write_process(const ProgramProcess& process, const records::CaseSpec& spec,
                            const fs::path& folder, std::string& problem) {
  records::Rank rank;
  rank.rank = process.rank;
  rank.nccl_calls = process.nccl_calls;
  rank.trace =
      fmt::format("{}/{}", records::case_folder(spec.slug),
                  name_of(records::CaseFile::kTrace, static_cast<std::size_t>(process.rank)));
  const auto path = (folder / rank.trace).string();
  try {
    const auto lifetimes = trace::lifetimes(process.trace);
    rank.memory = trace::summarise(process.trace, lifetimes);
    // Of a peak outside of steps, which run.json counts from 0.
    rank.memory->peak_step = std::max<std::int64_t>(rank.memory->peak_step, 0);
    trace::write_trace(process.trace, lifetimes, path);
  } catch (const TraceError& error) {
    problem = fmt::format("of rank {} there are no figures: {}", process.rank, error.what());
    trace::write_trace(process.trace, path);
  }
  return rank;
}

records::Run record_of(const ProgramRun& run, const records::CaseResult& found) {
  records::Run record;
  record.title = run.name + (run.part.empty() ? "" : " " + run.part);
  record.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  record.command = run.command;
  if (run.status == records::Status::kInterrupted) record.status = "interrupted";
  record.environment = {{"peakbench", launch::peakbench_version()},
                        {"commit", launch::peakbench_commit()}};
  record.settings = run.settings;
  record.cases.push_back(found);
  return record;
}

void check(const launch::RunFolder& folder, Folder there) {
  folder.refuse_links();
  if (!folder.holds_run()) return folder.refuse_strangers();
  if (there == Folder::kNew)
    throw ConfigError(fmt::format(
        "{} holds a run already. Choose another folder, or delete that run with --overwrite.",
        folder.path()));
}

}  // namespace

std::string safe_name(const std::string& name) {
  constexpr std::size_t kLongest = 60;
  constexpr std::string_view kSafe = "._+=-";
  std::string safe;
  const auto stays = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kSafe.find(c) != std::string_view::npos;
  };
  for (const char c : name.substr(0, kLongest)) safe += stays(c) ? c : '-';
  const auto first = safe.find_first_not_of(kSafe);  // no option, no hidden file
  safe = first == std::string::npos ? "program" : safe.substr(first);
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80U; };
  if (name.size() <= kLongest && std::ranges::all_of(name, is_ascii)) return safe;
  // Of two names of which the same is left, each stays one of its own.
  return fmt::format("{}-{:08x}", safe.substr(0, kLongest - 9), fnv1a_32(name));
}

namespace {

// The case of a program that was run by itself.
records::CaseSpec spec_of_program(const std::string& name, const std::string& device) {
  records::CaseSpec spec;
  spec.kind = records::CaseKind::kProgram;
  spec.model.id = safe_name(name);
  spec.device = device;
  spec.batch_size = records::kUnknownBatch;
  spec.id = planning::case_id(spec);
  spec.slug = planning::slug(spec.id);
  return spec;
}

}  // namespace

void check_folder(const fs::path& folder, Folder there) {
  check(launch::RunFolder(folder.string()), there);
}

records::CaseResult write_case(const ProgramRun& run, const records::CaseSpec& spec,
                               const fs::path& folder) {
  records::CaseResult found;
  found.spec = spec;
  found.status = run.status;
  found.reason = run.reason;
  found.throughput_reason = facts_of(found.spec.kind).no_times;
  found.out_of_memory = run.out_of_memory;
  found.emulation = run.emulation;
  found.environment = run.environment;
  const auto processes = by_rank(run);
  files::Folder(folder.string()).made(records::kCasesFolder).made(found.spec.slug);
  std::string problem;
  for (const auto* process : processes)
    found.ranks.push_back(write_process(*process, found.spec, folder, problem));
  found.memory = headline_rank(found).memory;
  if (problem.empty()) return found;
  found.reason += (found.reason.empty() ? "" : "; ") + problem;
  if (found.status == records::Status::kOk) found.status = records::Status::kCrashed;
  return found;
}

records::CaseResult write_program_run(const ProgramRun& run, const fs::path& folder, Folder there) {
  const launch::RunFolder held(folder.string());
  check(held, there);
  if (held.holds_run()) held.clear();
  const auto found = write_case(
      run, spec_of_program(run.name + (run.part.empty() ? "" : "-" + run.part), run.device),
      folder);
  records::write_run(record_of(run, found), folder.string());
  return found;
}

namespace {

using records::CaseResult;
using records::Status;

bool is_of_emulate(const nlohmann::json& json) {
  return json.is_object() && json.contains("emulated") && json.contains("processes") &&
         json.contains("verdict") && !json.contains("schema_version");
}

// Of the process with the most allocated.
std::optional<records::Memory> memory_in(const Fields& fields) {
  std::optional<records::Memory> most;
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
std::optional<Fields> peak_in(const Fields& fields, const std::optional<records::Memory>& memory) {
  auto peak = fields.maybe_child("peak");
  if (!peak || !memory ||
      peak->get<std::int64_t>("peak_allocated_bytes", kMeasured) != memory->peak_allocated_bytes)
    return std::nullopt;
  return peak;
}

void add_peak(const Fields& peak, records::Memory& memory) {
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
      records::device_from(records::emulated_device(fields.get<std::string>("card"))).id);
  read_end(fields, found);
  found.memory = memory_in(fields);
  found.throughput_reason = facts_of(found.spec.kind).no_times;
  auto& emulation = found.emulation.emplace();
  emulation.card = fields.get<std::string>("card");
  emulation.verdict = records::read_verdict(fields.child("verdict"));
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

}  // namespace peakbench::programs
