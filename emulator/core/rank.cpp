#include "core/rank.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/state.h"

namespace peakbench::emulator {
namespace {

struct Rank {
  std::int32_t rank = -1, ranks = 0;
};

std::mutex mutex;
Rank of_group;  // torch.distributed's

void put(Ledger& ledger, const Rank& own) {
  for (std::uint32_t i = 0; i < ledger.device_count; ++i) {
    ledger.devices[i].rank = own.rank;
    ledger.devices[i].ranks = own.ranks;
  }
}

}  // namespace

std::int32_t from_environment(const char* variable, std::int32_t otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  std::int32_t number = 0;
  const auto* const end = text + std::strlen(text);
  const auto [read, error] = std::from_chars(text, end, number);
  return error == std::errc{} && read == end ? number : otherwise;
}

void enter_rank(Ledger& ledger) {
  const std::lock_guard lock(mutex);
  if (of_group.rank >= 0) return put(ledger, of_group);
  const auto rank = from_environment("RANK", -1);
  put(ledger, {rank, rank < 0 ? 0 : from_environment("WORLD_SIZE", 0)});
}

void enter_communicator_rank(int device, int rank, int ranks) {
  LedgerDevice& row = state().ledger->devices[device];  // begins a ledger, which takes the lock
  const std::lock_guard lock(mutex);
  row.communicator_ranks = std::max(row.communicator_ranks, ranks);
  if (of_group.rank >= 0 || row.ranks >= ranks) return;
  row.rank = rank;
  row.ranks = ranks;
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_is_rank(int rank, int ranks) {
  using namespace peakbench::emulator;
  const std::lock_guard lock(mutex);
  of_group = {rank, ranks};
  if (machine_state_made()) put(*state().ledger, of_group);
}
