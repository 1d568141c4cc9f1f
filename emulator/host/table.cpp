// What `peakbench emulate` prints.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "core/ledger_json.h"
#include "host/process_report.h"
#include "host/run_emulated.h"
#include "host/way_round.h"
#include "units/bytes.h"

namespace peakbench::emulator {
namespace {

std::string gib(std::uint64_t bytes) { return gib_text(static_cast<std::int64_t>(bytes)); }

std::string times(std::uint64_t calls) {
  return fmt::format("{} call{}", calls, calls == 1 ? "" : "s");
}

// By PyTorch's own count, of which CUDA sees what was reserved alone.
void add_pytorch(std::string& out, const Ledger& ledger, const LedgerDevice& device) {
  if (are_counts_known(ledger, device)) {
    out += fmt::format(
        "          PyTorch's peaks{}: allocated {} ({} bytes), reserved {} ({} bytes)\n",
        ledger.finished ? "" : ", at least", gib(device.peak_allocated_bytes),
        device.peak_allocated_bytes, gib(device.peak_reserved_bytes), device.peak_reserved_bytes);
  } else if (ledger.counts_known) {
    out +=
        "          PyTorch's peaks (allocated, reserved) are not known: the process ended before "
        "they were counted\n";
  } else if (ledger.computing != Computing::no_pytorch) {
    out += fmt::format(
        "          PyTorch's peaks (allocated, reserved) are not known: {}\n",
        ledger.computing_note[0] ? ledger.computing_note : "none of its operators used the card");
  }
}

void add_refusals(std::string& out, const LedgerDevice& device) {
  if (!device.refused_allocations) return;
  out += fmt::format("          out of memory {} times; the largest that was refused: {}\n",
                     device.refused_allocations, gib(device.largest_refused_bytes));
  if (device.largest_needed_bytes)
    out += fmt::format(
        "          PyTorch would have needed {} at least ({} bytes): what it had handed out when "
        "it "
        "ran out, and what was asked for then\n",
        gib(device.largest_needed_bytes), device.largest_needed_bytes);
}

void add_devices(std::string& out, const Ledger& ledger) {
  for (unsigned i = 0; i < std::min<unsigned>(ledger.device_count, kLedgerDevices); ++i) {
    const LedgerDevice& device = ledger.devices[i];
    if (!device.allocations && !device.refused_allocations) continue;
    out += fmt::format(
        "  cuda:{}  peak {} of {}  ({} bytes; by cudaMalloc {}, by virtual memory {})\n", i,
        gib(device.peak_used_bytes), gib(device.total_bytes), device.peak_used_bytes,
        gib(device.peak_malloc_bytes), gib(device.peak_virtual_bytes));
    if (device.peak_pool_bytes)
      out += fmt::format("          in use of memory pools (cudaMallocAsync): {} ({} bytes)\n",
                         gib(device.peak_pool_bytes), device.peak_pool_bytes);
    add_pytorch(out, ledger, device);
    add_refusals(out, device);
  }
  if (ledger.peak_pinned_bytes)
    out += fmt::format("  pinned  peak {} of page-locked host memory\n",
                       gib(ledger.peak_pinned_bytes));
}

// How far the program can have relied on what it read.
std::string reliance(const LedgerReadBack& row) {
  if (!row.zero_calls && !row.uncertain_calls && !row.substitute_calls)
    return "known: copied there by the program, or computed";
  std::string text;
  if (row.zero_calls) text = fmt::format("{} answered with zeros", row.zero_calls);
  if (row.uncertain_calls) {
    text += fmt::format("{}{} with what was copied there before later work",
                        text.empty() ? "" : ", ", row.uncertain_calls);
  }
  if (row.substitute_calls) {
    text += fmt::format("{}{} with plausible values in place of unknown ones",
                        text.empty() ? "" : ", ", row.substitute_calls);
  }
  return text;
}

void add_read_backs(std::string& out, const Ledger& ledger) {
  for (unsigned i = 0; i < std::min<unsigned>(ledger.read_back_count, kLedgerRows); ++i) {
    const LedgerReadBack& row = ledger.read_backs[i];
    const std::string where =
        row.operation[0] ? fmt::format("{} in {}", row.operation, row.function) : row.function;
    out += fmt::format("  read back  {}{} ({}){}: {}, {} bytes; {}\n", row.kind,
                       row.kind[0] ? fmt::format(" by {}", where) : where, row.library,
                       row.place[0] ? fmt::format(" at {}", row.place) : "", times(row.calls),
                       row.bytes, reliance(row));
  }
}

void add_names(std::string& out, const char* what, const LedgerNames& names) {
  for (unsigned i = 0; i < std::min<unsigned>(names.count, kLedgerRows); ++i) {
    out += fmt::format("  {}  {}: {}\n", what, names.rows[i].name, times(names.rows[i].calls));
  }
}

void add_refused(std::string& out, const LedgerNames& names) {
  add_names(out, "refused", names);
  std::set<std::string_view> said;
  for (unsigned i = 0; i < std::min<unsigned>(names.count, kLedgerRows); ++i) {
    const auto sentence = way_round(names.rows[i].name);
    if (!sentence.empty() && said.insert(sentence).second)
      out += fmt::format("    a way round: {}\n", sentence);
  }
}

// In no figure, so it is said.
std::string context_line(const Card& card) {
  const auto set_aside = card.facts.context_bytes;
  return fmt::format("CUDA context: not in these figures{}; {}.\n",
                     set_aside ? fmt::format(" ({} set aside for it)", gib(set_aside)) : "",
                     long_text(card.context_memory));
}

// How many of the processes took memory of a card.
long users_of(std::size_t card, const std::vector<const Ledger*>& ledgers) {
  return std::ranges::count_if(ledgers, [&](const Ledger* ledger) {
    const auto* end = ledger->devices + std::min<unsigned>(ledger->device_count, kLedgerDevices);
    return std::any_of(ledger->devices, end, [&](const LedgerDevice& device) {
      return device.card == card && device.allocations;
    });
  });
}

// Of cards that several processes used: what each took may have been taken at different times.
void add_shared_cards(std::string& out, const Card& card, const std::vector<const Ledger*>& ledgers,
                      const std::vector<std::uint64_t>& peaks) {
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    const long users = users_of(i, ledgers);
    if (users < 2) continue;
    out += fmt::format("card {}  peak {} of {}  ({} bytes; {} processes together)\n", i,
                       gib(peaks[i]), gib(card.facts.total_memory_bytes), peaks[i], users);
  }
}

std::string ending(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return fmt::format("The program was ended by signal {} ({}).\n", WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)));
  }
  return fmt::format("The program's exit code: {}.\n", WEXITSTATUS(wait_status));
}

}  // namespace

std::string emulation_table(const Card& card, const std::vector<const Ledger*>& ledgers,
                            const std::vector<std::uint64_t>& card_peaks,
                            const std::vector<int>& cuda_majors, const Verdict& verdict,
                            int wait_status) {
  std::string out = fmt::format("\nEmulated card {} ({}, {}): memory, no times.\n", card.spec,
                                card.facts.name, gib(card.facts.total_memory_bytes)) +
                    context_line(card);
  bool used = false;
  for (const Ledger* ledger : ledgers) {
    if (!used_the_card(*ledger) && !ledger->refused.count) continue;
    used |= used_the_card(*ledger);
    out += fmt::format("process {}{}  {}\n", ledger->pid,
                       ledger->finished ? "" : " (did not end by itself)", ledger->command);
    add_devices(out, *ledger);
    add_read_backs(out, *ledger);
    add_refused(out, ledger->refused);
    add_names(out, "fault", ledger->faults);
    add_names(out, "unmodelled", ledger->unmodelled);
    out += fmt::format("  {} kernel launches, none run\n", ledger->kernel_launches);
  }
  add_shared_cards(out, card, ledgers, card_peaks);
  if (!used && !ledgers.empty()) {
    out +=
        "The program asked which cards there are, and then took no memory and started no kernel on "
        "one.\n";
  } else if (!used) {
    out += fmt::format(
        "The program did not use CUDA, or not through the libraries that this card stands in for, "
        "those of CUDA {}: another major version of CUDA, or a CUDA runtime linked into a program "
        "or a library, is out of reach, and so is a program that is started without its "
        "environment (env -i, sudo, a container): LD_PRELOAD must reach it.\n",
        fmt::join(cuda_majors, " and "));
  }
  return out + ending(wait_status) + verdict_text(verdict);
}

}  // namespace peakbench::emulator
