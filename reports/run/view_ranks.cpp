// Will more GPUs help? What of a peak does not shrink with the number of ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

std::int64_t of_category(const Bytes& bytes, const std::string& category) {
  const auto found = bytes.find(category);
  return found == bytes.end() ? 0 : found->second;
}

// A category's bytes are a + b / ranks: of these, a.
Bytes that_stay(const CaseResult& fewer, const CaseResult& more) {
  const auto few = static_cast<double>(*fewer.spec.ranks);
  const auto many = static_cast<double>(*more.spec.ranks);
  Bytes staying;
  for (const auto& [category, bytes] : more.memory->at_peak) {
    const auto before = static_cast<double>(of_category(fewer.memory->at_peak, category));
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

// "−0.103 GiB parameter": by category, what differs most.
std::string largest_difference(const records::Memory& ours, const records::Memory& largest) {
  std::string category;
  std::int64_t difference = 0;
  const auto look = [&](const Bytes& bytes) {
    for (const auto& [name, _] : bytes) {
      const auto by = of_category(ours.at_peak, name) - of_category(largest.at_peak, name);
      if (std::abs(by) <= std::abs(difference)) continue;
      difference = by;
      category = name;
    }
  };
  look(ours.at_peak);
  look(largest.at_peak);
  return difference == 0
             ? "none"
             : fmt::format("{} GiB {}", signed_gib(difference), category_label(category));
}

// "97 ncclAllGather of 14.957 GiB".
std::string nccl_text(const records::Rank& rank) {
  std::string text;
  for (const auto& one : rank.nccl_calls)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", grouped(one.calls), one.call,
                        one.bytes ? fmt::format(" of {} GiB", gib(*one.bytes)) : "");
  return text;
}

RankView rank_view(const CaseResult& result, const records::Rank& rank) {
  const auto& memory = *rank.memory;
  const auto& largest = records::headline_rank(result);
  RankView view;
  view.strategy =
      printable(fmt::format("{} ({} ranks)", name_alone(result.spec), grouped(*result.spec.ranks)));
  if (const auto batch = result.spec.global_batch_size) view.global_batch = grouped(*batch);
  view.rank = grouped(rank.rank);
  view.is_largest = rank.rank == largest.rank;
  view.gib = gib(memory.peak_allocated_bytes);
  view.bytes = grouped(memory.peak_allocated_bytes);
  if (memory.peak_reserved_bytes) view.reserved_gib = gib(*memory.peak_reserved_bytes);
  if (!view.is_largest) view.difference = printable(largest_difference(memory, *largest.memory));
  view.communication_gib = gib(of_category(memory.at_peak, "communication"));
  view.nccl = printable(nccl_text(rank));
  return view;
}

}  // namespace

std::vector<RankView> ranks_view(const Group& group) {
  std::vector<RankView> list;
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    const CaseResult& result = *group.cases[i];
    if (!ran(result) || !result.spec.ranks) continue;
    for (const auto& rank : result.ranks) {
      if (!rank.memory) continue;
      list.push_back(rank_view(result, rank));
      list.back().number = std::to_string(i + 1);
    }
  }
  return list;
}

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
