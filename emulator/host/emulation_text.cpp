#include "host/emulation_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "host/card_use.h"
#include "host/device_memory.h"
#include "host/process_details.h"
#include "host/process_table.h"
#include "text/printable.h"
#include "text/wrapped.h"
#include "units/bytes.h"

namespace peakbench::emulator {
namespace {

std::string gib(std::uint64_t bytes) { return gib_text(static_cast<std::int64_t>(bytes)); }

const char* code_of(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "\x1b[32m";  // green
    case Tone::bad:
      return "\x1b[31m";  // red
    case Tone::doubtful:
      break;
  }
  return "\x1b[33m";  // yellow
}

// The sentence up to its colon: what it says, without the figures.
std::string coloured(const std::string& sentence, const char* code) {
  auto end = sentence.find(':');
  while (end < sentence.size() - 1 && sentence[end + 1] != ' ' && sentence[end + 1] != '\n')
    end = sentence.find(':', end + 1);
  end = std::min(end, sentence.size());
  return fmt::format("{}{}\x1b[0m{}", code, sentence.substr(0, end), sentence.substr(end));
}

std::string context_line(const Card& card) {
  const auto measured = long_text(card.context_memory);
  if (const auto set_aside = card.facts.context_bytes)
    return fmt::format(
        "CUDA context: {} set aside for each process, in the answer's peak and in no other figure; "
        "{}.\n",
        gib(set_aside), measured);
  return fmt::format(
      "CUDA context: not in these figures; {}. To set it aside: "
      "--card {},context=SIZE\n",
      measured, card.spec);
}

// Of cards that several processes used at once.
std::string shared_cards(const EmulatedProgram& program, const std::vector<CardUse>& uses) {
  std::string text;
  for (const CardPeak& peak :
       peaks_of_cards(uses, program.card_peaks, program.card.facts.context_bytes))
    if (peak.users > 1)
      text += fmt::format("card {}  peak {} of {}  ({} bytes; {} processes together)\n", peak.card,
                          gib(peak.bytes), gib(program.card.facts.total_memory_bytes), peak.bytes,
                          peak.users);
  return text;
}

std::string why_unused(const std::vector<int>& cuda_majors) {
  return fmt::format(
      "The card stands in for the libraries of CUDA {}: another major version of CUDA, or a CUDA "
      "runtime linked into a program or a library, is out of reach, and so is a program that is "
      "started without its environment (sudo, a container): LD_PRELOAD must reach it.\n",
      fmt::join(cuda_majors, " and "));
}

std::string torch_line(const EmulatedProgram& program) {
  if (!program.torch) return "";
  return fmt::format("PyTorch {}, in {}\n", program.torch->version, program.torch->folder.string());
}

}  // namespace

std::string short_answer(const EmulatedProgram& program, const Answer& answer) {
  const auto head = answer.sentence.substr(0, answer.sentence.find(": "));
  const auto& failure = answer.out_of_memory;
  if (failure && !failure->swallowed && failure->needed_bytes > answer.total_bytes)
    return fmt::format(
        "{}: needs {} at least, {} more than it has; {}.", head, size_text(failure->needed_bytes),
        size_text(failure->needed_bytes - answer.total_bytes), request_text(*failure));
  if (program.wait_status != 0 || failure || !answer.card) return answer.sentence;
  const auto contexts = answer.context_included ? 0 : answer.processes * answer.context.bytes;
  const auto taken = answer.peak_bytes + contexts;
  const auto left = taken <= answer.total_bytes ? about(answer.total_bytes - taken) + " left"
                                                : about(taken - answer.total_bytes) + " too much";
  return fmt::format("{}: reserves {} of {}, {} {}; {}.", head, size_text(answer.peak_bytes),
                     size_text(answer.total_bytes), left,
                     beside_text(answer.context, answer.processes, answer.context_included),
                     verdict_word(program.verdict.kind));
}

std::string labelled(const std::string& label, const std::string& words, const Look& look) {
  constexpr const char* kCyan = "\x1b[36m";
  const auto lines = wrapped(printable(label + ": " + words), look.width());
  return look.colours ? coloured(lines, kCyan) : lines;
}

std::string emulation_text(const EmulatedProgram& program, const Answer& answer, const Look& look) {
  if (look.view == View::kNothing) return "";
  if (look.view != View::kDetails) {
    const bool is_summary = look.view == View::kSummary;
    auto sentence = is_summary ? short_answer(program, answer) : answer.sentence;
    if (const auto at = sentence.find(program.card.spec); at != std::string::npos)
      sentence.insert(at + program.card.spec.size(), look.card_note);
    const auto lines = wrapped(printable(sentence), look.width());
    const auto verdict = is_summary && answer.card ? verdict_sentence(program.verdict) : "";
    return "\n" + (look.colours ? coloured(lines, code_of(answer.tone)) : lines) +
           (verdict.empty() ? "" : labelled("Verdict", verdict, look));
  }
  const auto uses = card_uses(program.ledgers);
  std::string below = verdict_text(program.verdict);
  if (!uses.empty())
    below += "\n" + process_table(uses, look.width()) + shared_cards(program, uses) + "\n";
  below += fmt::format("Emulated card {} ({}, {}): memory, no times.\n", program.card.spec,
                       program.card.facts.name, gib(program.card.facts.total_memory_bytes));
  below += context_line(program.card) + torch_line(program);
  below += reserved_line(program, answer);
  if (const auto memory = device_memory_of(answer)) below += device_memory_line(*memory);
  below += process_details(program.ledgers, uses);
  if (program.ledgers.empty()) below += why_unused(program.cuda_majors);
  if (program.wait_status != 0)
    below += fmt::format("The program ended with {}.\n", ending_text(program.wait_status));
  const auto sentence = escaped_controls(answer.sentence);
  return "\n" + (look.colours ? coloured(sentence, code_of(answer.tone)) : sentence) + "\n" +
         escaped_controls(below);
}

}  // namespace peakbench::emulator
