#include "verdict/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "core/ledger_json.h"
#include "verdict/judge.h"

namespace peakbench::emulator {
namespace {

std::string where(const char* name, const char* place) {
  if (!name[0]) return "more source lines than the record can hold";
  return place[0] ? fmt::format("{} at {}", name, place) : name;
}

std::string where(const LedgerReadBack& row) {
  return where(row.operation[0] ? row.operation : row.function, row.place);
}

std::string where(const LedgerPlace& row) { return where(row.function, row.place); }

// "1 time", "2 times"
std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string what_was_read(ReadKind kind) {
  switch (kind) {
    case ReadKind::size:
      return "a size that rests on values that are not known";
    case ReadKind::finite:
      return "whether values are finite, which they are taken to be";
    case ReadKind::copy:
      return "values that are not known, onto the host as they are";
    case ReadKind::logged:
      return "integer values that are not known and, as its source shows, only logged";
    case ReadKind::storage:
      return "storages whose bytes are not known";
    case ReadKind::bytes:
      return "bytes that are not known";
    default:
      return fmt::format("{} values that are not known", word_of(kind));
  }
}

}  // namespace

std::vector<const LedgerReadBack*> unknown_reads(const Ledger& ledger) {
  std::vector<const LedgerReadBack*> reads;
  for (const LedgerReads& of_kind : ledger.reads)
    for_each_row(of_kind, [&](const LedgerReadBack& row) { reads.push_back(&row); });
  std::ranges::stable_sort(reads, {}, &LedgerReadBack::first);
  return reads;
}

std::string text_of(const LedgerReadBack& row) {
  return fmt::format("{} read {} ({})", where(row), what_was_read(row.kind),
                     counted(unknown_calls(row), "time"));
}

std::vector<std::string> timing_conditions(const Ledger& ledger) {
  std::vector<std::string> conditions;
  for_each_row(ledger.done_reads, [&](const LedgerPlace& row) {
    conditions.push_back(fmt::format(
        "{} read whether work is done that the host had not waited for ({}): when a card is done "
        "depends on how fast it is",
        where(row), counted(row.calls, "time")));
  });
  for_each_row(ledger.elapsed_reads, [&](const LedgerPlace& row) {
    conditions.push_back(fmt::format("{} read how long work took ({}): no emulated card has times",
                                     where(row), counted(row.calls, "time")));
  });
  for_each_row(ledger.profiles, [&](const LedgerPlace& row) {
    conditions.push_back(fmt::format(
        "{} profiled the card: no emulated card has times, so its device times are 0", where(row)));
  });
  return conditions;
}

namespace {

const char* when_done(Streams streams) {
  constexpr const char* kTexts[] = {"handed out again at once",
                                    "handed out again when the allocator asked for a second time",
                                    "held until the host waited"};
  return kTexts[static_cast<std::size_t>(streams)];
}

}  // namespace

std::string blocks_in_question(const Ledger& ledger, Streams streams) {
  if (!ledger.blocks_in_question) return "";
  return fmt::format(
      "blocks that another stream had used (record_stream) were {}: a card is done with them "
      "earlier or later, and later allocations then have other addresses",
      when_done(streams));
}

std::string pinned_in_question(const Ledger& ledger, Streams streams) {
  if (!ledger.pinned_in_question) return "";
  return fmt::format(
      "page-locked host memory that copies had used was {}: on a card the process may have {} of "
      "it (pinned); the card's memory does not depend on it",
      when_done(streams), streams == Streams::late ? "less" : "more");
}

namespace {

// aten::empty, which asked for 30.000 GiB after 12 kernel launches; aten::add, ...
std::string who_asked(const LedgerPlaces& places) {
  std::string text;
  for_each_row(places, [&](const LedgerPlace& row) {
    text += text.empty() ? "" : "; ";
    text += row.function[0] ? fmt::format("{} asked for {} after {} kernel launches", where(row),
                                          size_text(row.largest_bytes), row.kernel_launches)
                            : where(row);
  });
  return text;
}

std::string refusals(const Ledger& ledger, unsigned index) {
  const LedgerDevice& device = ledger.devices[index];
  const auto asked = who_asked(ledger.out_of_memory);
  const auto who = asked.empty() ? "" : fmt::format(" ({})", asked);
  if (!are_counts_known(ledger, device))
    return fmt::format("memory of cuda:{} was refused {}, and the program continued{}", index,
                       counted(device.refused_allocations, "time"), who);
  if (!device.out_of_memory_calls)
    return fmt::format(
        "memory of cuda:{} was refused {}, and PyTorch gave back what it kept{}: how much it "
        "reserves depends on what the CUDA context leaves",
        index, counted(device.refused_allocations, "time"), who);
  return fmt::format("cuda:{} ran out of memory {}, and the program continued{}", index,
                     counted(device.out_of_memory_calls, "time"), who);
}

}  // namespace

std::string free_memory_text(const LedgerPlace& row, std::uint64_t context_bytes) {
  const auto context = context_bytes
                           ? fmt::format("for which {} are set aside", size_text(context_bytes))
                           : std::string("which is in no figure");
  return fmt::format(
      "{} read how much memory is free ({}): a card has less by its CUDA context, {}", where(row),
      counted(row.calls, "time"), context);
}

std::vector<std::string> survived_refusals(const Ledger& ledger) {
  std::vector<std::string> sentences;
  for (unsigned i = 0; i < std::min<unsigned>(ledger.device_count, kLedgerDevices); ++i)
    if (ledger.devices[i].refused_allocations || ledger.devices[i].out_of_memory_calls)
      sentences.push_back(refusals(ledger, i));
  return sentences;
}

namespace {

std::uint64_t peak_of(const Ledger& ledger, std::uint32_t device,
                      const std::optional<std::uint64_t>& of_first) {
  if (device == 0 && of_first) return *of_first;
  return device < kLedgerDevices ? ledger.devices[device].peak_allocated_bytes : 0;
}

// Held while its call runs: what is allocated then and the workspace, together, against the peak.
std::uint64_t room_of(const LedgerWorkspace& row, std::uint64_t peak) {
  return peak > row.largest_allocated_bytes ? peak - row.largest_allocated_bytes : 0;
}

std::optional<std::uint64_t> room_of(const Ledger& ledger, const LedgerWorkspace& row,
                                     const std::optional<std::uint64_t>& of_first) {
  const auto peak = peak_of(ledger, row.device, of_first);
  if (row.uncounted_calls || peak == 0) return std::nullopt;
  return room_of(row, peak);
}

// The least room counts, and none where it is not known of one.
void add(MissingWorkspace& found, const LedgerWorkspace& row,
         const std::optional<std::uint64_t>& room) {
  const bool first = found.calls == 0;
  found.calls += row.calls;
  if (!room) {
    found.room_bytes.reset();
  } else if (first || (found.room_bytes && *room < *found.room_bytes)) {
    found.room_bytes = room;
    found.operation = row.operation;
  }
}

// Where nobody knows how much was allocated meanwhile, it is no better than a missing one.
bool is_in_range(const Ledger& ledger, const LedgerWorkspace& row,
                 const std::optional<std::uint64_t>& of_first) {
  const bool is_convolution =
      row.kind == Workspace::cudnn_measured || row.kind == Workspace::cudnn_estimated;
  return is_convolution && room_of(ledger, row, of_first).has_value();
}

}  // namespace

std::vector<MissingWorkspace> missing_workspaces(
    const Ledger& ledger, const std::optional<std::uint64_t>& peak_allocated_bytes) {
  std::vector<MissingWorkspace> list;
  for_each_row(ledger.workspaces, [&](const LedgerWorkspace& row) {
    if (is_in_range(ledger, row, peak_allocated_bytes)) return;
    const auto what = text_of(row);
    auto found = std::ranges::find(list, what, &MissingWorkspace::what);
    if (found == list.end()) {
      found = list.emplace(list.end());
      found->kind = row.kind;
      found->what = what;
    }
    add(*found, row, room_of(ledger, row, peak_allocated_bytes));
  });
  return list;
}

std::string text_of(const MissingWorkspace& workspace) {
  const auto calls = counted(workspace.calls, "call");
  constexpr const char* kWhat = "scratch memory whose size NVIDIA's library chooses";
  if (!workspace.room_bytes)
    return fmt::format("{} ({}): {}, counted as 0", workspace.what, calls, kWhat);
  const auto about = workspace.operation.empty() ? calls : workspace.operation + ", " + calls;
  return fmt::format(
      "{} is counted as 0: one {} raises the allocated peak only if it exceeds {} ({})", kWhat,
      workspace.what, size_text(*workspace.room_bytes), about);
}

namespace {

// Around a workspace, what is allocated later lies in other blocks, some of them larger than asked
// for. With the very workspaces that an H200 took, its peak of allocated bytes was still up to
// 0.51% away in 8 of 50 cases (docs/evidence/real_card.md).
constexpr std::uint64_t kMovedBlocks = 100;

// What PyTorch's allocator asks CUDA for, where it has no block for this: kSmallSize,
// kMinLargeAlloc and kLargeBuffer of its CUDACachingAllocator.cpp.
std::uint64_t segment_of(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1 << 20, kSmall = kMiB, kLarge = 10 * kMiB;
  if (bytes == 0) return 0;
  if (bytes <= kSmall) return 2 * kMiB;
  if (bytes < kLarge) return 20 * kMiB;
  return (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

// The peak may be at such a call, and lower if its workspace is smaller. One that finds no free
// block has a segment of its own.
records::EstimateError error_of(const LedgerWorkspace& row, std::uint64_t peak) {
  const bool is_at_peak = row.largest_allocated_bytes + row.largest_excess_bytes > peak;
  const auto less = is_at_peak ? std::min(row.largest_excess_bytes, peak) : 0;
  const auto more = row.highest_bytes > peak ? row.highest_bytes - peak : 0;
  const auto moved = peak / kMovedBlocks;
  return {static_cast<std::int64_t>(less + moved), static_cast<std::int64_t>(more + moved),
          static_cast<std::int64_t>(segment_of(row.largest_most_bytes) + moved)};
}

}  // namespace

std::optional<ConvolutionWorkspaces> convolution_workspaces(
    const Ledger& ledger, const std::optional<std::uint64_t>& peak_allocated_bytes) {
  std::optional<ConvolutionWorkspaces> all;
  for_each_row(ledger.workspaces, [&](const LedgerWorkspace& row) {
    if (!is_in_range(ledger, row, peak_allocated_bytes)) return;
    const auto peak = peak_of(ledger, row.device, peak_allocated_bytes);
    const auto error = error_of(row, peak);
    if (!all) all.emplace();
    all->all_measured &= row.kind == Workspace::cudnn_measured;
    if (error.more_bytes > all->error.more_bytes) all->operation = row.operation;
    all->calls += row.calls;
    all->lowers |= error.less_bytes > error_of({}, peak).less_bytes;
    all->raises |= error.more_bytes > error_of({}, peak).more_bytes;
    all->error = wider(all->error, error);
  });
  return all;
}

std::string text_of(const ConvolutionWorkspaces& workspaces) {
  const auto* what =
      workspaces.all_measured ? "was measured, but not where blocks lie around it" : "is estimated";
  return fmt::format(
      "scratch memory of cuDNN's convolutions {} ({}, {}): a card's allocated peak may differ by "
      "{}",
      what, workspaces.operation, counted(workspaces.calls, "call"), text_of(workspaces.error));
}

namespace {

constexpr std::size_t kMostLines = 12;

void add_lines(std::string& out, const char* before, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    out += fmt::format("  {}{}\n", before, lines[i]);
  if (lines.size() > kMostLines)
    out += fmt::format("  ... and {} more (--json has all)\n", lines.size() - kMostLines);
}

}  // namespace

std::string verdict_sentence(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::exact) return "";
  const bool conditional = verdict.kind == VerdictKind::exact_if;
  const auto& why = conditional ? verdict.conditions : verdict.reasons;
  std::string text = verdict_word(verdict.kind);
  if (!why.empty())
    text += fmt::format("{} {}",
                        conditional ? " the program's path does not depend on this:" : ", because",
                        why.front());
  if (why.size() > 1) text += fmt::format(" (and {} more)", why.size() - 1);
  if (!verdict.advice.empty()) text += ". To do: " + verdict.advice.front();
  return text + ".";
}

std::string verdict_text(const Verdict& verdict) {
  const bool conditional = verdict.kind == VerdictKind::exact_if;
  std::string out = fmt::format("Verdict: {}{}\n", verdict_word(verdict.kind),
                                conditional ? " the program's path does not depend on these:"
                                : verdict.reasons.empty() ? ""
                                                          : ", because");
  add_lines(out, "", verdict.reasons);
  if (!conditional && !verdict.conditions.empty())
    out += "Provided that the program's path does not depend on these:\n";
  add_lines(out, "", verdict.conditions);
  add_lines(out, "note: ", verdict.notes);
  add_lines(out, "to do: ", verdict.advice);
  return out;
}

}  // namespace peakbench::emulator
