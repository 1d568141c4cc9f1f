#include "cli/plugin_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "reports/render/text.h"
#include "reports/render/words.h"
#include "result/selection_text.h"
#include "text/printable.h"
#include "text/wrapped.h"

namespace peakbench::cli {
namespace {

using manifest::Kind;
using result::CaseResult;
using result::Run;
using result::Status;

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

Cases joined(Cases first, const Cases& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string cases(std::size_t count) {
  return count == 1 ? "1 case" : fmt::format("{} cases", count);
}

class Checker {
 public:
  Checker(const Checked& checked, const CheckRuns& runs) : checked_(checked), runs_(runs) {}

  std::vector<Finding> findings() const {
    std::vector<Finding> found{runs(), same_bytes(), longer_run()};
    if (!option_variants(*checked_.entry).empty()) found.insert(found.begin() + 1, options());
    if (is_strategy()) found.push_back(promise());
    found.push_back(stacks());
    return found;
  }

 private:
  using Test = std::function<bool(const CaseResult&)>;

  bool is_strategy() const { return checked_.kind == Kind::kStrategy; }

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

  Finding finding(std::string question) const {
    Finding made;
    made.id = id();
    made.question = std::move(question);
    return made;
  }

  // Failed where there are failures, else not tested where nothing was.
  static Finding closed(Finding finding, std::size_t tested, const std::string& passed,
                        const std::string& untested) {
    if (!finding.failures.empty()) {
      finding.answer = Answer::kFailed;
      finding.text = fmt::format("{} not as it must be:", cases(finding.failures.size()));
    } else if (tested == 0) {
      finding.answer = Answer::kNotTested;
      finding.text = untested;
    } else {
      finding.text = passed;
    }
    return finding;
  }

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
  Finding options() const {
    auto made = finding("options");
    std::size_t ok = 0, refused = 0;
    const auto of_options = [](const CaseResult&) { return true; };
    const auto of_cpu = [&](const CaseResult& result) {
      return is_strategy() && is_alone(result) && !is_plain(result);
    };
    for (const auto* result : joined(ours(runs_.options, of_options), ours(runs_.cpu, of_cpu))) {
      if (result->status == Status::kOk && !breaks_promise(*result))
        ++ok;
      else if (is_refused(*result) || result->status == Status::kNoEffect)
        ++refused;
      else
        made.failures.push_back(in_words(*result));
    }
    auto passed = fmt::format("{} of other choices", cases(ok));
    if (refused > 0) passed += fmt::format("; {} refused with a reason", refused);
    return closed(
        std::move(made), ok, passed,
        refused > 0 ? "every other choice is refused, with a reason" : "no other choice was run");
  }

  // The figures of those that ran in both.
  Finding compared(std::string question, const Run& other, const std::string& passed,
                   const std::function<std::string(const result::Memory&, const result::Memory&)>&
                       difference) const {
    auto made = finding(std::move(question));
    std::size_t tested = 0;
    for (const auto* first : plain(runs_.card)) {
      const auto* second = result::find_case(other, first->spec.id);
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
                    [](const result::Memory& first, const result::Memory& second) -> std::string {
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
        [](const result::Memory& first, const result::Memory& second) -> std::string {
          const auto more = second.peak_allocated_bytes - first.peak_allocated_bytes;
          if (more == 0) return "";
          return fmt::format(
              "{} bytes {} at the peak of {} steps than of {}: {}", more < 0 ? -more : more,
              more < 0 ? "less" : "more", second.steps, first.steps,
              more < 0 ? "what a step takes depends on the number of steps"
                       : "something is kept from step to step, or the manifest lacks a `period`");
        });
  }

  Finding promise() const {
    auto made = finding("promise");
    std::size_t held = 0;
    std::string why = "no case of it ran on the CPU";
    std::optional<double> difference;
    for (const auto* result : plain(runs_.cpu)) {
      if (result->status != Status::kOk) {
        if (!is_refused(*result)) made.failures.push_back(in_words(*result));
        continue;
      }
      if (breaks_promise(*result)) {
        made.failures.push_back(in_words(*result));
      } else if (result->equivalence && result->equivalence->verdict == "held") {
        ++held;
        difference =
            std::max(difference.value_or(0), result->equivalence->max_abs_difference.value_or(0));
      } else if (result->equivalence && result->equivalence->promise == "different_problem") {
        why = "it promises different training: there is nothing to hold it against";
      } else if (result->equivalence) {
        why = result->equivalence->reason;
      }
    }
    const bool is_exact = checked_.entry->promise == "bit_identical";
    return closed(
        std::move(made), held,
        fmt::format("{} on the CPU: losses and parameters are the baseline's, {}", cases(held),
                    is_exact ? "bit for bit"
                             : fmt::format("within the tolerance: at most {:.3g} apart",
                                           difference.value_or(0))),
        why);
  }

  Finding stacks() const {
    auto made = finding("stacks");
    std::set<std::string> works;
    std::map<std::string, std::string> refused;  // by stack, and why
    const auto with_others = [&](const CaseResult& result) {
      return is_strategy() ? !is_alone(result) : !is_baseline(result);
    };
    for (const auto* result : joined(ours(runs_.card, with_others), ours(runs_.cpu, with_others))) {
      const auto name = result::stack_text(result->spec.strategies);
      if (result->status == Status::kOk && !breaks_promise(*result)) {
        works.insert(name);
      } else if (is_refused(*result) || others_have_no_effect(*result)) {
        refused.emplace(name, result->reason);
      } else {
        made.failures.push_back(in_words(*result));
      }
    }
    std::erase_if(refused, [&](const auto& one) { return works.contains(one.first); });
    auto passed = fmt::format("{} of {} stacks run, on the card and on the CPU", works.size(),
                              works.size() + refused.size());
    if (!refused.empty()) passed += "; refused on these models: " + with_reasons(refused);
    return closed(std::move(made), works.size(), passed,
                  refused.empty() ? "there is no other strategy" : "every stack is refused");
  }

  // Stacks that are refused for the same reason together.
  static std::string with_reasons(const std::map<std::string, std::string>& refused) {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const auto& [name, reason] : refused) by_reason[reason].push_back(name);
    std::vector<std::string> texts;
    for (const auto& [reason, names] : by_reason)
      texts.push_back(fmt::format("{} ({})", fmt::join(names, ", "), reason));
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  const Checked& checked_;
  const CheckRuns& runs_;
};

nlohmann::ordered_json json_of(const Finding& finding) {
  return {{"id", finding.id},
          {"question", finding.question},
          {"answer", answer_word(finding.answer)},
          {"text", finding.text},
          {"failures", finding.failures}};
}

std::string counts(const std::vector<Finding>& findings) {
  const auto of = [&](Answer answer) {
    return std::ranges::count(findings, answer, &Finding::answer);
  };
  return fmt::format("{} passed, {} failed, {} not tested", of(Answer::kPassed),
                     of(Answer::kFailed), of(Answer::kNotTested));
}

// The words, in lines that begin where the first does.
std::string behind(const std::string& before, const std::string& words, int width) {
  const auto columns = before.size();
  auto text = before + wrapped(words, std::max(width - static_cast<int>(columns), 20), 0);
  for (auto at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1))
    text.insert(at + 1, columns, ' ');
  return text;
}

}  // namespace

std::string answer_word(Answer answer) {
  switch (answer) {
    case Answer::kPassed:
      return "passed";
    case Answer::kFailed:
      return "failed";
    case Answer::kNotTested:
      return "not tested";
  }
  return "";
}

std::vector<std::string> option_variants(const manifest::Entry& entry) {
  std::vector<std::string> variants;
  const auto add = [&](const manifest::Option& option, const nlohmann::json& value) {
    result::Selection selection;
    selection.id = entry.id;
    selection.options[option.name] = value;
    variants.push_back(result::selection_text(selection));
  };
  for (const auto& option : entry.options) {
    if (option.type == manifest::OptionType::kBoolean)
      add(option, !option.default_value.get<bool>());
    for (const auto& choice : option.choices)
      if (option.default_value != choice) add(option, choice);
    const bool is_number = option.type == manifest::OptionType::kInteger ||
                           option.type == manifest::OptionType::kNumber;
    if (!is_number || !option.minimum || option.default_value == *option.minimum) continue;
    if (option.type == manifest::OptionType::kInteger)
      add(option, static_cast<std::int64_t>(*option.minimum));
    else
      add(option, *option.minimum);
  }
  return variants;
}

std::vector<Finding> findings_of(const Checked& checked, const CheckRuns& runs) {
  return Checker(checked, runs).findings();
}

bool all_passed(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& finding) {
    return finding.answer == Answer::kFailed ||
           // A plugin that ran with nothing was not checked.
           (finding.answer == Answer::kNotTested && finding.question == "runs");
  });
}

std::string findings_text(const std::vector<Finding>& findings, int width) {
  std::string text, of;
  for (const auto& finding : findings) {
    if (finding.id != of) text += (text.empty() ? "" : "\n") + printable(finding.id) + "\n";
    of = finding.id;
    text += behind(fmt::format("  {:<10}  {:<10}  ", answer_word(finding.answer), finding.question),
                   printable(finding.text), width);
    for (const auto& failure : finding.failures)
      text += behind("      ", printable(failure), width);
  }
  return text + "\n" + counts(findings) + "\n";
}

nlohmann::ordered_json findings_json(const std::vector<Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& finding : findings) json.push_back(json_of(finding));
  return json;
}

std::string findings_markdown(const std::vector<Finding>& findings) {
  std::string text = "| entry | question | answer | |\n|:--|:--|:--|:--|\n";
  for (const auto& finding : findings) {
    text += fmt::format("| {} | {} | {} | {} |\n", reports::escape_markdown(finding.id),
                        finding.question, answer_word(finding.answer),
                        reports::escape_markdown(finding.text));
  }
  for (const auto& finding : findings)
    for (const auto& failure : finding.failures)
      text += fmt::format("\n- {}: {}", finding.question, reports::escape_markdown(failure));
  return text + (text.back() == '\n' ? "" : "\n");
}

}  // namespace peakbench::cli
