#include "host/process_report.h"

#include <algorithm>
#include <fstream>

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Ledger> read_ledger(const fs::path& path) {
  auto ledger = std::make_unique<Ledger>();
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(ledger.get()), sizeof(Ledger));
  if (file.gcount() != sizeof(Ledger)) return nullptr;
  if (ledger->magic != kLedgerMagic || ledger->bytes != sizeof(Ledger)) return nullptr;
  return ledger;
}

}  // namespace

std::vector<std::unique_ptr<Ledger>> read_ledgers(const fs::path& folder) {
  std::vector<std::unique_ptr<Ledger>> ledgers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".ledger") continue;
    if (auto ledger = read_ledger(entry.path())) ledgers.push_back(std::move(ledger));
  }
  std::ranges::sort(ledgers, {}, [](const auto& ledger) { return ledger->pid; });
  return ledgers;
}

bool used_the_card(const Ledger& ledger) {
  const auto* end = ledger.devices + std::min<unsigned>(ledger.device_count, kLedgerDevices);
  const bool took = std::any_of(ledger.devices, end, [](const LedgerDevice& device) {
    return device.allocations > 0 || device.refused_allocations > 0;
  });
  return took || ledger.kernel_launches > 0;
}

}  // namespace peakbench::emulator
