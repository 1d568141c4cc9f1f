#include "planning/stack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/errors.h"
#include "planning/option.h"
#include "planning/vocabulary.h"
#include "records/setting.h"

namespace peakbench::planning {
namespace {

using records::kBaseline;

const planning::Entry& entry_of(const Choice& choice) { return *choice.offer.entry; }

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_baseline(const Choice& choice) { return entry_of(choice).id == kBaseline; }

bool solves_another_problem(const Choice& choice) {
  return !is_baseline(choice) && entry_of(choice).promise == "different_problem";
}

void add(std::optional<double>& sum, const std::optional<double>& one) {
  if (one) sum = sum.value_or(0) + *one;
}

void sort_canonically(std::vector<Choice>& choices) {
  std::ranges::sort(choices, {}, [](const Choice& choice) {
    const auto& entry = entry_of(choice);
    return std::tuple(entry.id != kBaseline, entry.order, entry.id);
  });
}

// Why the second cannot do its part where the first updates inside backward; or nothing.
std::string conflict_with_updates_in_backward(const planning::Entry& updating,
                                              const planning::Entry& other) {
  if (!planning::updates_in_backward(updating)) return "";
  if (planning::needs_all_gradients(other)) {
    return fmt::format(
        "{} needs all gradients at once; {} updates each parameter as its gradient is complete",
        other.id, updating.id);
  }
  if (holds(other.slots, "micro_batches")) {
    return fmt::format("{} updates once after several micro-batches; {} would update in each",
                       other.id, updating.id);
  }
  if (holds(other.slots, "kernel_grouping")) {
    return fmt::format(
        "{} chooses how many tensors a kernel updates; {} updates one parameter at a time",
        other.id, updating.id);
  }
  return "";
}

// Why the second is not what it says where the first repeats its first step; or nothing.
std::string conflict_with_replayed_steps(const planning::Entry& replaying,
                                         const planning::Entry& other) {
  if (!holds(replaying.capabilities, "replays_steps")) return "";
  if (holds(other.capabilities, "changes_trained_set")) {
    return fmt::format(
        "{} changes from step to step which parameters are trained; {} repeats what the first step "
        "did",
        other.id, replaying.id);
  }
  if (holds(other.capabilities, "decides_on_host")) {
    return fmt::format(
        "{} decides on the host what runs in each step; {} repeats what the first step decided",
        other.id, replaying.id);
  }
  return "";
}

// What no other strategy of the stack takes; or nothing.
std::string missing_for(const planning::Entry& entry, const std::vector<Choice>& choices) {
  for (const auto& slot : entry.requires_slots) {
    const auto takes = [&](const Choice& choice) {
      return &entry_of(choice) != &entry && holds(entry_of(choice).slots, slot);
    };
    if (std::ranges::none_of(choices, takes))
      return fmt::format("{} needs another strategy that takes the slot {}", entry.id, slot);
  }
  return "";
}

// Why the model has no layer of this part: ": REASON", or nothing.
std::string why_missing(const planning::Entry& model, const std::string& part) {
  for (const auto& [parts, reason] : model.missing_linears)
    if (holds(parts, part)) return ": " + reason;
  return "";
}

// A line for each part of the model that an option names and the model does not have.
std::vector<std::string> missing_parts(const planning::Entry& model, const Choice& choice) {
  std::vector<std::string> lines;
  for (const auto& option : entry_of(choice).options) {
    if (option.type != planning::OptionType::kParts || model.linears.empty()) continue;
    const auto text = choice.use.options.at(option.name).get<std::string>();
    const auto parts = planning::chosen_parts(option, text).value();
    for (const auto& part : parts) {
      if (holds(model.linears, part.name)) continue;
      lines.push_back(fmt::format("{},{}={}: {} has no {} layer{}", entry_of(choice).id,
                                  option.name, text, model.id, part.name,
                                  why_missing(model, part.name)));
    }
  }
  return lines;
}

// A line for each choice of an option that needs what the model does not have.
std::vector<std::string> missing_for_choices(const planning::Entry& model, const Choice& choice) {
  std::vector<std::string> lines;
  for (const auto& option : entry_of(choice).options) {
    if (option.needs.empty()) continue;
    const auto chosen = choice.use.options.at(option.name).get<std::string>();
    const auto needs = option.needs.find(chosen);
    if (needs == option.needs.end()) continue;
    for (const auto& need : needs->second)
      if (!holds(model.facts, need))
        lines.push_back(fmt::format("{},{}={} needs {}, which {} does not have",
                                    entry_of(choice).id, option.name, chosen, need, model.id));
  }
  return lines;
}

// Why a step that is replayed is not the model's; or nothing.
std::string why_not_replayed(const planning::Entry& model, const planning::Entry& strategy) {
  if (!holds(strategy.capabilities, "replays_steps")) return "";
  if (holds(model.facts, "changes_batch")) {
    return fmt::format(
        "{} is given another batch in each step; {} repeats the first step with the first batch",
        model.id, strategy.id);
  }
  if (holds(model.facts, "decides_on_host")) {
    return fmt::format(
        "{} decides on the host what runs in each step; {} repeats what the first step decided",
        model.id, strategy.id);
  }
  return "";
}

// Why parts of a batch do not add up to it; or nothing.
std::string why_not_split(const planning::Entry& model, const planning::Entry& strategy) {
  if (!holds(strategy.slots, "micro_batches")) return "";
  if (model.loss == "whole_batch") {
    return fmt::format(
        "{} splits the batch, and the loss of {} is of the whole batch: that of a sample depends "
        "on "
        "the others",
        strategy.id, model.id);
  }
  if (model.loss == "per_token" && !holds(model.facts, "output_head")) {
    return fmt::format(
        "{} splits the batch, and the loss of {} is a mean over tokens, which nobody can count "
        "without its output_head",
        strategy.id, model.id);
  }
  return "";
}

// From choices in canonical order.
Stack with_selections(std::vector<Choice> choices) {
  Stack stack{std::move(choices), {}};
  for (const auto& choice : stack.choices) stack.selections.push_back(choice.use.selection);
  stack.selections = records::without_plain_baseline(std::move(stack.selections));
  return stack;
}

}  // namespace

std::string conflict_between(const planning::Entry& a, const planning::Entry& b) {
  for (const auto& slot : a.slots) {
    if (holds(b.slots, slot)) {
      return fmt::format("{} and {} both take the slot {}; a stack can have one of them", a.id,
                         b.id, slot);
    }
  }
  for (const auto& [one, other] : {std::tie(a, b), std::tie(b, a)}) {
    auto conflict = conflict_with_updates_in_backward(one, other);
    if (conflict.empty()) conflict = conflict_with_replayed_steps(one, other);
    if (!conflict.empty()) return conflict;
  }
  for (const auto& [one, other] : {std::tie(a, b), std::tie(b, a)})
    for (const auto& conflict : one.conflicts)
      if (conflict.id == other.id)
        return fmt::format("{} cannot be stacked with {}: {}", one.id, other.id, conflict.reason);
  return "";
}

Stack make_stack(const Catalogue& catalogue, const std::vector<TypedSelection>& typed,
                 const OptionTables& tables) {
  Stack stack;
  std::set<std::string> ids;
  for (const auto& one : typed) {
    const auto& id = catalogue.find(planning::Kind::kStrategy, one.id).entry->id;
    if (!ids.insert(id).second) {
      throw ConfigError(fmt::format("strategy \"{}\" is in the stack twice; name it once", id));
    }
    stack.choices.push_back(catalogue.choose(planning::Kind::kStrategy, one, tables));
  }
  if (!ids.contains(kBaseline)) {
    stack.choices.push_back(catalogue.choose(planning::Kind::kStrategy, {kBaseline, {}}, tables));
  }
  sort_canonically(stack.choices);
  return with_selections(std::move(stack.choices));
}

std::vector<Stack> subsets_for_ablation(const Stack& stack) {
  const auto& all = stack.choices;  // the baseline first
  if (all.size() < 3) return {};
  std::vector<Stack> subsets{with_selections({all.front()})};
  for (std::size_t i = 1; i < all.size(); ++i)
    subsets.push_back(with_selections({all.front(), all[i]}));
  for (std::size_t i = 1; i < all.size(); ++i) {
    auto others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    subsets.push_back(with_selections(std::move(others)));
  }
  return subsets;
}

std::string conflict_in(const Stack& stack) {
  std::vector<std::string> conflicts;
  const auto& choices = stack.choices;
  for (std::size_t i = 1; i < choices.size(); ++i) {  // the baseline gives way to everyone
    for (std::size_t j = i + 1; j < choices.size(); ++j) {
      const auto conflict = conflict_between(entry_of(choices[i]), entry_of(choices[j]));
      if (!conflict.empty()) conflicts.push_back(conflict);
    }
    const auto missing = missing_for(entry_of(choices[i]), choices);
    if (!missing.empty()) conflicts.push_back(missing);
  }
  return fmt::format("{}", fmt::join(conflicts, "; "));
}

std::string lack_of(const planning::Entry& model, const Stack& stack) {
  std::vector<std::string> lacks;
  for (const auto& choice : stack.choices) {
    for (const auto& need : entry_of(choice).needs) {
      if (holds(model.facts, need)) continue;
      lacks.push_back(
          fmt::format("{} needs {}, which {} does not have", entry_of(choice).id, need, model.id));
    }
    std::ranges::move(missing_parts(model, choice), std::back_inserter(lacks));
    std::ranges::move(missing_for_choices(model, choice), std::back_inserter(lacks));
    for (const auto& why :
         {why_not_split(model, entry_of(choice)), why_not_replayed(model, entry_of(choice))})
      if (!why.empty()) lacks.push_back(why);
  }
  return fmt::format("{}", fmt::join(lacks, "; "));
}

std::string unseen_memory(const Stack& stack, std::int64_t steps) {
  std::vector<std::string> unseen;
  for (const auto& choice : stack.choices) {
    const auto period = planning::period_of(entry_of(choice), choice.use.options);
    if (period <= steps) continue;
    unseen.push_back(fmt::format("{} shows its memory in {} steps, and {} {} run (--steps {})",
                                 entry_of(choice).id, period, steps, steps == 1 ? "is" : "are",
                                 period));
  }
  return fmt::format("{}", fmt::join(unseen, "; "));
}

Stack reference_of(const Stack& stack, const std::vector<std::string>& checked) {
  const auto is_checked = [&](const Choice& choice) { return holds(checked, entry_of(choice).id); };
  const bool only_checked = std::ranges::any_of(stack.choices, is_checked);
  std::vector<Choice> parts;
  for (const auto& choice : stack.choices) {
    const bool stays = only_checked ? !is_checked(choice) : is_baseline(choice);
    if (stays || solves_another_problem(choice)) parts.push_back(choice);
  }
  return with_selections(std::move(parts));
}

records::Equivalence promise_of(const Stack& stack, const std::vector<std::string>& checked) {
  const auto reference = reference_of(stack, checked);
  const auto is_compared = [&](const Choice& choice) {
    const auto& id = entry_of(choice).id;
    return std::ranges::none_of(reference.choices,
                                [&](const Choice& one) { return entry_of(one).id == id; });
  };
  records::Equivalence promise;
  promise.promise = "bit_identical";
  promise.verdict = "not_checked";
  promise.different_problem = std::ranges::any_of(stack.choices, solves_another_problem);
  if (promise.different_problem && reference.choices.size() == stack.choices.size()) {
    promise.promise = "different_problem";
    return promise;
  }
  for (const auto& choice : stack.choices) {
    const auto& entry = entry_of(choice);
    if (!is_compared(choice) || entry.promise != "within_tolerance") continue;
    promise.promise = entry.promise;
    add(promise.tolerance, entry.tolerance);
    add(promise.relative_tolerance, entry.relative_tolerance);
  }
  return promise;
}

}  // namespace peakbench::planning
