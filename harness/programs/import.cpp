#include "programs/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "emulator/host/card.h"
#include "emulator/host/installation.h"
#include "programs/history.h"
#include "programs/snapshot.h"
#include "trace/lines.h"

namespace peakbench::programs {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
using Ranks = std::vector<std::int64_t>;  // of the names, in their order

// "rank12_step6": {"rank", "_step", ""} and {12, 6}.
struct Parts {
  std::vector<std::string> texts;
  std::vector<std::int64_t> numbers;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Parts parts_of(std::string_view stem) {
  Parts parts;
  while (true) {
    const auto digits = std::ranges::find_if(stem, is_digit);
    parts.texts.push_back(lower({stem.begin(), digits}));
    if (digits == stem.end()) return parts;
    const auto end = std::find_if_not(digits, stem.end(), is_digit);
    std::int64_t number = kMostRanks;  // of more digits than 64 bits hold
    std::from_chars(&*digits, &*digits + (end - digits), number);
    parts.numbers.push_back(number);
    stem = stem.substr(static_cast<std::size_t>(end - stem.begin()));
  }
}

// Whether a number follows the word: rank3, rank_3, rank-3, rank=3.
bool says(std::string text, std::string_view word) {
  while (!text.empty() && std::string_view("_-=. ").find(text.back()) != std::string_view::npos)
    text.pop_back();
  return text.ends_with(word);
}

std::optional<std::int64_t> number_behind_rank(const Parts& parts, bool local) {
  for (std::size_t i = 0; i < parts.numbers.size(); ++i) {
    const bool is_local = says(parts.texts[i], "local_rank") || says(parts.texts[i], "localrank");
    if (is_local == local && says(parts.texts[i], "rank")) return parts.numbers[i];
  }
  return std::nullopt;
}

bool are_ranks(const Ranks& ranks, std::size_t count) {
  return ranks.size() == count && std::set(ranks.begin(), ranks.end()).size() == count &&
         std::ranges::max(ranks) < kMostRanks;
}

std::optional<Ranks> said(const std::vector<Parts>& all) {
  for (const bool local : {false, true}) {
    Ranks ranks;
    for (const auto& parts : all)
      if (const auto number = number_behind_rank(parts, local)) ranks.push_back(*number);
    if (are_ranks(ranks, all.size())) return ranks;
  }
  return std::nullopt;
}

bool counts_something_else(const std::string& text) {
  constexpr std::array kOthers = {"step", "iter", "iteration", "epoch", "time", "rank"};
  return std::ranges::any_of(kOthers, [&](const char* word) { return says(text, word); });
}

// Names that are alike but for one number.
std::optional<Ranks> only_difference(const std::vector<Parts>& all) {
  const auto& texts = all.front().texts;
  const auto alike = [&](const Parts& parts) { return parts.texts == texts; };
  if (all.size() == 1 || !std::ranges::all_of(all, alike)) return std::nullopt;
  std::optional<Ranks> found;
  for (std::size_t i = 0; i < all.front().numbers.size(); ++i) {
    Ranks ranks;
    for (const auto& parts : all) ranks.push_back(parts.numbers[i]);
    if (std::ranges::count(ranks, ranks.front()) == std::ssize(ranks)) continue;
    if (found || counts_something_else(texts[i]) || !are_ranks(ranks, all.size()))
      return std::nullopt;
    found = std::move(ranks);
  }
  return found;
}

}  // namespace

RankFiles ranks_of(std::vector<std::string> names) {
  std::vector<std::pair<Parts, std::string>> sorted;
  for (auto& name : names)
    sorted.emplace_back(parts_of(std::filesystem::path(name).stem().string()), std::move(name));
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return std::tie(a.first.texts, a.first.numbers, a.second) <
           std::tie(b.first.texts, b.first.numbers, b.second);
  });
  std::vector<Parts> all;
  for (const auto& [parts, name] : sorted) all.push_back(parts);
  RankFiles found;
  auto ranks = said(all);
  found.is_sure = ranks.has_value();
  if (!ranks) ranks = only_difference(all);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    found.files.push_back(
        {ranks ? (*ranks)[i] : static_cast<std::int64_t>(i), std::move(sorted[i].second)});
  std::ranges::sort(found.files, {}, &RankFile::rank);
  return found;
}

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
  auto found = ranks_of(std::move(names));
  for (auto& file : found.files) file.name = (fs::path(folder) / file.name).string();
  return found;
}

RankFiles files_of(const std::string& path) {
  if (files::is_folder(path)) return files_in(path);
  if (!files::is_there(path)) throw ConfigError(fmt::format("{}: there is no such file", path));
  return {{{0, path}}, true};
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

// Where names leave it open whose is which.
void add_names(const RankFiles& files, nlohmann::json& settings) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t i = 0; i < files.files.size() && i < kMost; ++i)
    text += fmt::format("{}rank {} is {}", i == 0 ? "" : ", ", files.files[i].rank,
                        printable(fs::path(files.files[i].name).filename().string()));
  if (files.files.size() > kMost) text += fmt::format(" and {} more", files.files.size() - kMost);
  settings["ranks"] =
      "taken from the names, which do not all say `rank` and a number of their own: " + text;
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

ProgramRun import_snapshots(const std::string& path, const std::string& name,
                            const std::string& card) {
  ProgramRun run;
  std::vector<History> histories;
  std::string script;
  const auto files = files_of(path);
  for (const auto& file : files.files) {
    auto history = history_in(file.name);
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
  if (!files.is_sure && files.files.size() > 1) add_names(files, run.settings);
  add_outcome(histories, run);
  return run;
}

}  // namespace peakbench::programs
