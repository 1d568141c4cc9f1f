#include "verdict/judge.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "core/kernels.h"
#include "core/memory.h"
#include "core/pools.h"
#include "core/read_kinds.h"
#include "verdict/memory_left.h"
#include "verdict/timing.h"
#include "verdict/workspaces.h"

namespace peakbench::emulator {
namespace {

constexpr std::size_t kMostLines = 12;

std::string where(const LedgerReadBack& row) {
  const char* name = row.operation[0] ? row.operation : row.function;
  return row.place[0] ? fmt::format("{} at {}", name, row.place) : name;
}

std::string what_was_read(const LedgerReadBack& row) {
  const std::string_view kind = row.kind;
  if (kind == kReadSize) return "a size that rests on values that are not known";
  if (kind == kReadFinite) return "whether values are finite, which they are taken to be";
  if (kind == kReadCopy) return "values that are not known, onto the host as they are";
  if (kind == kReadStorage) return "storages whose bytes are not known";
  if (kind.empty()) return "bytes that are not known";
  return fmt::format("{} values that are not known", kind);
}

// Where the card refused it some, too, that is what ended it.
bool refused_by_host_alone(const Ledger& ledger) {
  const auto* end = ledger.devices + std::min<unsigned>(ledger.device_count, kLedgerDevices);
  return ledger.host_refusals > 0 &&
         std::all_of(ledger.devices, end,
                     [](const LedgerDevice& device) { return device.refused_allocations == 0; });
}

class Judge {
 public:
  Judge(const std::vector<const Ledger*>& ledgers, const VerdictRequest& request)
      : ledgers_(ledgers), request_(request) {}

  void process(const Ledger& ledger) {
    for (unsigned i = 0; i < std::min<unsigned>(ledger.read_back_count, kLedgerRows); ++i)
      if (unknown_calls(ledger.read_backs[i])) read(ledger.read_backs[i]);
    if (ledger.read_backs_dropped)
      unreliable(fmt::format("{} reads of device memory found no room in the record",
                             ledger.read_backs_dropped));
    for (unsigned i = 0; i < std::min<unsigned>(ledger.refused.count, kLedgerRows); ++i)
      unreliable(fmt::format("{} is not emulated and was refused: a real card may have gone on",
                             ledger.refused.rows[i].name));
    for (unsigned i = 0; i < std::min<unsigned>(ledger.faults.count, kLedgerRows); ++i)
      fault(ledger, ledger.faults.rows[i].name);
    for (unsigned i = 0; i < std::min<unsigned>(ledger.unmodelled.count, kLedgerRows); ++i)
      unmodelled(ledger, ledger.unmodelled.rows[i]);
    if (!request_.of_case && !ledger.finished && used_the_card(ledger) && !is_left_behind(ledger))
      lower(fmt::format("process {} did not come to its end by itself", ledger.pid));
    if (refused_by_host_alone(ledger))
      unreliable(
          fmt::format("this machine refused process {} memory that the card had (ulimit -v, a "
                      "limit of its memory): raise the limit",
                      ledger.pid));
    memory_left(ledger);
    timing(ledger);
    if (ledger.shared_page_allocations)
      upper(
          "memory was asked of CUDA in small pieces, without PyTorch's caching allocator: each "
          "takes pages of 2 MiB of its own here, and a driver puts several into one");
    computing(ledger);
  }

  void ending() {
    if (request_.wait_status == 0) return;
    lower(fmt::format("the {} did not end well: it may have needed more later",
                      request_.of_case ? "case" : "program"));
  }

  void shared_cards() {
    for (const auto& shared : request_.shared_cards)
      add(result_.conditions,
          fmt::format("{} processes had memory of card {} at the same time: the peak of them "
                      "together depends on when each of them ran",
                      shared.processes, shared.card));
  }

  void unused() { unreliable("nothing was taken from a card that these stand-ins could see"); }

  Verdict verdict() {
    if (request_.streams == Streams::late)
      add(result_.notes, "streams=late: work is done when the host waits for it, and no earlier");
    if (request_.streams == Streams::soon)
      add(result_.notes, "streams=soon: work is done when it is asked for a second time");
    const bool only_workspaces = !workspaces_.empty() && !bounded_below_;
    bounded_below_ |= !workspaces_.empty();
    name_workspaces();
    if (bounded_below_ && bounded_above_) {
      result_.kind = VerdictKind::unreliable;
    } else if (result_.kind != VerdictKind::unreliable) {
      if (bounded_below_) result_.kind = VerdictKind::lower_bound;
      if (bounded_above_) result_.kind = VerdictKind::upper_bound;
    }
    if (result_.kind == VerdictKind::exact && !result_.conditions.empty())
      result_.kind = VerdictKind::exact_if;
    if (result_.kind == VerdictKind::lower_bound && only_workspaces && workspaces_counted_)
      result_.workspace_room_bytes = static_cast<std::int64_t>(*least_room_);
    if (!workspaces_.empty() && !workspaces_counted_)
      add(result_.notes,
          "a workspace is held while one call runs: the peak lies higher by the largest that is "
          "held "
          "at the peak, and by nothing where the peak lies elsewhere");
    if (convolutions_)
      advise(
          fmt::format("{} takes PyTorch's own convolutions and attention, whose memory is known",
                      request_.of_case ? "--cudnn off" : "torch.backends.cudnn.enabled = False"));
    if (sizes_ && request_.assume.empty())
      advise("--assume nonzero=none and --assume nonzero=all give a lower and an upper bound");
    if (branches_ && !request_.of_case)
      advise(
          "run it with inputs from the host and small weights, or make the program's path not "
          "depend on what it reads there");
    return std::move(result_);
  }

 private:
  void read(const LedgerReadBack& row) {
    const std::string_view kind = row.kind;
    const auto calls = unknown_calls(row);
    std::string text = fmt::format("{} read {} ({} time{})", where(row), what_was_read(row), calls,
                                   calls == 1 ? "" : "s");
    if (kind == kReadSeed) return;
    if (kind == kReadFloating || kind == kReadFinite || kind == kReadStorage || kind == kReadCopy)
      return add(result_.conditions, std::move(text));
    if (kind == kReadSize) return size(std::move(text));
    branches_ = true;
    unreliable(std::move(text));
  }

  // What torchrun ended, and what ranks missed of those that were ended, is no part of the run that
  // followed.
  bool is_left_behind(const Ledger& ledger) {
    const bool earlier = is_of_an_earlier_attempt(ledger, ledgers_);
    if (earlier)
      add(result_.notes,
          fmt::format("attempt {} of elastic training failed and was ended; another followed",
                      ledger.elastic_attempt));
    return earlier;
  }

  void fault(const Ledger& ledger, const std::string& name) {
    if (!name.starts_with("NCCL: ") || !is_left_behind(ledger)) unreliable(name);
  }

  void size(std::string text) {
    sizes_ = true;
    if (request_.assume == "nonzero=all") {
      upper(text + ": all rows are assumed");
    } else if (request_.assume == "nonzero=none") {
      lower(text + ": no rows are assumed");
    } else {
      unreliable(std::move(text));
    }
  }

  void unmodelled(const Ledger& ledger, const LedgerName& entry) {
    const std::string_view name = entry.name;
    if (name.find("alone, the others") != std::string_view::npos ||
        name.ends_with("is not specified"))
      add(result_.conditions, std::string(name));
    if (name == kSharedMemory)
      add(result_.conditions,
          "processes share memory of the card (CUDA IPC): what one of them writes, the others do "
          "not see");
    if (name == kUnknownKernel)
      add(result_.conditions,
          "the program asked for the registers, shared memory or occupancy of a kernel that has no "
          "machine code for this card: what it sizes by them is a guess");
    if (name.starts_with("unified memory")) lower(std::string(name));
    if (name == kPoolGrowth)
      add(result_.conditions,
          "memory pools (cudaMallocAsync) grow in steps that NVIDIA does not document, taken to be "
          "of 32 MiB: the peak and what is reserved rest on it, what is allocated does not");
    if (const auto workspace = missing_workspace(ledger, entry, request_.peak_allocated_bytes))
      missing(*workspace);
  }

  void missing(const MissingWorkspace& workspace) {
    const bool counted = workspace.room_bytes.has_value();
    workspaces_counted_ &= counted;
    if (counted)
      least_room_ = std::min(least_room_.value_or(*workspace.room_bytes), *workspace.room_bytes);
    convolutions_ |= workspace.what == "cudnn engine workspace";
    workspaces_.push_back(workspace);
  }

  // The worst first: those whose room is not known, then those with the least.
  void name_workspaces() {
    std::ranges::stable_sort(workspaces_, {}, &MissingWorkspace::room_bytes);
    for (const auto& workspace : workspaces_) add(result_.reasons, text_of(workspace));
  }

  void memory_left(const Ledger& ledger) {
    auto sentences = free_memory_reads(ledger, request_.context_bytes);
    if (request_.wait_status == 0) {
      auto refused = survived_refusals(ledger);
      std::ranges::move(refused, std::back_inserter(sentences));
    }
    if (!sentences.empty() && !request_.context_bytes)
      advise(
          fmt::format("set memory aside for the CUDA context and look whether the figures stay: "
                      "{},context=SIZE",
                      request_.of_case ? "--device emulated:NAME" : "--card NAME"));
    for (auto& sentence : sentences) add(result_.conditions, std::move(sentence));
  }

  void timing(const Ledger& ledger) {
    auto conditions = timing_reads(ledger);
    if (auto blocks = blocks_in_question(ledger, request_.streams); !blocks.empty())
      conditions.push_back(std::move(blocks));
    if (!conditions.empty() && request_.streams == Streams::at_once && !request_.of_case)
      advise(
          "look whether the figures stay where streams lag: --card NAME,streams=soon, and "
          "streams=late");
    for (auto& sentence : conditions) add(result_.conditions, std::move(sentence));
    if (auto pinned = pinned_in_question(ledger, request_.streams); !pinned.empty())
      add(result_.notes, std::move(pinned));
  }

  void computing(const Ledger& ledger) {
    if (ledger.computing == Computing::off)
      add(result_.notes, "values were not computed: --no-compute");
    if (ledger.computing != Computing::unavailable) return;
    add(result_.notes, fmt::format("values were not computed: {}", ledger.computing_note));
    if ((sizes_ || branches_) && !request_.of_case)
      advise("run the program with the PyTorch that this build is for");
  }

  void lower(std::string text) {
    bounded_below_ = true;
    add(result_.reasons, std::move(text));
  }

  void upper(std::string text) {
    bounded_above_ = true;
    add(result_.reasons, std::move(text));
  }

  void unreliable(std::string text) {
    result_.kind = VerdictKind::unreliable;
    add(result_.reasons, std::move(text));
  }

  // Several processes of a program say the same.
  static void add(std::vector<std::string>& to, std::string text) {
    if (std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
  }
  void advise(std::string text) { add(result_.advice, std::move(text)); }

  const std::vector<const Ledger*>& ledgers_;
  const VerdictRequest& request_;
  Verdict result_;
  bool bounded_below_ = false, bounded_above_ = false, sizes_ = false, branches_ = false;
  std::vector<MissingWorkspace> workspaces_;
  bool workspaces_counted_ = true, convolutions_ = false;
  std::optional<std::uint64_t> least_room_;
};

void add_lines(std::string& out, const char* before, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    out += fmt::format("  {}{}\n", before, lines[i]);
  if (lines.size() > kMostLines)
    out += fmt::format("  ... and {} more (--json has all)\n", lines.size() - kMostLines);
}

}  // namespace

Verdict judge(const std::vector<const Ledger*>& ledgers, const VerdictRequest& request) {
  Judge judge(ledgers, request);
  for (const Ledger* ledger : ledgers) judge.process(*ledger);
  if (ledgers.empty()) judge.unused();
  judge.shared_cards();
  judge.ending();
  return judge.verdict();
}

bool is_of_an_earlier_attempt(const Ledger& ledger, const std::vector<const Ledger*>& ledgers) {
  return ledger.elastic_attempt >= 0 && std::ranges::any_of(ledgers, [&](const Ledger* other) {
           return other->parent_pid == ledger.parent_pid &&
                  other->elastic_attempt > ledger.elastic_attempt;
         });
}

bool used_the_card(const Ledger& ledger) {
  const auto* end = ledger.devices + std::min<unsigned>(ledger.device_count, kLedgerDevices);
  const bool took = std::any_of(ledger.devices, end, [](const LedgerDevice& device) {
    return device.allocations > 0 || device.refused_allocations > 0;
  });
  return took || ledger.kernel_launches > 0;
}

std::string verdict_text(const Verdict& verdict) {
  const bool conditional = verdict.kind == VerdictKind::exact_if;
  std::string out = fmt::format("Verdict: {}{}\n", verdict_word(verdict.kind),
                                conditional ? " the program's path does not depend on these:"
                                : verdict.reasons.empty() ? ""
                                                          : ", because");
  add_lines(out, "", verdict.reasons);
  if (!conditional && !verdict.conditions.empty())
    out += "Provided that the program's path does not depend on these:\n";
  add_lines(out, "", verdict.conditions);
  add_lines(out, "note: ", verdict.notes);
  add_lines(out, "to do: ", verdict.advice);
  return out;
}

}  // namespace peakbench::emulator
