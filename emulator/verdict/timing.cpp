#include "verdict/timing.h"

#include <fmt/format.h>

namespace peakbench::emulator {
namespace {

std::string times_text(std::uint64_t calls) {
  return fmt::format("{} time{}", calls, calls == 1 ? "" : "s");
}

std::string where(const LedgerPlace& row) {
  if (!row.function[0]) return "more places than the record has room for";
  return row.place[0] ? fmt::format("{} at {}", row.function, row.place) : row.function;
}

}  // namespace

std::string done_text(const LedgerPlace& row) {
  return fmt::format(
      "{} read whether work is done that the host had not waited for ({}): when a card is done "
      "depends on how fast it is",
      where(row), times_text(row.calls));
}

std::string profile_text(const LedgerPlace& row) {
  return fmt::format("{} profiled the card: no emulated card has times, so its device times are 0",
                     where(row));
}

std::string elapsed_text(const LedgerPlace& row) {
  return fmt::format("{} read how long work took ({}): no emulated card has times", where(row),
                     times_text(row.calls));
}

namespace {

const char* when_done(Streams streams) {
  switch (streams) {
    case Streams::at_once:
      return "handed out again at once";
    case Streams::soon:
      return "handed out again when the allocator asked for a second time";
    case Streams::late:
      return "held until the host waited";
  }
  return "";
}

}  // namespace

std::string blocks_in_question(const Ledger& ledger, Streams streams) {
  if (!ledger.blocks_in_question) return "";
  return fmt::format(
      "blocks that another stream had used (record_stream) were {}: a card is done with them "
      "earlier or later, and what is allocated meanwhile lies elsewhere",
      when_done(streams));
}

std::string pinned_in_question(const Ledger& ledger, Streams streams) {
  if (!ledger.pinned_in_question) return "";
  return fmt::format(
      "page-locked host memory that copies had used was {}: on a card the process may have {} of "
      "it (pinned); the card's memory does not depend on it",
      when_done(streams), streams == Streams::late ? "less" : "more");
}

}  // namespace peakbench::emulator
