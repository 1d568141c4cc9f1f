#include "cli/plugin_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "records/setting.h"
#include "reports/render/format.h"
#include "reports/render/words.h"

namespace peakbench::cli {
namespace {

using planning::Kind;
using records::CaseResult;
using records::Run;
using records::Status;

bool is_alone(const CaseResult& result) { return result.spec.strategies.size() == 1; }
bool is_baseline(const CaseResult& result) {
  return is_alone(result) && result.spec.strategies.front().id == "baseline";
}
bool is_refused(const CaseResult& result) {
  return result.status == Status::kUnsupported || result.status == Status::kConflict;
}
bool breaks_promise(const CaseResult& result) {
  return result.equivalence && result.equivalence->verdict == "broken";
}

std::string in_words(const CaseResult& result) {
  if (result.status == Status::kOk && breaks_promise(result))
    return fmt::format("{}: promises {}: {}", result.spec.id, result.equivalence->promise,
                       result.equivalence->reason);
  return fmt::format("{}: {}: {}", result.spec.id, reports::status_label(result.status),
                     result.reason);
}

using Cases = std::vector<const CaseResult*>;

std::string cases(std::size_t count) { return reports::count_of(count, "case"); }

bool is_unchecked(const CaseResult& result) {
  return result.equivalence && result.equivalence->verdict == "not_checked";
}

// Failed where there are failures, else not checked where nothing was.
Finding closed(Finding finding, std::size_t tested, const std::string& passed,
               const std::string& untested) {
  if (!finding.failures.empty()) {
    finding.answer = Answer::kFailed;
    finding.text = fmt::format("{} not as it must be:", cases(finding.failures.size()));
  } else if (tested == 0) {
    finding.answer = Answer::kNotChecked;
    finding.text = untested;
  } else {
    finding.text = passed;
  }
  return finding;
}

constexpr const char* kStacks = "stacks";
using Reasons = std::map<std::string, std::string>;  // by stack or case

class Checker {
 public:
  Checker(const Checked& checked, const CheckRuns& runs) : checked_(checked), runs_(runs) {}

  std::vector<Finding> findings() const {
    std::vector<Finding> found{runs()};
    const auto add = [&](std::vector<Finding> more) {
      std::ranges::move(more, std::back_inserter(found));
    };
    if (!option_variants(*checked_.entry).empty()) add(options());
    add({same_bytes(), longer_run()});
    if (is_strategy()) add(promise());
    add(stacks());
    return found;
  }

 private:
  using Test = std::function<bool(const CaseResult&)>;

  bool is_strategy() const { return checked_.kind == Kind::kStrategy; }
  bool promises() const { return is_strategy() && checked_.entry->promise != "different_problem"; }

  const std::string& id() const { return checked_.entry->id; }

  // Whether the entry is in it.
  bool is_ours(const CaseResult& result) const {
    if (!is_strategy()) return result.spec.model.id == id();
    return std::ranges::any_of(result.spec.strategies,
                               [&](const auto& one) { return one.id == id(); });
  }
  // Another strategy found nothing to do in the model, or beside this one.
  bool others_have_no_effect(const CaseResult& result) const {
    return result.status == Status::kNoEffect &&
           (!is_strategy() || !result.reason.starts_with(id() + " "));
  }
  // Nothing but the entry, as its manifest has it; of a model, with the baseline.
  bool is_plain(const CaseResult& result) const {
    if (!is_ours(result)) return false;
    return is_strategy() ? is_alone(result) && result.spec.strategies.front().options.empty()
                         : is_baseline(result);
  }

  Cases ours(const Run& run, const Test& test) const {
    Cases found;
    for (const auto& result : run.cases)
      if (is_ours(result) && test(result)) found.push_back(&result);
    return found;
  }
  Cases plain(const Run& run) const {
    return ours(run, [&](const CaseResult& result) { return is_plain(result); });
  }

  Finding finding(std::string question) const { return {id(), std::move(question)}; }

  Finding runs() const {
    auto made = finding("runs");
    std::size_t ok = 0;
    std::string refusal = "no case of it was run";
    for (const auto* result : plain(runs_.card)) {
      if (result->status == Status::kOk)
        ++ok;
      else if (is_refused(*result))
        refusal = in_words(*result);
      else
        made.failures.push_back(in_words(*result));
    }
    return closed(
        std::move(made), ok, fmt::format("{} on an emulated card", cases(ok)),
        fmt::format("it runs with none of these models; name one with --model: {}", refusal));
  }

  // An extreme value may have no effect or be refused: that is said in words, as a result.
  std::vector<Finding> options() const {
    auto made = finding("options");
    std::size_t ok = 0, refused = 0;
    Reasons unchecked;
    auto all = ours(runs_.options, [](const CaseResult&) { return true; });
    const auto on_cpu = ours(runs_.cpu, [&](const CaseResult& result) {
      return is_strategy() && is_alone(result) && !is_plain(result);
    });
    all.insert(all.end(), on_cpu.begin(), on_cpu.end());
    for (const auto* result : all) {
      if (result->status == Status::kOk && !breaks_promise(*result))
        ++ok;
      else if (is_refused(*result) || result->status == Status::kNoEffect)
        ++refused;
      else
        made.failures.push_back(in_words(*result));
    }
    for (const auto* result : on_cpu)
      if (promises() && result->status == Status::kOk && is_unchecked(*result))
        unchecked.emplace(result->spec.id, result->equivalence->reason);
    auto passed = fmt::format("{} of other choices", cases(ok));
    if (refused > 0) passed += fmt::format("; {} refused with a reason", refused);
    return with_unchecked(closed(std::move(made), ok, passed,
                                 refused > 0 ? "every other choice is refused, with a reason"
                                             : "no other choice was run"),
                          unchecked);
  }

  // The figures of those that ran in both.
  Finding compared(std::string question, const Run& other, const std::string& passed,
                   const std::function<std::string(const records::Memory&, const records::Memory&)>&
                       difference) const {
    auto made = finding(std::move(question));
    std::size_t tested = 0;
    for (const auto* first : plain(runs_.card)) {
      const auto* second = records::find_case(other, first->spec.id);
      if (!first->memory) continue;
      if (second == nullptr || !second->memory) {
        made.failures.push_back(second == nullptr ? first->spec.id + ": was not run"
                                                  : in_words(*second));
        continue;
      }
      ++tested;
      if (const auto words = difference(*first->memory, *second->memory); !words.empty())
        made.failures.push_back(fmt::format("{}: {}", first->spec.id, words));
    }
    return closed(std::move(made), tested, fmt::format(fmt::runtime(passed), cases(tested)),
                  "nothing ran twice");
  }

  Finding same_bytes() const {
    return compared("same bytes", runs_.again, "{} run twice: the same bytes, by category",
                    [](const records::Memory& first, const records::Memory& second) -> std::string {
                      if (first.peak_allocated_bytes == second.peak_allocated_bytes &&
                          first.peak_requested_bytes == second.peak_requested_bytes &&
                          first.peak_reserved_bytes == second.peak_reserved_bytes &&
                          first.at_peak == second.at_peak)
                        return "";
                      return fmt::format("{} bytes allocated at the peak, then {}",
                                         first.peak_allocated_bytes, second.peak_allocated_bytes);
                    });
  }

  Finding longer_run() const {
    return compared(
        "longer run", runs_.longer, "{} with twice the steps: the same peak",
        [](const records::Memory& first, const records::Memory& second) -> std::string {
          const auto more = second.peak_allocated_bytes - first.peak_allocated_bytes;
          if (more == 0) return "";
          return fmt::format(
              "{} bytes {} at the peak of {} steps than of {}: {}", more < 0 ? -more : more,
              more < 0 ? "less" : "more", second.steps, first.steps,
              more < 0 ? "what a step takes depends on the number of steps"
                       : "something is kept from step to step, or the manifest lacks a `period`");
        });
  }

  // With what was compared with nothing apart from the rest, where there is some.
  std::vector<Finding> with_unchecked(Finding made, const Reasons& unchecked) const {
    std::vector<Finding> found;
    const auto question = made.question;
    if (made.answer != Answer::kNotChecked || unchecked.empty()) found.push_back(std::move(made));
    if (unchecked.empty()) return found;
    auto& apart = found.emplace_back(finding(question));
    apart.answer = Answer::kNotChecked;
    apart.text =
        fmt::format("{} ran and {} compared with nothing: {}",
                    reports::count_of(unchecked.size(), question == kStacks ? "stack" : "case"),
                    unchecked.size() == 1 ? "was" : "were", with_reasons(unchecked));
    return found;
  }

  std::vector<Finding> promise() const {
    auto made = finding("promise");
    std::size_t held = 0;
    Reasons unchecked;
    double difference = 0;
    for (const auto* result : plain(runs_.cpu)) {
      if (result->status != Status::kOk) {
        if (!is_refused(*result)) made.failures.push_back(in_words(*result));
      } else if (breaks_promise(*result)) {
        made.failures.push_back(in_words(*result));
      } else if (is_unchecked(*result)) {
        unchecked.emplace(result->spec.id, result->equivalence->reason);
      } else if (result->equivalence) {
        ++held;
        difference = std::max(difference, result->equivalence->max_abs_difference.value_or(0));
      }
    }
    for (const auto* result : plain(runs_.card))
      if (breaks_promise(*result)) made.failures.push_back(in_words(*result));
    const bool is_exact = checked_.entry->promise == "bit_identical";
    made = closed(
        std::move(made), held,
        fmt::format("{} on the CPU: losses and parameters are the baseline's, {}", cases(held),
                    is_exact
                        ? "bit for bit"
                        : fmt::format("within the tolerance: at most {:.3g} apart", difference)),
        "no case of it ran on the CPU");
    if (promises()) return with_unchecked(std::move(made), unchecked);
    if (!unchecked.empty() && made.answer == Answer::kNotChecked)
      made.text = "it promises different training: there is nothing to compare it with";
    return {made};
  }

  // Of stacks with others, by name.
  struct Stacks {
    std::set<std::string> work;
    Reasons refused, unchecked;
    std::vector<std::string> failures;
  };

  void look_at_stacks(const Run& run, Stacks& stacks) const {
    const auto with_others = [&](const CaseResult& result) {
      return is_strategy() ? !is_alone(result) : !is_baseline(result);
    };
    for (const auto* result : ours(run, with_others)) {
      const auto name = records::stack_text(result->spec.strategies);
      if (result->status == Status::kOk && !breaks_promise(*result)) {
        stacks.work.insert(name);
        if (is_unchecked(*result)) stacks.unchecked.emplace(name, result->equivalence->reason);
      } else if (is_refused(*result) || others_have_no_effect(*result)) {
        stacks.refused.emplace(name, result->reason);
      } else {
        stacks.failures.push_back(in_words(*result));
      }
    }
  }

  std::vector<Finding> stacks() const {
    Stacks on_cpu, all;
    look_at_stacks(runs_.cpu, on_cpu);
    look_at_stacks(runs_.card, all);
    // Values are compared on the CPU alone. A stack that one model leaves unchecked is unchecked.
    std::erase_if(all.unchecked, [&](const auto& one) { return on_cpu.work.contains(one.first); });
    all.unchecked.merge(on_cpu.unchecked);
    all.work.merge(on_cpu.work);
    all.refused.merge(on_cpu.refused);
    std::ranges::move(on_cpu.failures, std::back_inserter(all.failures));
    std::erase_if(all.refused, [&](const auto& one) { return all.work.contains(one.first); });
    auto made = finding(kStacks);
    made.failures = std::move(all.failures);
    auto passed = fmt::format(
        "{} of {} stacks run, on the card and on the CPU; {} were seen to train as promised",
        all.work.size(), all.work.size() + all.refused.size(),
        all.work.size() - all.unchecked.size());
    if (!all.refused.empty()) passed += "; refused on these models: " + with_reasons(all.refused);
    made = closed(std::move(made), all.work.size(), passed,
                  all.refused.empty() ? "there is no other strategy" : "every stack is refused");
    return with_unchecked(std::move(made), all.unchecked);
  }

  // Names that have the same reason together.
  static std::string with_reasons(const Reasons& reasons) {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const auto& [name, reason] : reasons) by_reason[reason].push_back(name);
    std::vector<std::string> texts;
    for (const auto& [reason, names] : by_reason)
      texts.push_back(fmt::format("{} ({})", fmt::join(names, ", "), reason));
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  const Checked& checked_;
  const CheckRuns& runs_;
};

}  // namespace

std::vector<std::string> option_variants(const planning::Entry& entry) {
  std::vector<std::string> variants;
  const auto add = [&](const planning::Option& option, const nlohmann::json& value) {
    records::Selection selection;
    selection.id = entry.id;
    selection.options[option.name] = value;
    variants.push_back(records::selection_text(selection));
  };
  for (const auto& option : entry.options) {
    if (option.type == planning::OptionType::kBoolean)
      add(option, !option.default_value.get<bool>());
    for (const auto& choice : option.choices)
      if (option.default_value != choice) add(option, choice);
    const bool is_number = option.type == planning::OptionType::kInteger ||
                           option.type == planning::OptionType::kNumber;
    if (!is_number || !option.minimum || option.default_value == *option.minimum) continue;
    if (option.type == planning::OptionType::kInteger)
      add(option, static_cast<std::int64_t>(*option.minimum));
    else
      add(option, *option.minimum);
  }
  return variants;
}

std::vector<Finding> findings_of(const Checked& checked, const CheckRuns& runs) {
  return Checker(checked, runs).findings();
}

Finding finding_of_test(const std::string& id, const Run& run, bool is_on_cpu) {
  Finding made{id, "runs"};
  std::size_t ok = 0;
  std::string refusal = "there was none";
  for (const auto& result : run.cases) {
    if (result.status == Status::kOk && !breaks_promise(result))
      ok += is_on_cpu || !is_baseline(result);
    else if (!is_baseline(result) &&
             (is_refused(result) || (result.status == Status::kOutOfMemory && !is_on_cpu)))
      refusal = in_words(result);
    else
      made.failures.push_back(in_words(result));
  }
  return closed(std::move(made), ok, fmt::format("{} as promised", cases(run.cases.size())),
                "no case of the plugin ended ok; name models with --model: " + refusal);
}

}  // namespace peakbench::cli
