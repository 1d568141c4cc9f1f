#include "cli/advise_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/columns.h"
#include "base/printable.h"
#include "records/axes.h"
#include "records/case_json.h"
#include "reports/analysis/strategies_against.h"
#include "reports/render/format.h"
#include "reports/render/words.h"

namespace peakbench::cli {
namespace {

using reports::gib;
using reports::ratio_of;
using search::WithStrategy;

constexpr double kWorthSaying = 0.001;  // of the peak, of what is saved

const records::Memory& memory_of(const WithStrategy& one) { return *one.found->memory; }
std::int64_t peak_of(const WithStrategy& one) { return memory_of(one).peak_allocated_bytes; }

std::string training_words(const records::Equivalence& promise) {
  if (promise.different_problem) return "trains differently";
  if (promise.promise == "within_tolerance") return "equal within a tolerance";
  return "bit-identical";
}

std::string when(const records::Memory& memory) { return reports::phase_label(memory.peak_phase); }

// Those that ran, what saves most first.
std::vector<const WithStrategy*> by_peak(const Advice& advice) {
  std::vector<const WithStrategy*> ran;
  for (const auto& one : advice.tried)
    if (one.found) ran.push_back(&one);
  std::ranges::stable_sort(ran, {}, [](const WithStrategy* one) { return peak_of(*one); });
  return ran;
}

bool saves(const Advice& advice, const WithStrategy& one) {
  const auto now = peak_of(advice.now);
  return ratio_of(now - peak_of(one), now) >= kWorthSaying;
}

std::string saving_words(const Advice& advice, const WithStrategy& one) {
  const auto now = peak_of(advice.now);
  return fmt::format("{} of {} GiB ({}%)", gib(now - peak_of(one)), gib(now),
                     reports::percent(ratio_of(now - peak_of(one), now)));
}

std::int64_t host_bytes(const WithStrategy& one) {
  const auto pinned = memory_of(one).spaces.find("pinned");
  return pinned == memory_of(one).spaces.end() ? 0 : pinned->second.peak_allocated_bytes;
}
// What it keeps in host memory that the case as it is does not.
std::int64_t more_in_host(const Advice& advice, const WithStrategy& one) {
  return std::max<std::int64_t>(host_bytes(one) - host_bytes(advice.now), 0);
}

// "checkpointing saves most: 42.7 of 67.8 GiB (63.0%); training: bit-identical."
std::string answer(const Advice& advice) {
  const auto ran = by_peak(advice);
  const auto name = [](const WithStrategy& one) { return printable(one.id); };
  if (ran.empty() || !saves(advice, *ran.front()))
    return fmt::format("None of the {} tried makes this peak smaller.",
                       advice.tried.size() == 1
                           ? "one strategy"
                           : fmt::format("{} strategies", advice.tried.size()));
  const auto& most = *ran.front();
  auto text = fmt::format("{} saves most: {}", name(most), saving_words(advice, most));
  if (const auto host = more_in_host(advice, most))
    text += fmt::format(", by keeping {} GiB in host memory", gib(host));
  text += fmt::format("; training: {}.", training_words(most.promise));
  // What costs neither another training nor copies.
  const auto costs_less = [&](const WithStrategy* one) {
    return !one->promise.different_problem && more_in_host(advice, *one) == 0;
  };
  const auto less = std::ranges::find_if(ran, costs_less);
  if (less != ran.begin() && less != ran.end() && saves(advice, **less))
    text += fmt::format(
        " Of those with the same training and nothing in host memory, {}: {}; training: {}.",
        name(**less), saving_words(advice, **less), training_words((*less)->promise));
  return text;
}

std::string largest_part(const records::Memory& memory) {
  const auto parts = analysis::parts_by_size(memory);
  return parts.empty() ? ""
                       : fmt::format("{} {}", reports::category_label(parts.front().first),
                                     gib(parts.front().second));
}

std::string parts_line(const records::Memory& memory) {
  std::vector<std::string> words;
  for (const auto& [category, bytes] : analysis::parts_by_size(memory))
    if (ratio_of(bytes, memory.peak_allocated_bytes) >= 0.01)
      words.push_back(fmt::format("{} {} ({:.0f}%)", reports::category_label(category), gib(bytes),
                                  100 * ratio_of(bytes, memory.peak_allocated_bytes)));
  return fmt::format("The peak, {} GiB allocated, is in {} of step {}: {}.",
                     gib(memory.peak_allocated_bytes), when(memory), memory.peak_step + 1,
                     fmt::join(words, ", "));
}

std::string table_of(const Advice& advice, int width) {
  const auto row = [&](const WithStrategy& one) {
    const auto& memory = memory_of(one);
    const auto saved = peak_of(advice.now) - peak_of(one);
    const bool is_now = &one == &advice.now;
    return std::vector<std::string>{
        is_now ? "as it is" : "+ " + one.id,
        gib(memory.peak_allocated_bytes),
        is_now ? "" : gib(std::max<std::int64_t>(saved, 0)),
        memory.peak_reserved_bytes ? gib(*memory.peak_reserved_bytes) : "",
        is_now || more_in_host(advice, one) == 0 ? "" : gib(more_in_host(advice, one)),
        when(memory),
        largest_part(memory),
        is_now ? "" : training_words(one.promise)};
  };
  std::vector<std::vector<std::string>> rows{row(advice.now)};
  for (const auto* one : by_peak(advice))
    if (saves(advice, *one)) rows.push_back(row(*one));
  if (rows.size() == 1) return "";
  return "\n" + table_text({{"one strategy more"},
                            {"peak, GiB", 0, true},
                            {"saves", 0, true},
                            {"reserved", 4, true},
                            {"in host memory", 1, true},
                            {"then in", 3},
                            {"largest part", 2},
                            {"training (claimed)", 1}},
                           std::move(rows), width);
}

// What the strategies that save something cost a step, as counted: "checkpointing: recomputes 96.2%
// of the forward's FLOPs; FLOPs +32.2%".
std::string costs(const Advice& advice, int width) {
  const auto& now = advice.now.found->work;
  std::string text;
  for (const auto* one : by_peak(advice)) {
    if (!saves(advice, *one) || !one->found->work || !now) continue;
    const auto words = reports::work_costs(*one->found->work, &*now);
    if (!words.empty())
      text += wrapped(printable(fmt::format("{}: {}.", one->id, fmt::join(words, "; "))), width);
  }
  if (text.empty()) return "";
  return "\n" +
         wrapped("What a step makes the card do, against as it is; counted, not timed:", width) +
         text;
}

std::string others(const Advice& advice, int width) {
  std::vector<std::string> useless;
  std::string text;
  for (const auto& one : advice.tried) {
    if (!one.found)
      text += wrapped(printable(fmt::format("{} is left out: {}", one.id, one.why_not)), width);
    else if (!saves(advice, one))
      useless.push_back(one.id);
  }
  if (!useless.empty())
    text = wrapped(printable(fmt::format("Tried, and save nothing: {}.", fmt::join(useless, ", "))),
                   width) +
           text;
  return text.empty() ? "" : "\n" + text;
}

nlohmann::ordered_json json_of(const Advice& advice, const WithStrategy& one) {
  nlohmann::ordered_json json{{"strategy", one.id}, {"stack", one.stack}};
  json["why_not"] = nullptr;
  if (!one.why_not.empty()) json["why_not"] = one.why_not;
  json["promise"] = one.promise.promise;
  json["different_problem"] = one.promise.different_problem;
  if (!one.found) return json;
  const auto& memory = memory_of(one);
  json["peak_allocated_bytes"] = memory.peak_allocated_bytes;
  if (memory.peak_reserved_bytes) json["peak_reserved_bytes"] = *memory.peak_reserved_bytes;
  json["more_in_host_memory_bytes"] = more_in_host(advice, one);
  json["saves_bytes"] = peak_of(advice.now) - peak_of(one);
  json["peak_phase"] = memory.peak_phase;
  json["peak_step"] = memory.peak_step;
  json["at_peak"] = memory.at_peak;
  json["work"] = records::optional_to_json(one.found->work);
  if (const auto* verdict = records::verdict_of(*one.found))
    json["verdict"] = records::verdict_word(verdict->kind);
  return json;
}

}  // namespace

std::string advice_text(const Advice& advice, int width) {
  auto text = wrapped(answer(advice), width) + "\n";
  text += wrapped(parts_line(memory_of(advice.now)), width);
  text += table_of(advice, width) + costs(advice, width) + others(advice, width);
  std::vector<std::string> doubtful;
  const auto look = [&](const WithStrategy& one) {
    const auto* verdict = one.found ? records::verdict_of(*one.found) : nullptr;
    if (verdict != nullptr && verdict->kind != records::VerdictKind::exact)
      doubtful.push_back(fmt::format("{} ({})", one.id.empty() ? "as it is" : one.id,
                                     records::verdict_word(verdict->kind)));
  };
  look(advice.now);
  for (const auto& one : advice.tried) look(one);
  if (!doubtful.empty())
    text += "\n" + wrapped(printable(fmt::format("Not exact without conditions: {}.",
                                                 fmt::join(doubtful, ", "))),
                           width);
  if (advice.ran_out)
    text +=
        "\n" + wrapped(fmt::format("The case ran out of memory on {}: to see whether one of these "
                                   "runs there, use `peakbench fit` with this --card and --batch.",
                                   printable(advice.card)),
                       width);
  text += "\n" + wrapped(fmt::format("Measured on an emulated {} without a memory limit. "
                                     "`peakbench describe NAME` explains what a strategy does and "
                                     "costs. `peakbench fit` shows which stack fits a card.",
                                     printable(advice.card)),
                         width);
  return text;
}

nlohmann::ordered_json to_json(const Advice& advice) {
  nlohmann::ordered_json json{{"case", advice.id},
                              {"card", advice.card},
                              {"ran_out_of_memory", advice.ran_out},
                              {"answer", answer(advice)}};
  json["now"] = json_of(advice, advice.now);
  auto& tried = json["tried"] = nlohmann::ordered_json::array();
  for (const auto& one : advice.tried) tried.push_back(json_of(advice, one));
  return json;
}

}  // namespace peakbench::cli
