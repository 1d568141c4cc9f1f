#include "verdict/judge.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "base/numbers.h"
#include "verdict/verdict_text.h"

namespace peakbench::emulator {
namespace {

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
      : ledgers_(ledgers), request_(request) {
    for (const Ledger* ledger : ledgers) {
      const bool is_seen = ledger->counts_known || !used_the_card(*ledger);
      last_allocation_ = std::max(last_allocation_, is_seen ? ledger->last_allocation : kAtTheEnd);
    }
  }

  void process(const Ledger& ledger) {
    for (const LedgerReadBack* row : unknown_reads(ledger)) read(*row);
    for_each_fact(ledger, [&](Fact kind, const LedgerFact& row) { fact(ledger, kind, row); });
    for (const auto& one : missing_workspaces(ledger, request_.peak_allocated_bytes)) missing(one);
    convolutions(ledger);
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

  void unused() { unreliable("no memory was taken through the stub libraries"); }

  void second_guess() {
    if (!request_.second_guess) return;
    const auto& guess = *request_.second_guess;
    result_.second_guess = guess;
    if (guess.same) {
      add(result_.conditions,
          fmt::format("what it reads is not known, and its peaks are the same with other values "
                      "({} runs)",
                      guess.runs));
    } else if (!guess.problem.empty()) {
      add(result_.notes, "with other values it is not known: " + guess.problem);
    } else {
      const auto [least, most] = std::ranges::minmax(guess.peak_bytes);
      unreliable(fmt::format("its peaks depend on values that are not known: {} to {} in {} runs",
                             size_text(least), size_text(most), guess.runs));
    }
  }

  Verdict verdict() {
    if (request_.streams == Streams::late)
      add(result_.notes, "streams=late: work is done when the host waits for it, and no earlier");
    if (request_.streams == Streams::soon)
      add(result_.notes, "streams=soon: work is done when it is asked for a second time");
    const bool only_workspaces = !workspaces_.empty() && !bounded_below_;
    bounded_below_ |= !workspaces_.empty();
    name_workspaces();
    for (auto& text : estimates_) add(result_.reasons, std::move(text));
    result_.estimate = estimate_;
    const bool holds_below = !bounded_above_ && !lowers_, holds_above = !bounded_below_ && !raises_;
    if ((bounded_below_ && !holds_below) || (bounded_above_ && !holds_above)) {
      result_.kind = VerdictKind::unreliable;
    } else if (result_.kind != VerdictKind::unreliable) {
      if (bounded_below_) result_.kind = VerdictKind::lower_bound;
      if (bounded_above_) result_.kind = VerdictKind::upper_bound;
    }
    if (result_.kind == VerdictKind::exact && estimate_) result_.kind = VerdictKind::estimate;
    if (result_.kind == VerdictKind::exact && !result_.conditions.empty())
      result_.kind = VerdictKind::exact_if;
    if (result_.kind == VerdictKind::lower_bound && only_workspaces && workspaces_counted_)
      result_.workspace_room_bytes = static_cast<std::int64_t>(*least_room_);
    if (!workspaces_.empty() && !workspaces_counted_)
      add(result_.notes,
          "a workspace exists during one call: the peak is higher by the largest workspace in use "
          "at the peak, and unchanged if none is in use then");
    if (convolutions_)
      advise(
          fmt::format("{} takes PyTorch's own convolutions and attention, whose memory is known",
                      request_.of_case ? "--cudnn off" : "torch.backends.cudnn.enabled = False"));
    if (teachable_)
      advise(
          "`peakbench doctor --workspaces --to FILE -- COMMAND` on a real card measures them, once "
          "for "
          "all later runs");
    if (sizes_ && request_.assume.empty())
      advise("--assume nonzero=none and --assume nonzero=all give a lower and an upper bound");
    if (guessable_ && !request_.second_guess && !request_.of_case)
      advise(
          fmt::format("--second-guess {} runs the program again with other values and compares its "
                      "peaks",
                      guesses_needed(ledgers_)));
    if (branches_ && !request_.of_case)
      advise(
          "run it with inputs from the host and small weights, or make the program's path not "
          "depend on what it reads there");
    return std::move(result_);
  }

 private:
  void read(const LedgerReadBack& row) {
    const auto effect = effect_of(row.kind);
    if (effect == Effect::none || changes_nothing(row)) return;
    std::string text = text_of(row);
    if (is_the_same_with_others(row))
      return add(result_.notes, "other values were tried where " + text);
    guessable_ |= row.kind != ReadKind::finite;
    if (effect == Effect::condition) return add(result_.conditions, std::move(text));
    if (row.kind == ReadKind::size) return size(std::move(text));
    branches_ = true;
    unreliable(std::move(text));
  }

  // A number that is printed when all memory is allocated. Of others it is not enough that nothing
  // was allocated after them: with another value something might have been.
  bool changes_nothing(const LedgerReadBack& row) const {
    const bool is_number = row.kind == ReadKind::floating || row.kind == ReadKind::logged;
    return is_number && row.only_printed && row.first > last_allocation_;
  }

  // Checks for finite values are the same with other values, too.
  bool is_the_same_with_others(const LedgerReadBack& row) const {
    return row.kind != ReadKind::finite && request_.second_guess && request_.second_guess->same;
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

  void fact(const Ledger& ledger, Fact kind, const LedgerFact& row) {
    if (kind == Fact::nccl_failure && is_left_behind(ledger)) return;
    switch (effect_of(kind)) {
      case Effect::none:
        return;
      case Effect::note:
        return add(result_.notes, sentence_of(kind, row));
      case Effect::condition:
        return add(result_.conditions, sentence_of(kind, row));
      case Effect::lower_bound:
        return lower(sentence_of(kind, row));
      case Effect::unreliable:
        return unreliable(sentence_of(kind, row));
    }
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

  void convolutions(const Ledger& ledger) {
    const auto workspaces = convolution_workspaces(ledger, request_.peak_allocated_bytes);
    if (!workspaces) return;
    estimate_ = wider(estimate_.value_or(EstimateError{}), workspaces->error);
    convolutions_ = true;
    lowers_ |= workspaces->lowers;
    raises_ |= workspaces->raises;
    teachable_ |= !workspaces->all_measured;
    add(estimates_, text_of(*workspaces));
  }

  void missing(const MissingWorkspace& workspace) {
    const bool counted = workspace.room_bytes.has_value();
    workspaces_counted_ &= counted;
    if (counted)
      least_room_ = std::min(least_room_.value_or(*workspace.room_bytes), *workspace.room_bytes);
    convolutions_ |= workspace.kind == Workspace::cudnn_engine;
    workspaces_.push_back(workspace);
  }

  // The worst first: those whose room is not known, then those with the least.
  void name_workspaces() {
    std::ranges::stable_sort(workspaces_, {}, &MissingWorkspace::room_bytes);
    for (const auto& workspace : workspaces_) add(result_.reasons, text_of(workspace));
  }

  void memory_left(const Ledger& ledger) {
    std::vector<std::string> sentences;
    for_each_row(ledger.free_memory_reads, [&](const LedgerPlace& row) {
      sentences.push_back(free_memory_text(row, request_.context_bytes));
    });
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
    auto conditions = timing_conditions(ledger);
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

  // Where nobody sees what PyTorch's allocator hands out.
  static constexpr LedgerTime kAtTheEnd = std::numeric_limits<LedgerTime>::max();

  const std::vector<const Ledger*>& ledgers_;
  const VerdictRequest& request_;
  LedgerTime last_allocation_ = 0;  // in any of the processes
  Verdict result_;
  bool bounded_below_ = false, bounded_above_ = false, sizes_ = false, branches_ = false;
  bool guessable_ = false;
  std::vector<MissingWorkspace> workspaces_;
  bool workspaces_counted_ = true, convolutions_ = false, teachable_ = false;
  bool lowers_ = false, raises_ = false;  // an estimate may be too high, or too low
  std::optional<std::uint64_t> least_room_;
  std::optional<EstimateError> estimate_;
  std::vector<std::string> estimates_;  // as reasons, behind what is missing
};

}  // namespace

Verdict judge(const std::vector<const Ledger*>& ledgers, const VerdictRequest& request) {
  Judge judge(ledgers, request);
  for (const Ledger* ledger : ledgers) judge.process(*ledger);
  if (ledgers.empty()) judge.unused();
  judge.second_guess();
  judge.shared_cards();
  judge.ending();
  return judge.verdict();
}

bool rests_on_unknown_values(const std::vector<const Ledger*>& ledgers) {
  return std::ranges::any_of(ledgers, [](const Ledger* ledger) {
    return std::ranges::any_of(unknown_reads(*ledger), [](const LedgerReadBack* row) {
      return row->kind != ReadKind::finite && effect_of(row->kind) != Effect::none;
    });
  });
}

std::int64_t guesses_needed(const std::vector<const Ledger*>& ledgers) {
  std::int64_t needed = 2;
  for (const Ledger* ledger : ledgers) {
    std::uint64_t integers = 0, sizes = 0;
    for (const LedgerReadBack* row : unknown_reads(*ledger)) {
      if (row->kind == ReadKind::integer) integers += unknown_calls(*row);
      if (row->kind == ReadKind::size) sizes += unknown_calls(*row);
    }
    if (integers + sizes > 1) needed = std::max<std::int64_t>(needed, sizes > 0 ? 4 : 3);
  }
  return needed;
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

}  // namespace peakbench::emulator
