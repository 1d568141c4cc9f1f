#include "verdict/workspaces.h"

#include <fmt/format.h>

#include <algorithm>

#include "units/bytes.h"

namespace peakbench::emulator {
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

}  // namespace

std::vector<MissingWorkspace> missing_workspaces(
    const Ledger& ledger, const std::optional<std::uint64_t>& peak_allocated_bytes) {
  std::vector<MissingWorkspace> list;
  for_each_row(ledger.workspaces, [&](const LedgerWorkspace& row) {
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
  const auto calls = fmt::format("{} call{}", workspace.calls, workspace.calls == 1 ? "" : "s");
  constexpr const char* kWhy = "scratch memory whose size NVIDIA's library chooses, counted as 0";
  if (!workspace.room_bytes) return fmt::format("{} ({}): {}", workspace.what, calls, kWhy);
  const auto where = workspace.operation.empty() ? calls : workspace.operation + ", " + calls;
  return fmt::format("exact unless one {} exceeds {} ({}): {}", workspace.what,
                     size_text(*workspace.room_bytes), where, kWhy);
}

}  // namespace peakbench::emulator
