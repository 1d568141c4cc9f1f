#include "reports/render/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "reports/analysis/timing.h"
#include "reports/render/format.h"
#include "trace/lifetimes.h"

namespace peakbench::reports {
namespace {

constexpr std::array kCategories{
    "parameter",      "buffer",    "kept",          "optimizer_state",
    "gradient",       "input",     "activation",    "recomputed_activation",
    "temporary",      "workspace", "communication", "graph_pool",
    "allocator_slack"};

template <typename Known>
std::size_t place(const Known& known, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(known, name) - known.begin());
}

template <typename Known>
std::vector<std::string> in_order(const Known& known, std::vector<std::string> names) {
  std::ranges::sort(names, [&](const std::string& a, const std::string& b) {
    const std::size_t left = place(known, a), right = place(known, b);
    return left != right ? left < right : a < b;
  });
  return names;
}

}  // namespace

std::string spaced(const std::string& identifier) {
  std::string words = identifier;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string category_label(const std::string& category) { return spaced(category); }

std::string category_colour(const std::string& category) {
  return place(kCategories, category) < kCategories.size() ? category : "other";
}

std::vector<std::string> in_stacking_order(std::vector<std::string> categories) {
  return in_order(kCategories, std::move(categories));
}

std::vector<std::size_t> in_stacking_order(std::vector<std::size_t> categories) {
  std::ranges::sort(categories, {}, [](std::size_t category) {
    return place(kCategories, trace::to_string(static_cast<trace::Category>(category)));
  });
  return categories;
}

std::string phase_label(const std::string& phase) { return spaced(phase); }

std::vector<std::string> in_phase_order(std::vector<std::string> phases) {
  std::array<std::string, trace::kPhaseCount> known;
  for (std::size_t i = 0; i < known.size(); ++i)
    known[i] = trace::to_string(static_cast<trace::Phase>(i));
  return in_order(known, std::move(phases));
}

std::string status_label(records::Status status, records::CaseKind kind) {
  if (status == records::Status::kHostFailure) return "not measured";
  if (status == records::Status::kCrashed && !records::facts_of(kind).has_stack)
    return "did not end well";
  return spaced(records::to_string(status));
}

bool trains_differently(const records::Equivalence& equivalence) {
  return equivalence.different_problem || equivalence.promise == "different_problem";
}

bool is_claimed(const records::Equivalence& equivalence, const std::string& case_id) {
  return equivalence.verdict == "not_checked" && equivalence.promise != "different_problem" &&
         equivalence.reference_case != case_id;
}

std::string equivalence_label(const records::Equivalence& equivalence, const std::string& case_id,
                              const std::string& held_to) {
  if (equivalence.promise == "different_problem") return "trains differently";
  if (equivalence.reference_case == case_id) return "what others are compared with";
  std::string label;
  if (trains_differently(equivalence))
    label = held_to.empty() ? "trains differently, else " : "as " + held_to + ", ";
  if (equivalence.verdict == "broken") label += "not ";
  label += equivalence.promise == "bit_identical" ? "bit-identical" : spaced(equivalence.promise);
  const auto& difference = equivalence.max_abs_difference;
  if (equivalence.verdict == "broken" && difference && std::isnan(*difference))
    label += " (not a number)";
  return label + (equivalence.verdict == "not_checked" ? " (claimed)" : "");
}

std::string tolerance_text(const records::Equivalence& equivalence) {
  std::string text;
  if (equivalence.tolerance) text = scientific(*equivalence.tolerance);
  if (!equivalence.relative_tolerance) return text;
  if (equivalence.tolerance.value_or(0) == 0) text.clear();
  return text + (text.empty() ? "" : " + ") + scientific(*equivalence.relative_tolerance) +
         " relative";
}

}  // namespace peakbench::reports

namespace peakbench::analysis {

using records::Verdict;

std::string main_reason(const Verdict& verdict) {
  if (!verdict.reasons.empty()) return verdict.reasons.front();
  return verdict.conditions.empty() ? "" : verdict.conditions.front();
}

std::map<records::VerdictKind, Doubt> doubts_of(const std::vector<const Verdict*>& verdicts) {
  std::map<records::VerdictKind, Doubt> doubts;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (!verdicts[i] || verdicts[i]->kind == records::VerdictKind::exact) continue;
    auto& [count, tightest] = doubts.try_emplace(verdicts[i]->kind, Doubt{0, i}).first->second;
    const auto &room = verdicts[i]->workspace_room_bytes,
               &least = verdicts[tightest]->workspace_room_bytes;
    if (room && (!least || *room < *least)) tightest = i;
    ++count;
  }
  return doubts;
}

}  // namespace peakbench::analysis

namespace peakbench::reports {
constexpr double kMostShown = 9.99;  // beyond ten times as much, the figure does not matter

std::string interval_text(const statistics::SpeedDifference& difference) {
  if (!has_interval(difference)) return "";
  const double high = difference.high - 1;
  return fmt::format("{} to {}", signed_percent(difference.low - 1),
                     high > kMostShown ? "over +999" : signed_percent(high));
}

std::string half_width_text(const statistics::SpeedDifference& difference) {
  if (!has_interval(difference)) return "";
  const double half = (difference.high - difference.low) / 2;
  return half > kMostShown ? ">999" : percent(half);
}

std::string no_interval_text(const statistics::SpeedDifference& difference) {
  if (has_interval(difference)) return "";
  if (difference.samples == 0) return "not measured in rounds: no interval";
  return difference.samples == 1 ? "one round: no interval" : "two rounds: no interval";
}

namespace {

constexpr double kWorthSaying = 0.0005;  // what is not 0.0% when rounded

std::int64_t forward_flops(const records::StepWork& work) {
  const auto forward = work.phases.find("forward");
  return forward == work.phases.end() ? 0 : forward->second.flops;
}

void add_change(const char* what, std::int64_t ours, std::int64_t reference,
                std::vector<std::string>& words) {
  const double change = ratio_of(ours - reference, reference);
  if (std::abs(change) >= kWorthSaying)
    words.push_back(fmt::format("{} {}%", what, signed_percent(change)));
}

// Both ways as one where they are the same.
std::string copies_words(std::int64_t to_host, std::int64_t to_device) {
  if (to_host == to_device) return fmt::format("copies {} GiB to the host and back", gib(to_host));
  if (to_device <= 0) return fmt::format("copies {} GiB to the host", gib(to_host));
  if (to_host <= 0) return fmt::format("copies {} GiB to the device", gib(to_device));
  return fmt::format("copies {} GiB to the host and {} GiB to the device", gib(to_host),
                     gib(to_device));
}

}  // namespace

std::string flops_text(std::int64_t flops) {
  if (flops == 0) return "0";
  constexpr double kThousand = 1000;
  constexpr int kDigits = 4;
  constexpr std::array kUnits{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
  auto value = static_cast<double>(flops);
  std::size_t unit = 0;
  for (; value >= kThousand && unit + 1 < kUnits.size(); ++unit) value /= kThousand;
  return fmt::format("{} {}", decimal(value, kDigits), kUnits[unit]);
}

std::vector<std::string> work_costs(const records::StepWork& work,
                                    const records::StepWork* reference) {
  std::vector<std::string> words;
  const auto& ours = work.total;
  if (ours.recomputed_flops > 0)
    words.push_back(fmt::format("recomputes {}% of the forward's FLOPs",
                                percent(ratio_of(ours.recomputed_flops, forward_flops(work)))));
  if (reference != nullptr) {
    const auto& theirs = reference->total;
    add_change("FLOPs", ours.flops, theirs.flops, words);
    add_change("bytes read and written", ours.read_bytes + ours.written_bytes,
               theirs.read_bytes + theirs.written_bytes, words);
    if (ours.device && theirs.device)
      add_change("kernel launches", ours.device->kernel_launches, theirs.device->kernel_launches,
                 words);
  }
  if (!ours.device) return words;
  const auto* theirs =
      reference != nullptr && reference->total.device ? &*reference->total.device : nullptr;
  const auto to_host =
      ours.device->copies_to_host_bytes - (theirs ? theirs->copies_to_host_bytes : 0);
  const auto to_device =
      ours.device->copies_to_device_bytes - (theirs ? theirs->copies_to_device_bytes : 0);
  if (to_host > 0 || to_device > 0) words.push_back(copies_words(to_host, to_device));
  return words;
}

}  // namespace peakbench::reports
