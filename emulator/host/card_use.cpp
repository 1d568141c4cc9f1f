#include "host/card_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace peakbench::emulator {
namespace {

bool is_used(const LedgerDevice& device) {
  return device.allocations || device.refused_allocations || device.out_of_memory_calls;
}

bool is_before(const CardUse& one, const CardUse& other) {
  const auto key = [](const CardUse& use) {
    return std::tuple(use.figures().rank, use.process->pid, use.device);
  };
  return key(one) < key(other);
}

}  // namespace

std::vector<CardUse> card_uses(const std::vector<const Ledger*>& ledgers) {
  std::vector<CardUse> uses;
  for (const Ledger* ledger : ledgers) {
    const auto before = uses.size();
    for (unsigned i = 0; i < std::min<unsigned>(ledger->device_count, kLedgerDevices); ++i)
      if (is_used(ledger->devices[i])) uses.push_back({ledger, i});
    if (uses.size() == before && launches_of(*ledger) && ledger->device_count)
      uses.push_back({ledger, 0});
  }
  std::ranges::stable_sort(uses, is_before);
  return uses;
}

std::string name_of(const CardUse& use, const std::vector<CardUse>& uses) {
  const auto rank = use.figures().rank;
  const bool shared = std::ranges::any_of(uses, [&](const CardUse& other) {
    return other.process != use.process && other.figures().rank == rank;
  });
  return rank < 0 || shared ? fmt::format("process {}", use.process->pid)
                            : fmt::format("rank {}", rank);
}

std::vector<CardPeak> peaks_of_cards(const std::vector<CardUse>& uses,
                                     const std::vector<SharedPeak>& card_peaks,
                                     std::uint64_t context_bytes) {
  std::map<std::size_t, CardPeak> peaks;
  for (const CardUse& use : uses) {
    const LedgerDevice& figures = use.figures();
    CardPeak& peak = peaks[figures.card];
    peak.card = figures.card;
    if (!peak.largest || figures.peak_used_bytes > peak.largest->figures().peak_used_bytes)
      peak.largest = &use;
  }
  std::vector<CardPeak> list;
  for (auto& [card, peak] : peaks) {
    const auto alone = peak.largest->figures().peak_used_bytes;
    const auto known = card < card_peaks.size() ? card_peaks[card] : SharedPeak{};
    peak.bytes = std::max(known.bytes, alone ? alone + context_bytes : 0);
    peak.users = std::max<std::uint64_t>(known.processes, 1);
    list.push_back(peak);
  }
  return list;
}

}  // namespace peakbench::emulator
