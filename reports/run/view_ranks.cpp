// Will more GPUs help? What of a peak does not shrink with the number of ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/printable.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/group.h"
#include "reports/run/view_group.h"

namespace peakbench::reports {
namespace {

using records::CaseResult;
using Bytes = std::map<std::string, std::int64_t>;  // by category

// A category's bytes are a + b / ranks: of these, a.
Bytes that_stay(const CaseResult& fewer, const CaseResult& more) {
  const auto few = static_cast<double>(*fewer.spec.ranks);
  const auto many = static_cast<double>(*more.spec.ranks);
  Bytes staying;
  for (const auto& [category, bytes] : more.memory->at_peak) {
    const auto found = fewer.memory->at_peak.find(category);
    const auto before =
        found == fewer.memory->at_peak.end() ? 0.0 : static_cast<double>(found->second);
    const auto stays = (many * static_cast<double>(bytes) - few * before) / (many - few);
    staying[category] = std::clamp<std::int64_t>(std::llround(stays), 0, bytes);
  }
  return staying;
}

std::string largest(const Bytes& bytes) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::string, std::int64_t>> parts(bytes.begin(), bytes.end());
  std::ranges::stable_sort(parts, std::greater{}, &decltype(parts)::value_type::second);
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, parts.size()); ++i)
    if (parts[i].second > 0)
      text += fmt::format("{}{} GiB {}", text.empty() ? "" : ", ", gib(parts[i].second),
                          category_label(parts[i].first));
  return text;
}

std::string sentence(const CaseResult& fewer, const CaseResult& more) {
  constexpr std::int64_t kLittle = 100;  // parts of a peak
  const auto staying = that_stay(fewer, more);
  std::int64_t all = 0;
  for (const auto& [category, bytes] : staying) all += bytes;
  const auto peak = more.memory->peak_allocated_bytes;
  const auto ranks = grouped(*more.spec.ranks);
  if (all < peak / kLittle)
    return fmt::format("nearly all of the {} GiB on {} ranks shrink with more ranks", gib(peak),
                       ranks);
  return fmt::format("{} GiB of the {} GiB on {} ranks do not shrink with more ranks ({})",
                     gib(all), gib(peak), ranks, largest(staying));
}

}  // namespace

std::vector<MoreRanksView> more_ranks_view(const Group& group) {
  std::map<std::string, std::vector<const CaseResult*>> stacks;
  std::vector<std::string> in_order;
  for (const CaseResult* result : group.cases) {
    if (!ran(*result) || !result->spec.ranks || !result->memory) continue;
    auto& cases = stacks[name_alone(result->spec)];
    if (cases.empty()) in_order.push_back(name_alone(result->spec));
    cases.push_back(result);
  }
  std::vector<MoreRanksView> list;
  for (const auto& name : in_order) {
    auto& cases = stacks[name];
    std::ranges::stable_sort(cases, {}, [](const CaseResult* one) { return *one->spec.ranks; });
    const auto* more = cases.back();
    std::erase_if(cases, [&](const auto* one) { return *one->spec.ranks == *more->spec.ranks; });
    if (!cases.empty())
      list.push_back({printable(name), printable(sentence(*cases.back(), *more))});
  }
  return list;
}

}  // namespace peakbench::reports
