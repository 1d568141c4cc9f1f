#include "emulator/host/ledgers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <system_error>

#include "base/errors.h"
#include "base/regular_file.h"
#include "core/shared_cards.h"

namespace peakbench::emulator {

namespace fs = std::filesystem;

LedgerFolder::LedgerFolder() {
  std::error_code error;
  const char* given = std::getenv("TMPDIR");
  const fs::path folder =
      given && !*given ? fs::path("/tmp") : fs::temp_directory_path(error);  // empty: not set
  try {
    if (error) throw std::system_error(error);
    folder_.emplace(folder, "peakbench-emulate.");
  } catch (const std::system_error& problem) {
    throw ConfigError(fmt::format(
        "cannot make a folder for the program's figures in {}: {}; set TMPDIR to a folder that "
        "you may write to",
        given && *given ? given : folder.string(), problem.code().message()));
  }
  if (!make_shared_cards(path() / kSharedCardsFile))
    throw ConfigError(fmt::format("cannot write to {}: {}; set TMPDIR to a folder with free space",
                                  folder.string(), std::strerror(errno)));
}

namespace {

template <std::size_t size>
void end(char (&text)[size]) {
  text[size - 1] = '\0';
}

void end_texts(LedgerReadBack& row) {
  end(row.function);
  end(row.library);
  end(row.operation);
  end(row.place);
}

void end_texts(LedgerPlace& row) {
  end(row.function);
  end(row.place);
}

void end_texts(LedgerFact& row) {
  end(row.function);
  end(row.what);
  end(row.place);
}

void end_texts(LedgerWorkspace& row) {
  end(row.function);
  end(row.operation);
}

template <typename Table>
void end_texts_in(Table& table) {
  for (auto& row : table.rows) end_texts(row);
  end_texts(table.beyond);
}

// The program itself can have written into its ledger: every text ends within its room.
void end_texts(Ledger& ledger) {
  end(ledger.command);
  end(ledger.card);
  end(ledger.computing_note);
  end_texts_in(ledger.known_reads);
  for (LedgerReads& reads : ledger.reads) end_texts_in(reads);
  for (LedgerFacts& facts : ledger.facts) end_texts_in(facts);
  for (LedgerPlaces* places : {&ledger.out_of_memory, &ledger.free_memory_reads, &ledger.done_reads,
                               &ledger.elapsed_reads, &ledger.profiles})
    end_texts_in(*places);
  end_texts_in(ledger.workspaces);
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
