#include "reports/report/view_ablation.h"

#include <map>
#include <utility>

#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;
using Strategies = std::vector<result::Selection>;

bool is_baseline(const result::Selection& strategy) { return strategy.id == "baseline"; }

// The group's cases by what they are called: another stack of the same release and build.
class Stacks {
 public:
  explicit Stacks(const Group& group) {
    for (const auto* cases : {&group.added, &group.cases})
      for (const CaseResult* result : *cases) cases_[row_name(result->spec)] = result;
  }

  const CaseResult* find(Strategies strategies, const CaseResult& beside) const {
    result::Setting setting = beside.spec;
    setting.strategies = std::move(strategies);
    if (setting.strategies.empty()) setting.strategies.push_back({"baseline"});
    const auto found = cases_.find(row_name(setting));
    return found == cases_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::string, const CaseResult*> cases_;
};

bool has_peak(const CaseResult* result) { return result && ran(*result) && result->memory; }

std::int64_t peak(const CaseResult& result) { return result.memory->peak_allocated_bytes; }

std::string why_not(const CaseResult* result) {
  return result ? status_label(result->status) : "not run";
}

// One stack: `base` is its baseline with options, or nothing.
struct Split {
  Strategies base, parts;
};

Split split(const CaseResult& stack) {
  Split result;
  for (const result::Selection& strategy : stack.spec.strategies)
    (is_baseline(strategy) ? result.base : result.parts).push_back(strategy);
  return result;
}

AblationPartView part_view(const Split& split, std::size_t index, const CaseResult& bare,
                           const CaseResult& stack, const Stacks& stacks) {
  Strategies one = split.base, others = split.base;
  for (std::size_t i = 0; i < split.parts.size(); ++i)
    (i == index ? one : others).push_back(split.parts[i]);
  const CaseResult *alone = stacks.find(one, stack), *without = stacks.find(others, stack);
  AblationPartView view;
  view.part = printable(selection_text(split.parts[index]));
  view.others = printable(result::stack_text(others));
  if (has_peak(alone))
    view.alone = delta_view(peak(*alone), peak(bare));
  else
    view.alone_missing = why_not(alone);
  if (has_peak(without))
    view.without = delta_view(peak(*without), peak(stack));
  else
    view.without_missing = why_not(without);
  return view;
}

// The sum of what the parts save alone; nullopt unless all are known.
std::optional<DeltaView> sum_view(const Split& split, const CaseResult& bare,
                                  const Stacks& stacks) {
  std::int64_t level = peak(bare);
  for (const result::Selection& part : split.parts) {
    Strategies one = split.base;
    one.push_back(part);
    const CaseResult* alone = stacks.find(one, bare);
    if (!has_peak(alone)) return std::nullopt;
    level += peak(*alone) - peak(bare);
  }
  return delta_view(level, peak(bare));
}

std::optional<AblationView> stack_view(const CaseResult& stack, std::size_t number,
                                       const Stacks& stacks) {
  const Split parts = split(stack);
  const CaseResult* bare = stacks.find(parts.base, stack);
  if (parts.parts.size() < 2 || !has_peak(&stack) || !has_peak(bare)) return std::nullopt;
  std::vector<AblationPartView> rows;
  bool some = false;
  for (std::size_t i = 0; i < parts.parts.size(); ++i) {
    rows.push_back(part_view(parts, i, *bare, stack, stacks));
    some = some || rows.back().alone || rows.back().without;
  }
  if (!some) return std::nullopt;
  return AblationView{.strategy = printable(row_name(stack.spec)),
                      .number = std::to_string(number),
                      .bare = printable(row_name(bare->spec)),
                      .together = delta_view(peak(stack), peak(*bare)),
                      .sum = sum_view(parts, *bare, stacks),
                      .parts = std::move(rows)};
}

}  // namespace

std::vector<AblationView> ablation_view(const Group& group) {
  const Stacks stacks(group);
  std::vector<AblationView> list;
  for (std::size_t i = 0; i < group.cases.size(); ++i)
    if (auto view = stack_view(*group.cases[i], i + 1, stacks)) list.push_back(std::move(*view));
  return list;
}

}  // namespace peakbench::reports
