#include "emulator/host/emulation_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/columns.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "core/ledger_json.h"
#include "emulator/host/card_use.h"
#include "emulator/host/device_memory.h"

namespace peakbench::emulator {
namespace {

constexpr std::size_t kMostRows = 16;

std::string size_or_none(std::uint64_t bytes) { return bytes ? size_text(bytes) : ""; }

// PyTorch's own count: unknown, or of a process that was ended, as of its last event.
std::string counted(const CardUse& use, std::uint64_t bytes, bool exactly = false) {
  if (!are_counts_known(*use.process, use.figures())) return exactly ? "" : "unknown";
  return (use.process->finished ? "" : ">= ") +
         (exactly ? std::to_string(bytes) : size_text(bytes));
}

struct Row {
  std::vector<std::string> who, took;  // cells
  std::uint64_t peak = 0;
};

// The first is never left out of a narrow window, the largest number is first.
std::vector<TableColumn> columns(bool ranks) {
  std::vector<TableColumn> list;
  if (ranks) list.push_back({"rank"});
  list.push_back({"process", ranks ? 5 : 0});
  list.push_back({"device", 1});
  list.push_back({"card", 4});
  list.push_back({"peak", 0, true});
  list.push_back({"allocated", 0, true});
  list.push_back({"reserved", 1, true});
  list.push_back({"needed", 2, true});
  list.push_back({"refused", 2, true});
  list.push_back({"in pools", 3, true});
  list.push_back({"pinned", 3, true});
  list.push_back({"peak, bytes", 6, true});
  list.push_back({"allocated, bytes", 7, true});
  list.push_back({"reserved, bytes", 8, true});
  list.push_back({"by cudaMalloc", 9, true});
  list.push_back({"by virtual memory", 9, true});
  return list;
}

// Columns that would say of every row what goes without saying are empty, and left out.
struct Shown {
  bool ranks = false, devices = false, cards = false;
};

Shown shown_of(const std::vector<CardUse>& uses) {
  Shown shown;
  for (const CardUse& use : uses) {
    shown.ranks |= use.figures().rank >= 0;
    shown.devices |= use.device != 0;
    shown.cards |= use.figures().card != use.device;
  }
  return shown;
}

std::vector<std::string> took(const CardUse& use) {
  const LedgerDevice& figures = use.figures();
  const auto refused = figures.refused_allocations;
  return {size_text(figures.peak_used_bytes),
          counted(use, figures.peak_allocated_bytes),
          counted(use, figures.peak_reserved_bytes),
          size_or_none(figures.largest_needed_bytes),
          refused ? fmt::format("{} time{}", refused, refused == 1 ? "" : "s") : "",
          size_or_none(figures.peak_pool_bytes),
          size_or_none(use.process->peak_pinned_bytes),
          std::to_string(figures.peak_used_bytes),
          counted(use, figures.peak_allocated_bytes, true),
          counted(use, figures.peak_reserved_bytes, true),
          figures.peak_virtual_bytes ? size_text(figures.peak_malloc_bytes) : "",
          size_or_none(figures.peak_virtual_bytes)};
}

Row row_of(const CardUse& use, const Shown& shown) {
  const auto rank = use.figures().rank;
  Row row;
  if (shown.ranks) row.who.push_back(rank < 0 ? "" : std::to_string(rank));
  row.who.push_back(std::to_string(use.process->pid));
  row.who.push_back(shown.devices ? fmt::format("cuda:{}", use.device) : "");
  row.who.push_back(shown.cards ? std::to_string(use.figures().card) : "");
  row.took = took(use);
  row.peak = use.figures().peak_used_bytes;
  return row;
}

// Of several rows: "0-31", or "0" where all have the same.
std::vector<std::string> range_of(const Row& first, const Row& last) {
  std::vector<std::string> cells = first.who;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (last.who[i] != cells[i]) cells[i] += "-" + last.who[i];
  return cells;
}

// Neighbours that took the same become one.
std::vector<Row> folded(const std::vector<Row>& rows) {
  std::vector<Row> list;
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last + 1) {
    for (last = first; last + 1 < rows.size() && rows[last + 1].took == rows[first].took;) ++last;
    list.push_back({range_of(rows[first], rows[last]), rows[first].took, rows[first].peak});
  }
  return list;
}

// Those with the largest peaks, in their order.
std::vector<Row> largest(const std::vector<Row>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t at) { return rows[at].peak; });
  order.resize(std::min(order.size(), kMostRows));
  std::ranges::sort(order);
  std::vector<Row> list;
  for (const std::size_t at : order) list.push_back(rows[at]);
  return list;
}

}  // namespace

std::string process_table(const std::vector<CardUse>& uses, int width) {
  if (uses.empty()) return "";
  const Shown shown = shown_of(uses);
  std::vector<Row> rows;
  for (const CardUse& use : uses) rows.push_back(row_of(use, shown));
  if (rows.size() > kMostRows) rows = folded(rows);
  const auto all = rows.size();
  rows = largest(rows);
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows) {
    cells.push_back(row.who);
    cells.back().insert(cells.back().end(), row.took.begin(), row.took.end());
  }
  auto text = table_text(columns(shown.ranks), std::move(cells), width);
  if (all > rows.size())
    text += fmt::format("... and {} more, which took no more than these (--json has all)\n",
                        all - rows.size());
  return text;
}

namespace {

std::string gib(std::uint64_t bytes) { return gib_text(static_cast<std::int64_t>(bytes)); }

const char* code_of(Tone tone) {
  constexpr const char* kCodes[] = {"\x1b[32m", "\x1b[31m", "\x1b[33m"};  // green, red, yellow
  return kCodes[static_cast<std::size_t>(tone)];
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
      "The card replaces the libraries of CUDA {}. It cannot replace another major version of "
      "CUDA, or a CUDA runtime linked into a program or a library. LD_PRELOAD must reach the "
      "program, so a start without its environment (sudo, a container) does not work.\n",
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
  const auto left = taken <= answer.total_bytes
                        ? size_text(answer.total_bytes - taken) + " left"
                        : size_text(taken - answer.total_bytes) + " too much";
  const auto* about = program.verdict.estimate ? "about " : "";
  return fmt::format("{}: reserves {}{} of {}, {} {}; {}.", head, about,
                     size_text(answer.peak_bytes), size_text(answer.total_bytes), left,
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
