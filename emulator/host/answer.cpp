#include "emulator/host/answer.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers.h"

namespace peakbench::emulator {
namespace {

class Sentence {
 public:
  explicit Sentence(const EmulatedProgram& program)
      : program_(program), uses_(card_uses(program.ledgers)) {}

  Answer answer() && {
    answer_.total_bytes = program_.card.facts.total_memory_bytes;
    answer_.out_of_memory = find_out_of_memory(uses_, program_.wait_status);
    choose_card();
    if (uses_.empty()) {
      no_card();
    } else if (answer_.out_of_memory && !answer_.out_of_memory->swallowed) {
      too_large();
    } else if (program_.wait_status != 0) {
      failed();
    } else if (answer_.out_of_memory) {
      went_on();
    } else {
      ended_well();
    }
    return std::move(answer_);
  }

 private:
  void choose_card() {
    const auto& facts = program_.card.facts;
    answer_.context = context_taken(program_.card);
    answer_.shown_context =
        answer_.context.bytes ? answer_.context : largest_of(program_.card.context_memory);
    answer_.context_included = facts.context_bytes != 0;
    const auto peaks = peaks_of_cards(uses_, program_.card_peaks, facts.context_bytes);
    if (peaks.empty()) return;
    auto chosen = std::ranges::max_element(peaks, {}, &CardPeak::bytes);
    if (answer_.out_of_memory)
      chosen = std::ranges::find(peaks, answer_.out_of_memory->use.figures().card, &CardPeak::card);
    peak_ = *chosen;
    answer_.card = peak_.card;
    answer_.largest = *peak_.largest;
    answer_.peak_bytes = peak_.bytes;
    answer_.processes = peak_.users;
    answer_.communicator_ranks = communicator_ranks();
    several_cards_ = peaks.size() > 1;
  }

  // That the peak does not have.
  std::uint64_t contexts() const {
    return answer_.context_included ? 0 : peak_.users * answer_.context.bytes;
  }

  std::string card() const { return program_.card.spec; }

  // Whose figure it is, where there are several: " (rank 3)", " (card 0, 4 processes together)".
  std::string whose() const {
    if (peak_.users > 1)
      return fmt::format(" (card {}, {} processes together)", peak_.card, peak_.users);
    return whose(*peak_.largest);
  }

  std::string whose(const CardUse& use) const {
    std::set<const Ledger*> processes;
    for (const CardUse& one : uses_) processes.insert(one.process);
    const bool named = processes.size() > 1 || use.figures().rank >= 0;
    std::string text = named ? name_of(use, uses_) : "";
    const bool devices = std::ranges::any_of(uses_, [&](const CardUse& other) {
      return other.process == use.process && other.device != use.device;
    });
    if (devices || (!named && several_cards_))
      text += fmt::format("{}cuda:{}", text.empty() ? "" : ", ", use.device);
    return text.empty() ? "" : fmt::format(" ({})", text);
  }

  std::string context_text() const {
    if (answer_.context.bytes == 0)
      return std::string("no context set aside") +
             (answer_.communicator_ranks ? ", NCCL's buffers not included" : "");
    const auto bytes = (answer_.context.source == ContextSource::largest_known ? "up to " : "") +
                       size_text(answer_.context.bytes);
    const auto context = peak_.users > 1 ? fmt::format("contexts ({} of {})", peak_.users, bytes)
                                         : fmt::format("context ({})", bytes);
    if (answer_.context_included)
      return context + (answer_.communicator_ranks ? " included, NCCL's buffers not" : " included");
    return context +
           (answer_.communicator_ranks ? " and NCCL's buffers not included" : " not included");
  }

  std::size_t communicator_ranks() const {
    int most = 0;
    for (const CardUse& use : uses_)
      if (use.figures().card == peak_.card) most = std::max(most, use.figures().communicator_ranks);
    return static_cast<std::size_t>(most);
  }

  std::string verdict_text() const {
    const Verdict& verdict = program_.verdict;
    const std::string word = verdict_word(verdict.kind);
    const auto count = verdict.conditions.size();
    const bool may_have_some =
        verdict.kind == VerdictKind::exact_if || verdict.kind == VerdictKind::estimate;
    if (!may_have_some || count == 0) return word;
    const auto& guess = verdict.second_guess;
    if (guess && guess->same && count == 1 && verdict.kind == VerdictKind::exact_if)
      return fmt::format("the same with other values ({} runs)", guess->runs);
    return fmt::format("{} ({} condition{} below)", word, count, count == 1 ? "" : "s");
  }

  // "peak at least 0.115 GiB of 79.179 GiB (rank 0), context (0.5 GiB) not included; lower bound."
  std::string figures() const {
    const auto kind = program_.verdict.kind;
    const auto* bound = kind == VerdictKind::lower_bound   ? "at least "
                        : kind == VerdictKind::upper_bound ? "at most "
                        : kind == VerdictKind::estimate    ? "about "
                                                           : "";
    const auto& error = program_.verdict.estimate;
    const auto figure = size_text(answer_.peak_bytes) + (error ? ", " + text_of(*error) : "");
    return fmt::format("peak {}{} of {}{}, {}{}; {}.", bound, figure,
                       size_text(answer_.total_bytes), whose(), context_text(), unfinished_text(),
                       verdict_text());
  }

  std::vector<const Ledger*> unfinished() const {
    std::vector<const Ledger*> list;
    for (const Ledger* ledger : program_.ledgers)
      if (!ledger->finished && used_the_card(*ledger) &&
          !is_of_an_earlier_attempt(*ledger, program_.ledgers))
        list.push_back(ledger);
    return list;
  }

  std::string unfinished_text() const {
    const auto list = unfinished();
    if (list.empty()) return "";
    const auto who = list.size() == 1 ? fmt::format("process {}", list[0]->pid)
                                      : fmt::format("{} processes", list.size());
    return fmt::format(", {} did not end by itself (os._exit, exec or a signal)", who);
  }

  void say(Tone tone, std::optional<bool> fits, std::string sentence) {
    answer_.tone = tone;
    answer_.fits = fits;
    answer_.sentence = std::move(sentence);
  }

  void no_card() {
    const bool failed = program_.wait_status != 0;
    const auto ended =
        failed ? fmt::format(" and ended with {}", ending_text(program_.wait_status)) : "";
    say(failed ? Tone::bad : Tone::doubtful, std::nullopt,
        program_.ledgers.empty()
            ? fmt::format("Used no card{}: the program did not use CUDA, or not through the "
                          "libraries that {} replaces.",
                          ended, card())
            : fmt::format("Used no card{}: the program asked which cards there are, and took no "
                          "memory and started no kernel.",
                          ended));
  }

  void too_large() {
    const OutOfMemory& failure = *answer_.out_of_memory;
    const auto kind = program_.verdict.kind;
    const bool sure = kind != VerdictKind::unreliable && kind != VerdictKind::upper_bound;
    // Less than the card has: then it was for blocks that PyTorch could not use for it.
    const auto need = failure.asked_bytes && failure.needed_bytes > answer_.total_bytes
                          ? fmt::format("; it needs {} at least", size_text(failure.needed_bytes))
                          : "";
    say(sure ? Tone::bad : Tone::doubtful, sure ? std::optional(false) : std::nullopt,
        fmt::format(
            "{} {}: {} of {}{}, {}{}{}.",
            sure                               ? "Does not fit"
            : kind == VerdictKind::upper_bound ? "Ran out of memory, by an upper bound, of"
                                               : "Ran out of memory, by unreliable figures, of",
            card(), request_text(failure), size_text(answer_.total_bytes), whose(failure.use),
            context_text(), need, sure ? "" : fmt::format("; {}", verdict_word(kind))));
  }

  void failed() {
    const int status = program_.wait_status;
    const bool host = std::ranges::any_of(
        program_.ledgers, [](const Ledger* ledger) { return ledger->host_refusals > 0; });
    std::string why = ", not for lack of its memory";
    if (host)
      why =
          ", and this machine refused it memory that the card had (see `ulimit -v`), so it is "
          "unknown whether it fits";
    if (answer_.out_of_memory)
      why = fmt::format(", after it ran out of memory and continued ({} of {}{})",
                        request_text(*answer_.out_of_memory), size_text(answer_.total_bytes),
                        whose(answer_.out_of_memory->use));
    const bool killed = WIFSIGNALED(status);
    if (killed && !host && !answer_.out_of_memory) why = "";
    const auto head = killed ? fmt::format("Ended by {} on {}", ending_text(status), card())
                             : fmt::format("Failed on {} ({})", card(), ending_text(status));
    say(Tone::bad, std::nullopt, fmt::format("{}{}: until then {}", head, why, figures()));
  }

  void went_on() {
    const OutOfMemory& failure = *answer_.out_of_memory;
    say(Tone::doubtful, std::nullopt,
        fmt::format("Ran out of memory of {} {} and continued: {}{}; {}", card(),
                    failure.calls == 1 ? "once" : fmt::format("{} times", failure.calls),
                    request_text(failure), whose(failure.use), figures()));
  }

  // What is left for a workspace of each process's: on the card, one that finds no cached block.
  std::uint64_t left_for_workspace() const {
    const auto taken = peak_.bytes + contexts();
    return taken < answer_.total_bytes ? (answer_.total_bytes - taken) / peak_.users : 0;
  }

  void ended_well() {
    const auto kind = program_.verdict.kind;
    const auto& error = program_.verdict.estimate;
    const auto more =
        error ? static_cast<std::uint64_t>(error->more_reserved_bytes) * peak_.users : 0;
    const bool has_room = peak_.bytes + more + contexts() <= answer_.total_bytes;
    if (!has_room && !error) {
      say(Tone::doubtful, std::nullopt,
          fmt::format("May not fit {} with its CUDA context: {}", card(), figures()));
    } else if (!has_room || kind == VerdictKind::unreliable) {
      say(Tone::doubtful, std::nullopt, fmt::format("May fit {}: {}", card(), figures()));
    } else if (program_.verdict.workspace_room_bytes) {
      say(Tone::good, true,
          fmt::format("Fits {} unless one workspace of a vendor's library exceeds {}: {}", card(),
                      size_text(left_for_workspace()), figures()));
    } else if (kind == VerdictKind::lower_bound || !unfinished().empty()) {
      say(Tone::doubtful, std::nullopt,
          fmt::format("Fits {} as far as is counted: {}", card(), figures()));
    } else {
      say(Tone::good, true, fmt::format("Fits {}: {}", card(), figures()));
    }
  }

  const EmulatedProgram& program_;
  std::vector<CardUse> uses_;
  CardPeak peak_;
  bool several_cards_ = false;
  Answer answer_;
};

}  // namespace

Answer answer_of(const EmulatedProgram& program) { return Sentence(program).answer(); }

std::string ending_text(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return fmt::format("signal {} ({})", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
  return fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

nlohmann::json to_json(const Answer& answer) {
  using nlohmann::json;
  const auto known = [](const auto& value) { return value ? json(*value) : json(); };
  const auto rank = answer.largest ? answer.largest->figures().rank : -1;
  return {{"fits", known(answer.fits)},
          {"sentence", answer.sentence},
          {"card", known(answer.card)},
          {"rank", rank < 0 ? json() : json(rank)},
          {"pid", answer.largest ? json(answer.largest->process->pid) : json()},
          {"peak_bytes", answer.peak_bytes},
          {"total_bytes", answer.total_bytes},
          {"context_bytes", answer.context.bytes},
          {"context_source", word_of(answer.context.source)},
          {"context_included", answer.context_included},
          {"out_of_memory", answer.out_of_memory ? to_json(*answer.out_of_memory) : json()}};
}

}  // namespace peakbench::emulator
