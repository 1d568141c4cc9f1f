#include "core/facts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/ledger.h"

namespace peakbench::emulator {
namespace {

struct ReadRow {
  ReadKind kind;
  const char* word;
  Effect effect;
};

constexpr std::array<ReadRow, kReadKinds> kReads{{
    {ReadKind::bytes, "", Effect::unreliable},
    {ReadKind::size, "size", Effect::unreliable},
    {ReadKind::boolean, "bool", Effect::unreliable},
    {ReadKind::integer, "integer", Effect::unreliable},
    {ReadKind::floating, "floating", Effect::condition},
    {ReadKind::finite, "finite", Effect::condition},
    {ReadKind::seed, "seed", Effect::none},
    {ReadKind::storage, "storage", Effect::condition},
    {ReadKind::copy, "copy", Effect::condition},
    {ReadKind::logged, "logged integer", Effect::condition},
}};

// In the texts, {function}, {what}, {place}, {rank} and {ranks} are the entry's. A part in brackets
// is left out, or what follows its bar is taken, where the entry has not got what the part names.
struct FactRow {
  Fact kind;
  const char* word;
  FactList list;
  Effect effect;
  const char* text;
  const char* sentence = nullptr;  // the same as `text`
};

constexpr std::array<FactRow, kFacts> kFactRows{{
    {Fact::refused_call, "refused_call", FactList::refused, Effect::unreliable,
     "[{function}|another function]",
     "[{function}|another function] is not emulated and was refused: a real card may have gone on"},
    {Fact::copy_past_end, "copy_past_end", FactList::faults, Effect::unreliable,
     "[{what}|another copy] past the end of its block was refused[ ({function})]"},
    {Fact::copy_to_nothing, "copy_to_nothing", FactList::faults, Effect::unreliable,
     "[{what}|another copy] where no memory is was refused[ ({function})]"},
    {Fact::symbol_past_end, "symbol_past_end", FactList::faults, Effect::unreliable,
     "a copy past the end of a symbol of the program was refused"},
    {Fact::device_assert, "device_assert", FactList::faults, Effect::unreliable,
     "device-side assert[ in {function}][ at {place}][: {what}]"},
    {Fact::pinned_written, "pinned_written", FactList::faults, Effect::unreliable,
     "a kernel writes page-locked host memory: its bytes stay, and reads are not seen"},
    {Fact::captured_copy, "captured_copy", FactList::faults, Effect::unreliable,
     "a copy to the host in a captured graph: what a replay writes there is not seen"},
    {Fact::value_failed, "value_failed", FactList::faults, Effect::unreliable,
     "a value could not be computed[: {what}]"},
    {Fact::nccl_failure, "nccl_failure", FactList::faults, Effect::unreliable,
     "NCCL: [{what}|another failure]"},
    {Fact::open_choice, "open_choice", FactList::unmodelled, Effect::condition,
     "[{function}|another operator][, read at {place}]: [{what}|what it takes] is not specified"},
    {Fact::shared_memory, "shared_memory", FactList::unmodelled, Effect::condition,
     "memory that other processes may open (CUDA IPC): what they write is not seen",
     "processes share memory of the card (CUDA IPC): what one of them writes, the others do not "
     "see"},
    {Fact::memory_of_another, "memory_of_another", FactList::unmodelled, Effect::none,
     "memory of another process (CUDA IPC): charged to its owner, its bytes unknown"},
    {Fact::unified_memory, "unified_memory", FactList::unmodelled, Effect::lower_bound,
     "unified memory: none of it is charged to the card"},
    {Fact::pool_growth, "pool_growth", FactList::unmodelled, Effect::condition,
     "cudaMallocAsync: growth of the driver's memory pools",
     "memory pools (cudaMallocAsync) grow in steps that NVIDIA does not document, taken to be of "
     "32 MiB: the peak and what is reserved rest on it, what is allocated does not"},
    {Fact::pool_in_capture, "pool_in_capture", FactList::unmodelled, Effect::none,
     "cudaMallocAsync in a captured graph: its memory is taken when it is captured"},
    {Fact::reserve_space, "reserve_space", FactList::unmodelled, Effect::none,
     "cudnn RNN reserve space: a model of what backward needs"},
    {Fact::unknown_kernel, "unknown_kernel", FactList::unmodelled, Effect::condition,
     "registers and shared memory of a kernel without machine code for this card",
     "the program asked for the registers, shared memory or occupancy of a kernel that has no "
     "machine code for this card: what it sizes by them is a guess"},
    {Fact::idle_sensors, "idle_sensors", FactList::unmodelled, Effect::none,
     "NVML: temperature, power and utilisation are those of an idle card"},
    {Fact::elapsed_time, "elapsed_time", FactList::unmodelled, Effect::none,
     "time between events: always one second"},
    {Fact::raised_limit, "raised_limit", FactList::unmodelled, Effect::none,
     "a raised device limit: memory that the driver sets aside for it"},
    {Fact::nccl_memory, "nccl_memory", FactList::unmodelled, Effect::none,
     "NCCL: its own device memory"},
    {Fact::nccl_alone, "nccl_alone", FactList::unmodelled, Effect::condition,
     "NCCL: rank {rank} of {ranks} alone, the others taken to be like it"},
    {Fact::nccl_two_ranks, "nccl_two_ranks", FactList::unmodelled, Effect::none,
     "NCCL: two ranks on one card, which NCCL itself refuses"},
    {Fact::nccl_split_alone, "nccl_split_alone", FactList::unmodelled, Effect::none,
     "ncclCommSplit of a rank alone: how many ranks the new communicator has"},
    {Fact::nccl_unwatched, "nccl_unwatched", FactList::unmodelled, Effect::none,
     "NCCL: when PyTorch frees the tensors of collectives that nobody waits for"},
}};

struct WorkspaceRow {
  Workspace kind;
  const char* text;
  bool answered = false;  // how large it is, with 0 bytes
};

constexpr std::array kWorkspaceRows{
    WorkspaceRow{Workspace::cudnn_engine, "cudnn engine workspace"},
    WorkspaceRow{Workspace::cudnn_rnn, "cudnn RNN workspace", true},
    WorkspaceRow{Workspace::cudnn_batch_norm, "cudnn batch normalization workspace"},
    WorkspaceRow{Workspace::cufft_plan, "cufft plan workspace"},
    WorkspaceRow{Workspace::cusparse_lt, "cusparseLtSpMMACompressedSize2 workspace"},
    WorkspaceRow{Workspace::answered, "workspace of another function", true},
};

// A ledger may hold anything: the program itself can have written into it.
template <typename Rows, typename Kind>
const auto& row_of(const Rows& rows, Kind kind) {
  const auto at = static_cast<std::size_t>(kind);
  return rows[at < rows.size() ? at : 0];
}

template <typename Rows>
constexpr bool is_in_order(const Rows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].kind) != i) return false;
  return true;
}
static_assert(is_in_order(kReads) && is_in_order(kFactRows) && is_in_order(kWorkspaceRows));

std::string value_of(std::string_view name, const LedgerFact& row) {
  if (name == "function") return row.function;
  if (name == "what") return row.what;
  if (name == "place") return row.place;
  return std::to_string(name == "rank" ? row.rank : row.ranks);
}

// `whole` becomes false where a value is empty.
std::string filled(std::string_view text, const LedgerFact& row, bool& whole) {
  std::string out;
  while (!text.empty()) {
    const auto open = std::min(text.find('{'), text.size());
    out += text.substr(0, open);
    if (open == text.size()) break;
    const auto close = text.find('}');
    const auto value = value_of(text.substr(open + 1, close - open - 1), row);
    whole &= !value.empty();
    out += value;
    text.remove_prefix(close + 1);
  }
  return out;
}

std::string with_details(std::string_view text, const LedgerFact& row) {
  std::string out;
  while (!text.empty()) {
    bool whole = true;
    const auto open = std::min(text.find('['), text.size());
    out += filled(text.substr(0, open), row, whole);
    if (open == text.size()) break;
    const auto close = text.find(']');
    const auto part = text.substr(open + 1, close - open - 1);
    const auto bar = std::min(part.find('|'), part.size());
    whole = true;
    const auto first = filled(part.substr(0, bar), row, whole);
    out += whole ? first : std::string(bar < part.size() ? part.substr(bar + 1) : "");
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

Effect effect_of(ReadKind kind) { return row_of(kReads, kind).effect; }
const char* word_of(ReadKind kind) { return row_of(kReads, kind).word; }

FactList list_of(Fact kind) { return row_of(kFactRows, kind).list; }
Effect effect_of(Fact kind) { return row_of(kFactRows, kind).effect; }
const char* word_of(Fact kind) { return row_of(kFactRows, kind).word; }

std::string text_of(Fact kind, const LedgerFact& row) {
  return with_details(row_of(kFactRows, kind).text, row);
}

std::string sentence_of(Fact kind, const LedgerFact& row) {
  const FactRow& words = row_of(kFactRows, kind);
  return with_details(words.sentence ? words.sentence : words.text, row);
}

std::string text_of(const LedgerWorkspace& row) {
  return row.function[0] ? row.function : row_of(kWorkspaceRows, row.kind).text;
}

std::string list_text_of(const LedgerWorkspace& row) {
  return text_of(row) +
         (row_of(kWorkspaceRows, row.kind).answered ? ": answered with 0 bytes" : "");
}

const char* word_of(Effect effect) {
  switch (effect) {
    case Effect::condition:
      return "condition";
    case Effect::lower_bound:
      return "lower bound";
    case Effect::unreliable:
      return "unreliable";
    case Effect::none:
      break;
  }
  return "none";
}

}  // namespace peakbench::emulator
