#include "program/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "errors/errors.h"
#include "files/file.h"
#include "files/folder.h"
#include "program/history.h"
#include "program/snapshot.h"
#include "trace/lines.h"

namespace peakbench::program {
namespace {

namespace fs = std::filesystem;

struct RankFile {
  std::int64_t rank = 0;
  std::string path;
};

// The last number of a file's name; -1 where there is none.
std::int64_t last_number(std::string_view stem) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::find_if(stem.rbegin(), stem.rend(), is_digit).base();
  const auto begin =
      std::find_if_not(std::make_reverse_iterator(end), stem.rend(), is_digit).base();
  std::int64_t number = -1;
  std::from_chars(&*begin, &*begin + (end - begin), number);
  return begin == end ? -1 : number;
}

std::vector<RankFile> files_in(const std::string& folder) {
  std::vector<RankFile> found;
  std::set<std::int64_t> numbers;
  auto names = files::Folder(folder).names();
  std::ranges::sort(names);
  for (const auto& name : names) {
    const fs::path path(name);
    if (path.extension() != ".pickle" && path.extension() != ".pkl") continue;
    const auto number = last_number(path.stem().string());
    if (number >= 0) numbers.insert(number);
    found.push_back({number, (fs::path(folder) / name).string()});
  }
  if (found.empty())
    throw ConfigError(
        fmt::format("{}: holds no snapshot; expected files *.pickle or *.pkl, one a "
                    "rank, as torch.cuda.memory._dump_snapshot writes them",
                    folder));
  constexpr std::int64_t kMostRanks = 1'000'000;
  if (numbers.size() != found.size() || *numbers.rbegin() > kMostRanks)
    for (std::size_t i = 0; i < found.size(); ++i) found[i].rank = static_cast<std::int64_t>(i);
  std::ranges::sort(found, {}, &RankFile::rank);
  return found;
}

std::vector<RankFile> files_of(const std::string& path) {
  if (files::is_folder(path)) return files_in(path);
  if (!files::is_there(path)) throw ConfigError(fmt::format("{}: there is no such file", path));
  return {{0, path}};
}

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

// What a reader of the figures must know.
void add_settings(const std::vector<History>& histories, nlohmann::json& settings) {
  std::int64_t earlier = 0, bytes = 0, lost = 0, entries = 0;
  for (const auto& one : histories) {
    earlier += one.earlier;
    bytes += one.earlier_bytes;
    lost += one.lost_frees;
    entries += one.entries;
  }
  settings["recorded_by"] = "PyTorch itself (torch.cuda.memory._dump_snapshot)";
  settings["categories"] =
      "inferred from lifetimes alone: kept is what was alive at the end, temporary what was freed; "
      "which are parameters or activations, the snapshot does not say";
  settings["phases"] = "not recorded: all counts as build";
  if (entries == 0)
    settings["history"] =
        "none: _record_memory_history was not on, so this is what was allocated at the dump";
  if (earlier > 0)
    settings["from_before"] = fmt::format(
        "{} allocations of {} bytes were made before the recording began, or their entries fell "
        "out of its history (max_entries): the peak may have been earlier, and the block of one "
        "that was freed is taken to be what was asked for, rounded up",
        earlier, bytes);
  if (lost > 0)
    settings["lost"] = fmt::format("the frees of {} allocations are not in the snapshot", lost);
}

void add_outcome(const std::vector<History>& histories, ProgramRun& run) {
  for (const auto& one : histories) {
    if (!one.out_of_memory) continue;
    run.status = result::Status::kOutOfMemory;
    run.out_of_memory = one.out_of_memory;
    run.reason = fmt::format(
        "memory ran out before the snapshot was made: {} bytes were asked for, {} were allocated",
        one.out_of_memory->requested_bytes, one.out_of_memory->allocated_bytes);
    return;
  }
}

}  // namespace

ProgramRun import_snapshots(const std::string& path, const std::string& name) {
  ProgramRun run;
  std::vector<History> histories;
  std::string script;
  for (const auto& file : files_of(path)) {
    auto history = history_in(file.path);
    if (script.empty()) script = script_of(history.trace);
    if (run.device.empty()) run.device = history.trace.device;
    run.processes.push_back({file.rank, std::move(history.trace)});
    histories.push_back(std::move(history));
  }
  run.name = !name.empty() ? name : script;
  if (run.name.empty())
    run.name = fs::path(path).lexically_normal().filename().replace_extension().string();
  add_settings(histories, run.settings);
  add_outcome(histories, run);
  return run;
}

}  // namespace peakbench::program
