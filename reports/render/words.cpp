#include "reports/render/words.h"

#include <algorithm>
#include <array>
#include <cmath>

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
  return static_cast<std::size_t>(std::find(known.begin(), known.end(), name) - known.begin());
}

template <typename Known>
std::vector<std::string> in_order(const Known& known, std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    const std::size_t left = place(known, a), right = place(known, b);
    return left != right ? left < right : a < b;
  });
  return names;
}

}  // namespace

std::string spaced(const std::string& identifier) {
  std::string words = identifier;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string category_label(const std::string& category) { return spaced(category); }

std::string category_colour(const std::string& category) {
  return place(kCategories, category) < kCategories.size() ? category : "other";
}

std::vector<std::string> in_stacking_order(std::vector<std::string> categories) {
  return in_order(kCategories, std::move(categories));
}

std::string phase_label(const std::string& phase) { return spaced(phase); }

std::vector<std::string> in_phase_order(std::vector<std::string> phases) {
  std::array<std::string, trace::kPhaseCount> known;
  for (std::size_t i = 0; i < known.size(); ++i)
    known[i] = trace::to_string(static_cast<trace::Phase>(i));
  return in_order(known, std::move(phases));
}

std::string status_label(result::Status status, result::CaseKind kind) {
  switch (status) {
    case result::Status::kOk:
      return "ok";
    case result::Status::kOutOfMemory:
      return "out of memory";
    case result::Status::kTimeout:
      return "timeout";
    case result::Status::kCrashed:
      return result::facts_of(kind).has_stack ? "crashed" : "did not end well";
    case result::Status::kUnsupported:
      return "unsupported";
    case result::Status::kConflict:
      return "conflict";
    case result::Status::kNoEffect:
      return "no effect";
    case result::Status::kHostFailure:
      return "not measured";
    case result::Status::kInterrupted:
      return "interrupted";
  }
  return "";
}

bool trains_differently(const result::Equivalence& equivalence) {
  return equivalence.different_problem || equivalence.promise == "different_problem";
}

bool is_claimed(const result::Equivalence& equivalence, const std::string& case_id) {
  return equivalence.verdict == "not_checked" && equivalence.promise != "different_problem" &&
         equivalence.reference_case != case_id;
}

std::string equivalence_label(const result::Equivalence& equivalence, const std::string& case_id,
                              const std::string& held_to) {
  if (equivalence.promise == "different_problem") return "trains differently";
  if (equivalence.reference_case == case_id) return "what others are held against";
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

std::string tolerance_text(const result::Equivalence& equivalence) {
  std::string text;
  if (equivalence.tolerance) text = scientific(*equivalence.tolerance);
  if (!equivalence.relative_tolerance) return text;
  if (equivalence.tolerance.value_or(0) == 0) text.clear();
  return text + (text.empty() ? "" : " + ") + scientific(*equivalence.relative_tolerance) +
         " relative";
}

}  // namespace peakbench::reports
