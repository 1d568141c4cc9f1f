#include "programs/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/printable.h"
#include "emulator/host/card.h"
#include "emulator/host/installation.h"
#include "programs/history.h"
#include "programs/snapshot.h"
#include "trace/lines.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;

RankFiles files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& name : files::Folder(folder).names()) {
    const auto ending = fs::path(name).extension();
    if (ending == ".pickle" || ending == ".pkl") names.push_back(name);
  }
  if (names.empty())
    throw ConfigError(
        fmt::format("{}: holds no snapshot; expected files *.pickle or *.pkl, one a "
                    "rank, as torch.cuda.memory._dump_snapshot writes them",
                    folder));
  try {
    return ranks_of(std::move(names));
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("{}: {}", folder, error.what()));
  }
}

}  // namespace

RankFiles snapshot_files(const std::string& path) {
  if (files::is_folder(path)) return files_in(path);
  if (!files::is_there(path)) throw ConfigError(fmt::format("{}: there is no such file", path));
  return {.files = {{0, path}}, .is_sure = true};
}

namespace {

History history_in(const std::string& path) {
  try {
    return history_of(read_snapshot(path));
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("{}: {}", path, error.what()));
  }
}

// The program's own file that most stacks begin in; empty where there is none.
std::string script_of(const trace::Trace& trace) {
  std::vector<std::int32_t> outermost(trace.frames.size(), trace::kNone);
  for (std::size_t i = 0; i < trace.frames.size(); ++i) {
    const auto& frame = trace.frames[i];
    if (frame.parent != trace::kNone)
      outermost[i] = outermost[static_cast<std::size_t>(frame.parent)];
    const auto& file = trace.files[static_cast<std::size_t>(frame.file)];
    if (outermost[i] == trace::kNone && !trace::is_library_file(file)) outermost[i] = frame.file;
  }
  std::map<std::int32_t, std::int64_t> counts;
  for (const auto& event : trace.events)
    if (event.kind == trace::EventKind::kAlloc && event.stack != trace::kNone)
      if (const auto file = outermost[static_cast<std::size_t>(event.stack)]; file != trace::kNone)
        ++counts[file];
  const auto most = std::ranges::max_element(counts, {}, [](auto& one) { return one.second; });
  return most == counts.end()
             ? ""
             : fs::path(trace.files[static_cast<std::size_t>(most->first)]).filename().string();
}

const char* phases_text(PhaseSource source) {
  switch (source) {
    case PhaseSource::kStacks:
      return "inferred from stacks and PyTorch's annotations";
    case PhaseSource::kAnnotations:
      return "of PyTorch's annotations: steps and optimizer_step; all else counts as build, as no "
             "stack shows a forward or backward";
    case PhaseSource::kNone:
      break;
  }
  return "not recorded: all counts as build";
}

// What a reader of the figures must know.
void add_settings(const std::vector<History>& histories, ProgramRun& run) {
  auto& settings = run.settings;
  std::int64_t earlier = 0, bytes = 0, lost = 0, above = 0;
  for (const auto& one : histories) {
    earlier += one.earlier;
    bytes += one.earlier_bytes;
    lost += one.lost_frees;
    above = std::max(above, one.above_reserved);
  }
  settings["recorded_by"] = "PyTorch itself (torch.cuda.memory._dump_snapshot)";
  const auto phases = std::ranges::max(histories, {}, &History::phases).phases;
  settings["categories"] =
      phases == PhaseSource::kStacks
          ? "inferred from stacks, lifetimes and annotations, as a snapshot names no tensors: "
            "what could not be told is kept (alive at the end, or when a later step began) or "
            "temporary (freed)"
          : "inferred from lifetimes, as no stack shows a forward or backward: what could not be "
            "told is kept (alive at the end, or when a later step began) or temporary (freed)";
  settings["phases"] = phases_text(phases);
  if (std::ranges::all_of(histories, &History::has_state_only))
    settings["history"] =
        "none: _record_memory_history was not on, or with enabled=\"state\", so this is what was "
        "allocated at the dump; the peak may have been higher";
  else if (earlier > 0)
    settings["from_before"] = fmt::format(
        "{} allocations of {} bytes were made before the recording began, or their entries fell "
        "out of its history (max_entries): the peak may have been earlier, and the block of one "
        "that was freed is taken to be what was asked for, rounded up",
        earlier, bytes);
  if (lost > 0)
    settings["lost"] = fmt::format(
        "the frees of {} allocations are not in the snapshot (skip_actions, or a "
        "history that was cut), so the peak may have been lower",
        lost);
  if (above > 0)
    settings["above_reserved"] = fmt::format(
        "{} bytes more are allocated than reserved: some entries are not in the snapshot "
        "(skip_actions, or a history that was cut), so both peaks are uncertain",
        above);
}

// Which file is which rank's.
void add_names(const RankFiles& files, nlohmann::json& settings) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t i = 0; i < files.files.size() && i < kMost; ++i) {
    const auto& file = files.files[i];
    text += fmt::format("{}rank {} is {}", i == 0 ? "" : ", ", file.rank, printable(file.name));
  }
  if (files.files.size() > kMost) text += fmt::format(" and {} more", files.files.size() - kMost);
  if (!files.is_sure)
    text = "taken from the names, which do not all say `rank` and a number of their own: " + text;
  if (!files.earlier.empty())
    text += fmt::format("; {} of earlier steps are left out", files.earlier.size());
  settings["ranks"] = text;
}

void add_outcome(const std::vector<History>& histories, ProgramRun& run) {
  for (const auto& one : histories) {
    if (!one.out_of_memory) continue;
    run.status = records::Status::kOutOfMemory;
    run.out_of_memory = one.out_of_memory;
    run.reason = fmt::format(
        "memory ran out before the snapshot was made: {} bytes were asked for, {} were allocated",
        one.out_of_memory->requested_bytes, one.out_of_memory->allocated_bytes);
    return;
  }
}

// Events of an emulated card are numbered: its times are the host's.
void take_card(const std::string& card, ProgramRun& run) {
  run.device = "emulated:" + card;
  run.emulation.emplace().card =
      emulator::parse_card(card, emulator::find_installation()).facts.name;
  for (auto& process : run.processes) {
    process.trace.device = run.device;
    process.trace.emulated = true;
    for (auto& event : process.trace.events) event.time_ns = -1;
  }
}

}  // namespace

ProgramRun import_snapshots(const std::string& path, const RankFiles& files,
                            const std::string& name, const std::string& card) {
  ProgramRun run;
  std::vector<History> histories;
  std::string script;
  const bool is_folder = files::is_folder(path);
  for (const auto& file : files.files) {
    auto history = history_in(is_folder ? (fs::path(path) / file.name).string() : file.name);
    if (script.empty()) script = script_of(history.trace);
    if (run.device.empty()) run.device = history.trace.device;
    run.processes.push_back({file.rank, std::move(history.trace)});
    histories.push_back(std::move(history));
  }
  run.name = !name.empty() ? name : script;
  if (run.name.empty())
    run.name = fs::path(path).lexically_normal().filename().replace_extension().string();
  if (!card.empty()) take_card(card, run);
  add_settings(histories, run);
  if (files.files.size() + files.earlier.size() > 1) add_names(files, run.settings);
  add_outcome(histories, run);
  return run;
}

}  // namespace peakbench::programs
