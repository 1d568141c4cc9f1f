// The ledger: memory use of an emulated process, in a mapped file. The counters are in the file
// itself, so a killed process leaves them, too. Fixed layout; written by the stub libraries (core),
// read by the launcher (host).
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/facts.h"

namespace peakbench::emulator {

inline constexpr std::uint64_t kLedgerMagic = 0x33524744454c4250;  // "PBLEDGR3"
inline constexpr int kLedgerDevices = 64;
// Each kind of entry has its own rows, so that many of one kind cannot displace those of another.
inline constexpr int kLedgerReads = 64;
inline constexpr int kLedgerFacts = 32;
inline constexpr int kLedgerPlaces = 32;
inline constexpr int kLedgerWorkspaces = 64;

struct LedgerDevice {
  std::uint64_t card;  // which one of the machine's it is (CUDA_VISIBLE_DEVICES)
  // Which one of the program's ranks has it, and of how many (core/own_ledger.h). -1 and 0:
  // unknown.
  std::int32_t rank, ranks;
  std::int32_t communicator_ranks;  // of the largest of its NCCL communicators; 0 without one
  std::uint64_t total_bytes;
  std::uint64_t used_bytes, peak_used_bytes;        // of both kinds together
  std::uint64_t malloc_bytes, peak_malloc_bytes;    // cudaMalloc and its kin
  std::uint64_t virtual_bytes, peak_virtual_bytes;  // cuMemCreate (expandable segments)
  // Handed out of memory pools (cudaMallocAsync), whose own memory is among cudaMalloc's.
  std::uint64_t pool_bytes, peak_pool_bytes;
  std::uint64_t allocations, frees;   // device memory asked for and given back
  std::uint64_t refused_allocations;  // out of memory
  std::uint64_t last_refused_bytes, largest_refused_bytes;
  // What all processes had taken of the card when the last one was refused.
  std::uint64_t used_at_refusal_bytes;
  // How often PyTorch's allocator ran out of memory, by its own count: it asks again when it has
  // given back what it kept.
  std::uint64_t out_of_memory_calls;
  // Of PyTorch's allocator, by its own count (torch.cuda.max_memory_allocated and _reserved), but
  // for all of the process: a peak that the program resets stays.
  std::uint64_t peak_allocated_bytes, peak_reserved_bytes;
  // What it had handed out when it ran out of memory, and what was asked of it then, together.
  std::uint64_t last_needed_bytes, largest_needed_bytes;
};

// A time of this machine's (CLOCK_MONOTONIC), by which entries are ordered.
using LedgerTime = std::uint64_t;

// A place in the program that read device memory back.
struct LedgerReadBack {
  std::uint64_t calls;
  std::uint64_t bytes;  // all calls together
  // Answered, wholly or partly, with zeros that the host had not put there.
  std::uint64_t zero_calls;
  // Answered with what the host had put there before later device work.
  std::uint64_t uncertain_calls;
  // Answered with plausible values in place of ones that could not be computed.
  std::uint64_t substitute_calls;
  LedgerTime first;  // of its calls
  ReadKind kind;
  std::uint32_t only_printed;  // 1: PythonUse, of all calls
  char function[240];          // the nearest named function that asked
  char library[64];
  char operation[96];  // the operator of PyTorch below which it happened, if any: aten::item
  char place[160];     // train.py:12, of reads of unknown values, in Python
};

// Entries of one kind. What did not find a row is counted in `beyond`, which names no place: it
// weighs as a row does.
template <typename Row, int kRows>
struct LedgerTable {
  std::uint32_t count;
  std::uint32_t last;  // of places: the row of the latest call that found one
  Row beyond;
  Row rows[kRows];
};
using LedgerReads = LedgerTable<LedgerReadBack, kLedgerReads>;

// An entry in addition to counters: its kind, and the names that the kind has.
struct LedgerFact {
  std::uint64_t calls;
  LedgerTime first;
  std::int32_t rank, ranks;
  char function[96];  // an entry point, or an operator of PyTorch
  char what[160];
  char place[160];  // train.py:12
};
using LedgerFacts = LedgerTable<LedgerFact, kLedgerFacts>;

// A place in the program whose path may depend on how much memory the card has left.
struct LedgerPlace {
  std::uint64_t calls;
  LedgerTime first;
  std::uint64_t largest_bytes;    // that were asked for
  std::uint64_t kernel_launches;  // before the first
  char function[240];             // that asked: the operator of PyTorch, if any
  char place[160];                // train.py:12, in Python where that is known
};
using LedgerPlaces = LedgerTable<LedgerPlace, kLedgerPlaces>;

// Calls of a vendor's library that would have had a workspace, which counts as none.
struct LedgerWorkspace {
  std::uint64_t calls;
  std::uint64_t uncounted_calls;  // at which the allocated bytes were unknown
  // That PyTorch's allocator had handed out of the device meanwhile, and below which operator.
  std::uint64_t largest_allocated_bytes;
  // Of a convolution's workspace, which is among them: the same with the largest that it may be;
  // how much smaller one may be than it was asked for; the largest that any may be.
  std::uint64_t highest_bytes, largest_excess_bytes, largest_most_bytes;
  std::uint32_t device;
  Workspace kind;
  char function[96];  // that answered, where the kind does not say
  char operation[96];
};
using LedgerWorkspaces = LedgerTable<LedgerWorkspace, kLedgerWorkspaces>;  // beyond: uncounted

// Calls of NCCL by kind, with the bytes of all together as nccl-tests counts them: of an all-gather
// what it gives, of a reduce-scatter what it takes.
struct LedgerNcclCalls {
  std::uint64_t calls;
  std::uint64_t bytes;
  std::uint64_t unsized_calls;  // of a communicator whose number of ranks is unknown: in no bytes
};

// Whether small tensors have values in this process.
enum class Computing : std::uint32_t {
  no_pytorch,   // it has not asked PyTorch for a card
  not_asked,    // never requested
  on,           // values/ computes them
  off,          // by the user
  unavailable,  // `computing_note` says why
};

struct Ledger {
  std::uint64_t magic;
  std::uint64_t bytes;  // sizeof(Ledger) of the writer
  std::int32_t pid;
  std::int32_t parent_pid;
  // Of a rank that torchrun started: which attempt it belongs to (TORCHELASTIC_RESTART_COUNT), the
  // first is 0. -1: of none.
  std::int32_t elastic_attempt;
  std::uint32_t finished;  // 1: the process came to its end; 0: still running, or killed
  std::uint32_t device_count;
  LedgerTime last_allocation;  // of a card's memory, by CUDA or by PyTorch's allocator; 0: none
  char command[1024];
  char card[96];
  LedgerDevice devices[kLedgerDevices];
  // Allocations of cudaMalloc that are no multiple of its 2 MiB pages, made while another such
  // allocation existed on the device. Here each takes its own pages; a driver may put both into one
  // page.
  std::uint64_t shared_page_allocations;
  std::uint64_t pinned_bytes, peak_pinned_bytes;  // page-locked host memory allocated through CUDA
  std::uint64_t managed_bytes, peak_managed_bytes;  // unified memory: not charged to the card
  // Memory or addresses that the host refused although the card had enough: mostly `ulimit -v`.
  std::uint64_t host_refusals, last_host_refused_bytes;
  std::uint64_t kernel_launches, graph_launches;
  // Integers with a made-up plausible value and no known bound. A second guess does not change
  // them.
  std::uint64_t unbounded_integers;
  // launches_of() when memory ran out the last time: a process that launched no more ended of it.
  std::uint64_t launches_at_refusal;
  std::uint64_t copies_to_device, copies_to_device_bytes;
  std::uint64_t copies_in_device, copies_in_device_bytes;
  std::uint64_t copies_to_host, copies_to_host_bytes;
  LedgerReads known_reads;
  LedgerReads reads[kReadKinds];  // by kind: reads of unknown values
  // Whether PyTorch's own counts of memory are read; else they are zero.
  std::uint32_t counts_known;
  Computing computing;
  char computing_note[240];
  LedgerPlaces out_of_memory;      // refused allocations
  LedgerPlaces free_memory_reads;  // cudaMemGetInfo and its kin, asked by the program itself
  LedgerPlaces done_reads;         // whether work is done, asked by the program
  LedgerPlaces elapsed_reads;      // how long it took
  LedgerPlaces profiles;           // profiled the card, whose device times are 0
  // How often PyTorch's allocators asked whether a block is free that work may still use, where the
  // host had not waited for that work: of the card; of page-locked memory.
  std::uint64_t blocks_in_question, pinned_in_question;
  LedgerFacts facts[kFacts];         // by kind
  LedgerNcclCalls nccl[kNcclCalls];  // by NcclCall
  LedgerWorkspaces workspaces;
};

// A location's reads of unknown values.
inline std::uint64_t unknown_calls(const LedgerReadBack& row) {
  return row.zero_calls + row.uncertain_calls + row.substitute_calls;
}

// Calls visit(row) for each row, and for what found none.
template <typename Table, typename Visit>
void for_each_row(const Table& table, Visit&& visit) {
  constexpr auto most = std::extent_v<decltype(Table::rows)>;
  for (std::uint32_t i = 0; i < table.count && i < most; ++i) visit(table.rows[i]);
  if (table.beyond.calls) visit(table.beyond);
}

// The same of all reads, and visit(kind, row) of all facts.
template <typename Visit>
void for_each_read(const Ledger& ledger, Visit&& visit) {
  for (const LedgerReads& reads : ledger.reads) for_each_row(reads, visit);
  for_each_row(ledger.known_reads, visit);
}
template <typename Visit>
void for_each_fact(const Ledger& ledger, Visit&& visit) {
  for (int kind = 0; kind < kFacts; ++kind)
    for_each_row(ledger.facts[kind],
                 [&](const LedgerFact& row) { visit(static_cast<Fact>(kind), row); });
}

// The same of the calls of NCCL that were made: visit(call, row).
template <typename Visit>
void for_each_nccl_call(const Ledger& ledger, Visit&& visit) {
  for (int call = 0; call < kNcclCalls; ++call)
    if (ledger.nccl[call].calls) visit(static_cast<NcclCall>(call), ledger.nccl[call]);
}

// What a process has started on its cards.
inline std::uint64_t launches_of(const Ledger& ledger) {
  return ledger.kernel_launches + ledger.graph_launches;
}

}  // namespace peakbench::emulator
