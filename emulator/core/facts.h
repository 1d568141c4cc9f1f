// Kinds of entries in a ledger in addition to its counters: reads by the host, calls that were not
// emulated or failed, and missing workspaces. The tables in facts.cpp define what a kind means for
// the verdict, and its words. Nothing else is decided by words.
#pragma once

#include <cstdint>
#include <string>

namespace peakbench::emulator {

struct LedgerFact;
struct LedgerWorkspace;

// What an entry means for the figures.
enum class Effect : std::uint32_t {
  none,
  note,         // they are exact; what that rests on
  condition,    // they are exact if the program's path does not depend on it
  lower_bound,  // a card takes as much or more
  unreliable,
};
const char* word_of(Effect effect);

// What the host read of the device. The same numbers go through the C interface (values_hook.h).
enum class ReadKind : std::uint32_t {
  bytes,  // unknown purpose
  size,   // the number of rows of an operator's result
  boolean,
  integer,
  floating,
  finite,   // whether values are finite, which unknown values are taken to be
  seed,     // a random number from all integers
  storage,  // a storage as it is: torch.save
  copy,     // a tensor onto the host, in a process without Python, which reads it by operators
  logged,   // an integer that the program only formats or logs (PythonUse)
};
inline constexpr int kReadKinds = 10;

// For reads of unknown values.
Effect effect_of(ReadKind kind);
const char* word_of(ReadKind kind);  // "integer"; empty for bytes

enum class Fact : std::uint32_t {
  refused_call,  // an entry point that is not emulated: `function`
  // What would have gone wrong on a card, too, or makes the figures wrong.
  copy_past_end,  // `what` (a copy, a fill) by `function`
  copy_to_nothing,
  symbol_past_end,
  device_assert,   // `what` was found wrong by the kernel of `function`, called at `place`
  pinned_written,  // by a kernel
  captured_copy,
  value_failed,  // of what the host may read: `what` stopped its computation
  nccl_failure,  // `what`
  // Answered without a model of what a card does.
  open_choice,    // the host reads, at `place`, `what` the operator `function` leaves open
  shared_memory,  // CUDA IPC: other processes may write there
  memory_of_another,
  unified_memory,
  pool_growth,
  pool_in_capture,
  reserve_space,
  unknown_kernel,
  idle_sensors,
  elapsed_time,
  raised_limit,
  nccl_memory,
  nccl_alone,  // `rank` of `ranks`
  nccl_two_ranks,
  nccl_split_alone,
  nccl_unwatched,
  measured_workspace,         // of cuDNN; `what`: where and when
  workspace_of_another_card,  // the same, of a card of the same compute capability
};
inline constexpr int kFacts = 27;

// The list of a report that an entry of this kind belongs to.
enum class FactList : std::uint32_t { refused, faults, unmodelled };
FactList list_of(Fact kind);
Effect effect_of(Fact kind);
const char* word_of(Fact kind);  // "open_choice": as reports and results name it

// As lists name it: "cudaFoo", "aten::sort, read at train.py:5: the order of equal keys is not
// specified". Without the details that differ, where the row has none.
std::string text_of(Fact kind, const LedgerFact& row);
// As a reason or a condition of the verdict.
std::string sentence_of(Fact kind, const LedgerFact& row);

// A call of NCCL that ranks make together, or of which one sends what another receives.
enum class NcclCall : std::uint32_t {
  all_gather,
  all_reduce,
  broadcast,
  reduce,
  reduce_scatter,
  all_to_all,
  split,
  send,
  receive,
};
inline constexpr int kNcclCalls = 9;
const char* word_of(NcclCall call);  // "ncclAllGather"

// A workspace whose size the vendor's library chooses. Those of convolutions are measured or
// estimated; all others count as none.
enum class Workspace : std::uint32_t {
  cudnn_engine,
  cudnn_rnn,
  cudnn_batch_norm,
  cufft_plan,
  cusparse_lt,
  answered,  // the entry point `function` answered with 0 bytes
  cudnn_measured,
  cudnn_estimated,
};
std::string text_of(const LedgerWorkspace& row);  // "cudnn engine workspace"
// As lists of what is not modelled name it: "cusolverDnXpotrf_bufferSize: answered with 0 bytes".
std::string list_text_of(const LedgerWorkspace& row);

}  // namespace peakbench::emulator
