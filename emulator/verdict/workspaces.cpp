#include "verdict/workspaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "units/bytes.h"

namespace peakbench::emulator {
namespace {

constexpr std::string_view kAnswered = ": answered with 0 bytes";

std::span<const LedgerWorkspace> rows_of(const Ledger& ledger) {
  return {ledger.workspaces, std::min<std::size_t>(ledger.workspace_count, kLedgerPlaces)};
}

std::uint64_t peak_of(const Ledger& ledger, std::uint32_t device,
                      const std::optional<std::uint64_t>& of_first) {
  if (device == 0 && of_first) return *of_first;
  return device < kLedgerDevices ? ledger.devices[device].peak_allocated_bytes : 0;
}

// Held while its call runs: what is allocated then and the workspace, together, against the peak.
std::uint64_t room_of(const LedgerWorkspace& row, std::uint64_t peak) {
  return peak > row.largest_allocated_bytes ? peak - row.largest_allocated_bytes : 0;
}

}  // namespace

std::optional<MissingWorkspace> missing_workspace(
    const Ledger& ledger, const LedgerName& entry,
    const std::optional<std::uint64_t>& peak_allocated_bytes) {
  const std::string_view name = entry.name;
  const bool answered = name.ends_with(kAnswered);
  if (!answered && name.find("workspace") == std::string_view::npos) return std::nullopt;
  MissingWorkspace found;
  found.what = answered ? name.substr(0, name.size() - kAnswered.size()) : name;
  found.calls = entry.calls;
  std::uint64_t counted = 0;
  for (const LedgerWorkspace& row : rows_of(ledger)) {
    const auto peak = peak_of(ledger, row.device, peak_allocated_bytes);
    if (name != row.name || peak == 0) continue;
    counted += row.calls;
    const auto room = room_of(row, peak);
    if (found.room_bytes && *found.room_bytes <= room) continue;
    found.room_bytes = room;
    found.operation = row.operation;
  }
  if (counted != entry.calls) found.room_bytes.reset();
  return found;
}

std::string text_of(const MissingWorkspace& workspace) {
  const auto calls = fmt::format("{} call{}", workspace.calls, workspace.calls == 1 ? "" : "s");
  constexpr const char* kWhy = "memory of the vendor's choosing, counted as none";
  if (!workspace.room_bytes) return fmt::format("{} ({}): {}", workspace.what, calls, kWhy);
  const auto where = workspace.operation.empty() ? calls : workspace.operation + ", " + calls;
  return fmt::format("exact unless one {} exceeds {} ({}): {}", workspace.what,
                     size_text(*workspace.room_bytes), where, kWhy);
}

}  // namespace peakbench::emulator
