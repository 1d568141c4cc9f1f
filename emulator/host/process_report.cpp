#include "host/process_report.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/shared_cards.h"
#include "errors/errors.h"
#include "files/read_file.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

template <std::size_t size>
void end(char (&text)[size]) {
  text[size - 1] = '\0';
}

// The program itself can have written into its ledger: every text ends within its room.
void end_texts(Ledger& ledger) {
  end(ledger.command);
  end(ledger.card);
  for (LedgerReadBack& row : ledger.read_backs) {
    end(row.function);
    end(row.library);
    end(row.operation);
    end(row.kind);
    end(row.place);
  }
  end(ledger.computing_note);
  for (LedgerPlaces* places : {&ledger.out_of_memory, &ledger.free_memory_reads})
    for (LedgerPlace& row : places->rows) {
      end(row.function);
      end(row.place);
    }
  for (LedgerNames* names : {&ledger.refused, &ledger.faults, &ledger.unmodelled})
    for (LedgerName& row : names->rows) end(row.name);
}

std::unique_ptr<Ledger> read_ledger(const fs::path& path) {
  std::string bytes;
  try {
    bytes = files::read_regular_file(path.string(), sizeof(Ledger));
  } catch (const ConfigError&) {
    return nullptr;
  }
  auto ledger = std::make_unique<Ledger>();
  if (bytes.size() != sizeof(Ledger)) return nullptr;
  std::memcpy(ledger.get(), bytes.data(), sizeof(Ledger));
  if (ledger->magic != kLedgerMagic || ledger->bytes != sizeof(Ledger)) return nullptr;
  end_texts(*ledger);
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

std::vector<SharedPeak> read_card_peaks(const fs::path& folder) {
  const SharedCards* cards = map_shared_cards(folder / kSharedCardsFile);
  if (!cards) return {};
  return {std::begin(cards->peaks), std::end(cards->peaks)};
}

}  // namespace peakbench::emulator
