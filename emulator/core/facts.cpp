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

#define FAULT(kind) Fact::kind, #kind, FactList::faults, Effect::unreliable
#define UNMODELLED(kind, effect) Fact::kind, #kind, FactList::unmodelled, Effect::effect
constexpr std::array<FactRow, kFacts> kFactRows{{
    {Fact::refused_call, "refused_call", FactList::refused, Effect::unreliable,
     "[{function}|another function]",
     "[{function}|another function] is not emulated and was refused: a real card may have gone on"},
    {FAULT(copy_past_end),
     "[{what}|another copy] past the end of its block was refused[ ({function})]"},
    {FAULT(copy_to_nothing), "[{what}|another copy] where no memory is was refused[ ({function})]"},
    {FAULT(symbol_past_end), "a copy past the end of a symbol of the program was refused"},
    {FAULT(device_assert), "device-side assert[ in {function}][ at {place}][: {what}]"},
    {FAULT(pinned_written),
     "a kernel writes page-locked host memory: its bytes stay, and reads are not seen"},
    {FAULT(captured_copy),
     "a copy to the host in a captured graph: what a replay writes there is not seen"},
    {FAULT(value_failed), "a value could not be computed[: {what}]"},
    {FAULT(nccl_failure), "NCCL: [{what}|another failure]"},
    {UNMODELLED(open_choice, condition),
     "[{function}|another operator][, read at {place}]: [{what}|what it takes] is not specified"},
    {UNMODELLED(shared_memory, condition),
     "memory that other processes may open (CUDA IPC): what they write is not seen",
     "processes share memory of the card (CUDA IPC): what one of them writes, the others do not "
     "see"},
    {UNMODELLED(memory_of_another, none),
     "memory of another process (CUDA IPC): charged to its owner, its bytes unknown"},
    {UNMODELLED(unified_memory, lower_bound), "unified memory: none of it is charged to the card"},
    {UNMODELLED(pool_growth, condition), "cudaMallocAsync: growth of the driver's memory pools",
     "memory pools (cudaMallocAsync) grow in steps that NVIDIA does not document, taken to be of "
     "32 MiB: the peak and what is reserved rest on it, what is allocated does not"},
    {UNMODELLED(pool_in_capture, none),
     "cudaMallocAsync in a captured graph: its memory is taken when it is captured"},
    {UNMODELLED(reserve_space, none), "cudnn RNN reserve space: a model of what backward needs"},
    {UNMODELLED(unknown_kernel, condition),
     "registers and shared memory of a kernel without machine code for this card",
     "the program asked for the registers, shared memory or occupancy of a kernel that has no "
     "machine code for this card: what it sizes by them is a guess"},
    {UNMODELLED(idle_sensors, none),
     "NVML: temperature, power and utilisation are those of an idle card"},
    {UNMODELLED(elapsed_time, none), "time between events: always one second"},
    {UNMODELLED(raised_limit, none),
     "a raised device limit: memory that the driver sets aside for it"},
    {UNMODELLED(nccl_memory, none), "NCCL: its own device memory"},
    {UNMODELLED(nccl_alone, condition),
     "NCCL: rank {rank} of {ranks} alone, the others taken to be like it"},
    {UNMODELLED(nccl_two_ranks, none), "NCCL: two ranks on one card, which NCCL itself refuses"},
    {UNMODELLED(nccl_split_alone, none),
     "ncclCommSplit of a rank alone: how many ranks the new communicator has"},
    {UNMODELLED(nccl_unwatched, none),
     "NCCL: when PyTorch frees the tensors of collectives that nobody waits for"},
    {UNMODELLED(measured_workspace, note),
     "cuDNN: workspaces of convolutions, as measured[: {what}]",
     "cuDNN's workspaces of convolutions were measured on such a card[: {what}]"},
    {UNMODELLED(workspace_of_another_card, condition),
     "cuDNN: workspaces of convolutions, as another card took[: {what}]",
     "cuDNN's workspaces of convolutions are those of another card of this compute capability[: "
     "{what}]"},
}};
#undef FAULT
#undef UNMODELLED

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
    WorkspaceRow{Workspace::cudnn_measured, "cudnn convolution workspace, measured"},
    WorkspaceRow{Workspace::cudnn_estimated, "cudnn convolution workspace, estimated"},
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

const char* word_of(NcclCall call) {
  constexpr std::array kNames{"ncclAllGather", "ncclAllReduce",     "ncclBroadcast",
                              "ncclReduce",    "ncclReduceScatter", "ncclAlltoAll",
                              "ncclCommSplit", "ncclSend",          "ncclRecv"};
  static_assert(kNames.size() == kNcclCalls);
  const auto at = static_cast<std::size_t>(call);
  return at < kNames.size() ? kNames[at] : "another call";
}

std::string list_text_of(const LedgerWorkspace& row) {
  return text_of(row) +
         (row_of(kWorkspaceRows, row.kind).answered ? ": answered with 0 bytes" : "");
}

const char* word_of(Effect effect) {
  constexpr const char* kWords[] = {"none", "note", "condition", "lower bound", "unreliable"};
  return kWords[static_cast<std::size_t>(effect)];
}

}  // namespace peakbench::emulator
