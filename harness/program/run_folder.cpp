#include "program/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <set>
#include <stdexcept>
#include <string_view>

#include "errors/errors.h"
#include "files/folder.h"
#include "launch/host.h"
#include "launch/run_folder.h"
#include "plan/case_id.h"
#include "result/case_files.h"
#include "result/ranks.h"
#include "result/run.h"
#include "text/fnv1a.h"
#include "trace/lifetimes.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::program {
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
result::Rank write_process(const ProgramProcess& process, const result::CaseSpec& spec,
                           const fs::path& folder, std::string& problem) {
  result::Rank rank;
  rank.rank = process.rank;
  rank.trace =
      fmt::format("{}/{}", result::case_folder(spec.slug),
                  name_of(result::CaseFile::kTrace, static_cast<std::size_t>(process.rank)));
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

result::Run record_of(const ProgramRun& run, const result::CaseResult& found) {
  result::Run record;
  record.title = run.name + (run.part.empty() ? "" : " " + run.part);
  record.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  record.command = run.command;
  if (run.status == result::Status::kInterrupted) record.status = "interrupted";
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

result::CaseSpec spec_of_program(const std::string& name, const std::string& device) {
  result::CaseSpec spec;
  spec.kind = result::CaseKind::kProgram;
  spec.model.id = safe_name(name);
  spec.device = device;
  spec.batch_size = result::kUnknownBatch;
  spec.id = plan::case_id(spec);
  spec.slug = plan::slug(spec.id);
  return spec;
}

void check_folder(const fs::path& folder, Folder there) {
  check(launch::RunFolder(folder.string()), there);
}

result::CaseResult write_case(const ProgramRun& run, const result::CaseSpec& spec,
                              const fs::path& folder) {
  result::CaseResult found;
  found.spec = spec;
  found.status = run.status;
  found.reason = run.reason;
  found.throughput_reason = facts_of(found.spec.kind).no_times;
  found.out_of_memory = run.out_of_memory;
  found.emulation = run.emulation;
  found.environment = run.environment;
  const auto processes = by_rank(run);
  files::Folder(folder.string()).made(result::kCasesFolder).made(found.spec.slug);
  std::string problem;
  for (const auto* process : processes)
    found.ranks.push_back(write_process(*process, found.spec, folder, problem));
  found.memory = headline_rank(found).memory;
  if (problem.empty()) return found;
  found.reason += (found.reason.empty() ? "" : "; ") + problem;
  if (found.status == result::Status::kOk) found.status = result::Status::kCrashed;
  return found;
}

result::CaseResult write_program_run(const ProgramRun& run, const fs::path& folder, Folder there) {
  const launch::RunFolder held(folder.string());
  check(held, there);
  if (held.holds_run()) held.clear();
  const auto found = write_case(
      run, spec_of_program(run.name + (run.part.empty() ? "" : "-" + run.part), run.device),
      folder);
  result::write_run(record_of(run, found), folder.string());
  return found;
}

}  // namespace peakbench::program
