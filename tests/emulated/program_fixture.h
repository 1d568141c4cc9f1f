// Programs that have ended on an emulated card, made of ledgers by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "emulator/host/answer.h"
#include "emulator/host/emulated_program.h"

namespace peakbench::emulator {

inline constexpr std::uint64_t kMiB = 1ull << 20, kGiB = 1ull << 30;
inline constexpr int kExitCode1 = 1 << 8, kKilled = 9, kAborted = 6;  // as waitpid gives them

class ProgramFixture : public testing::Test {
 protected:
  ProgramFixture() {
    program_.card.spec = "h100-80gb";
    program_.card.facts.name = "NVIDIA H100 80GB HBM3";
    program_.card.facts.total_memory_bytes = 80 * kGiB;
    program_.card.context_memory = {{512 * kMiB, "bare context", "", "", "", "example.com"}};
    program_.cuda_majors = {12, 13};
  }

  // A process on its only device, which is a card of its own.
  Ledger& add_process(std::uint64_t peak_bytes, std::uint64_t card = 0, int rank = -1) {
    owned_.push_back(std::make_unique<Ledger>());
    Ledger& ledger = *owned_.back();
    ledger.pid = 4710 + static_cast<int>(owned_.size());
    ledger.parent_pid = 4700;
    ledger.finished = 1;
    ledger.elastic_attempt = -1;
    ledger.device_count = 1;
    ledger.counts_known = 1;
    ledger.computing = Computing::on;
    std::snprintf(ledger.command, sizeof ledger.command, "python3 train.py");
    LedgerDevice& device = ledger.devices[0];
    device.card = card;
    device.rank = rank;
    device.total_bytes = program_.card.facts.total_memory_bytes;
    device.allocations = peak_bytes ? 1 : 0;
    device.peak_used_bytes = device.peak_malloc_bytes = peak_bytes;
    device.peak_reserved_bytes = peak_bytes;
    device.peak_allocated_bytes = peak_bytes / 2;
    if (program_.card_peaks.size() <= card) program_.card_peaks.resize(card + 1);
    if (peak_bytes) {
      SharedPeak& peak = program_.card_peaks[card];
      peak.bytes += peak_bytes + program_.card.facts.context_bytes;
      ++peak.processes;
    }
    program_.ledgers.push_back(&ledger);
    return ledger;
  }

  // It asked for so much while so much was in use of the card.
  static void run_out(Ledger& ledger, std::uint64_t asked, std::uint64_t in_use) {
    LedgerDevice& device = ledger.devices[0];
    device.refused_allocations += 2;  // PyTorch asks again
    ++device.out_of_memory_calls;
    device.last_refused_bytes = device.largest_refused_bytes = asked;
    device.used_at_refusal_bytes = in_use;
    device.last_needed_bytes = device.largest_needed_bytes = in_use / 2 + asked;
    ledger.launches_at_refusal = ledger.kernel_launches;
    ledger.out_of_memory.last = ledger.out_of_memory.count;
    LedgerPlace& place = ledger.out_of_memory.rows[ledger.out_of_memory.count++];
    place.calls = 2;
    place.largest_bytes = asked;
    std::snprintf(place.function, sizeof place.function, "aten::empty");
    std::snprintf(place.place, sizeof place.place, "train.py:12");
  }

  // With the verdict that it really has.
  Answer answer() {
    program_.verdict = judge(program_.ledgers, {program_.wait_status, assume_, Streams::at_once,
                                                program_.card.facts.context_bytes});
    return answer_of(program_);
  }
  std::string sentence() { return answer().sentence; }

  std::vector<std::unique_ptr<Ledger>> owned_;
  EmulatedProgram program_;
  std::string assume_;
};

}  // namespace peakbench::emulator
