#include "emulator/host/card_use.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/numbers.h"
#include "core/ledger_json.h"

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

namespace {

// Somebody else ended the program.
bool is_from_outside(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

bool ended_of_it(const CardUse& use, int wait_status) {
  if (wait_status == 0 || (WIFSIGNALED(wait_status) && is_from_outside(WTERMSIG(wait_status))))
    return false;
  return launches_of(*use.process) == use.process->launches_at_refusal;
}

std::uint64_t calls_of(const CardUse& use, bool died) {
  const LedgerDevice& figures = use.figures();
  if (are_counts_known(*use.process, figures) && (figures.out_of_memory_calls || !died))
    return figures.out_of_memory_calls;
  return figures.refused_allocations;
}

OutOfMemory failure_of(const CardUse& use, bool died) {
  const LedgerDevice& figures = use.figures();
  OutOfMemory failure;
  failure.swallowed = !died;
  failure.use = use;
  failure.calls = calls_of(use, died);
  failure.asked_bytes = figures.last_refused_bytes;
  failure.in_use_bytes = figures.used_at_refusal_bytes;
  failure.needed_bytes = figures.last_needed_bytes;
  const LedgerPlaces& places = use.process->out_of_memory;
  if (!failure.asked_bytes || places.last >= std::min<unsigned>(places.count, kLedgerPlaces))
    return failure;
  failure.function = places.rows[places.last].function;
  failure.place = places.rows[places.last].place;
  return failure;
}

}  // namespace

bool is_refused_by_host(const CardUse& use) {
  return use.process->host_refusals > 0 && use.figures().refused_allocations == 0;
}

std::optional<OutOfMemory> find_out_of_memory(const std::vector<CardUse>& uses, int wait_status) {
  std::optional<OutOfMemory> worst;
  // What ended the program before what it survived; then the largest.
  const auto weight = [](const OutOfMemory& one) {
    return std::pair(!one.swallowed, one.asked_bytes);
  };
  for (const CardUse& use : uses) {
    const bool died = ended_of_it(use, wait_status);
    if (!calls_of(use, died) || is_refused_by_host(use)) continue;
    auto failure = failure_of(use, died);
    if (!worst || weight(failure) > weight(*worst)) worst = std::move(failure);
  }
  return worst;
}

std::string request_text(const OutOfMemory& failure) {
  if (!failure.asked_bytes) {
    return failure.needed_bytes ? fmt::format("needed {} at least, more than it allows itself",
                                              size_text(failure.needed_bytes))
                                : "asked for more than it allows itself";
  }
  std::string where = failure.function;
  if (!failure.place.empty()) where += (where.empty() ? "at " : " at ") + failure.place;
  return fmt::format("asked for {}{} with {} in use", size_text(failure.asked_bytes),
                     where.empty() ? "" : fmt::format(" ({})", where),
                     size_text(failure.in_use_bytes));
}

nlohmann::json to_json(const OutOfMemory& failure) {
  using nlohmann::json;
  const auto known = [](std::uint64_t bytes) { return bytes ? json(bytes) : json(); };
  return {{"swallowed", failure.swallowed},
          {"calls", failure.calls},
          {"asked_bytes", known(failure.asked_bytes)},
          {"in_use_bytes", failure.asked_bytes ? json(failure.in_use_bytes) : json()},
          {"needed_bytes", known(failure.needed_bytes)},
          {"function", failure.function},
          {"place", failure.place},
          {"pid", failure.use.process->pid},
          {"device", failure.use.device}};
}

}  // namespace peakbench::emulator
