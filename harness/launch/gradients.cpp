#include "launch/gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace peakbench::launch {
namespace {

using result::CaseResult;
using Names = std::vector<std::string>;

constexpr std::size_t kMostNames = 3;

bool is_told(const CaseResult& result) {
  const bool guessed = result.emulation && !result.emulation->read_backs.empty();
  return result.status == result::Status::kOk && result.equivalence && !guessed;
}

bool is_open(const result::Equivalence& found) {
  if (found.verdict == "broken" || found.promise == "different_problem") return false;
  return found.verdict != "held" || found.promise != "bit_identical";
}

// Those of the first that the second lacks, in their order.
Names beyond(const Names& names, const Names& others) {
  const std::set<std::string> known(others.begin(), others.end());
  Names found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string& name) { return !known.contains(name); });
  return found;
}

std::string listed(Names names) {
  const auto count = names.size();
  if (count <= kMostNames) return fmt::format("{}", fmt::join(names, ", "));
  names.resize(kMostNames);
  return fmt::format("{} and {} more", fmt::join(names, ", "), count - kMostNames);
}

std::string difference(const Names& own, const Names& reference) {
  if (const auto lost = beyond(own, reference); !lost.empty())
    return fmt::format("some step gives no gradient to {}; in the reference case each does",
                       listed(lost));
  if (const auto more = beyond(reference, own); !more.empty())
    return fmt::format("each step gives a gradient to {}; in the reference case some does not",
                       listed(more));
  return "";
}

}  // namespace

bool compare_gradients(CaseResult& one, const CaseResult& reference) {
  if (!is_told(one) || !is_told(reference) || !is_open(*one.equivalence)) return false;
  auto words =
      difference(one.equivalence->without_gradient, reference.equivalence->without_gradient);
  if (words.empty()) return false;
  one.equivalence->verdict = "broken";
  one.equivalence->reason = std::move(words);
  return true;
}

}  // namespace peakbench::launch
