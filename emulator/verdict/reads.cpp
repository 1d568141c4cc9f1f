#include "verdict/reads.h"

#include <fmt/format.h>

#include <algorithm>

namespace peakbench::emulator {
namespace {

std::string where(const LedgerReadBack& row) {
  const char* name = row.operation[0] ? row.operation : row.function;
  if (!name[0]) return "more places than the record has room for";
  return row.place[0] ? fmt::format("{} at {}", name, row.place) : name;
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
  const auto calls = unknown_calls(row);
  return fmt::format("{} read {} ({} time{})", where(row), what_was_read(row.kind), calls,
                     calls == 1 ? "" : "s");
}

}  // namespace peakbench::emulator
