#include "verdict/memory_left.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ledger_json.h"
#include "units/bytes.h"

namespace peakbench::emulator {
namespace {

std::string so_often(std::uint64_t calls) {
  return fmt::format("{} time{}", calls, calls == 1 ? "" : "s");
}

std::string place_of(const LedgerPlace& row) {
  if (!row.function[0]) return "more places than the record has room for";
  return row.place[0] ? fmt::format("{} at {}", row.function, row.place) : row.function;
}

// aten::empty, which asked for 30.000 GiB after 12 kernel launches; aten::add, ...
std::string who_asked(const LedgerPlaces& places) {
  std::string text;
  for_each_row(places, [&](const LedgerPlace& row) {
    text += text.empty() ? "" : "; ";
    text += row.function[0] ? fmt::format("{} asked for {} after {} kernel launches", place_of(row),
                                          size_text(row.largest_bytes), row.kernel_launches)
                            : place_of(row);
  });
  return text;
}

std::string refusals(const Ledger& ledger, unsigned index) {
  const LedgerDevice& device = ledger.devices[index];
  const auto asked = who_asked(ledger.out_of_memory);
  const auto who = asked.empty() ? "" : fmt::format(" ({})", asked);
  if (!are_counts_known(ledger, device))
    return fmt::format("memory of cuda:{} was refused {}, and the program went on{}", index,
                       so_often(device.refused_allocations), who);
  if (!device.out_of_memory_calls)
    return fmt::format(
        "memory of cuda:{} was refused {}, and PyTorch gave back what it kept{}: how much it "
        "reserves depends on what the CUDA context leaves",
        index, so_often(device.refused_allocations), who);
  return fmt::format("cuda:{} ran out of memory {}, and the program went on{}", index,
                     so_often(device.out_of_memory_calls), who);
}

}  // namespace

std::string free_memory_text(const LedgerPlace& row, std::uint64_t context_bytes) {
  const auto context = context_bytes
                           ? fmt::format("for which {} are set aside", size_text(context_bytes))
                           : std::string("which is in no figure");
  return fmt::format(
      "{} read how much memory is free ({}): a card has less by its CUDA context, {}",
      place_of(row), so_often(row.calls), context);
}

std::vector<std::string> survived_refusals(const Ledger& ledger) {
  std::vector<std::string> sentences;
  for (unsigned i = 0; i < std::min<unsigned>(ledger.device_count, kLedgerDevices); ++i)
    if (ledger.devices[i].refused_allocations || ledger.devices[i].out_of_memory_calls)
      sentences.push_back(refusals(ledger, i));
  return sentences;
}

}  // namespace peakbench::emulator
