#include "plan/stack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "errors/errors.h"
#include "manifest/vocabulary.h"
#include "result/selection_text.h"

namespace peakbench::plan {
namespace {

constexpr const char* kBaseline = "baseline";

const manifest::Entry& entry_of(const Choice& choice) { return *choice.offer.entry; }

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

const OptionTexts& table_of(const std::map<std::string, OptionTexts>& tables,
                            const std::string& id) {
  static const OptionTexts kNone;
  const auto found = tables.find(id);
  return found == tables.end() ? kNone : found->second;
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
std::string conflict_with_updates_in_backward(const manifest::Entry& updating,
                                              const manifest::Entry& other) {
  if (!manifest::updates_in_backward(updating)) return "";
  if (manifest::needs_all_gradients(other)) {
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

// One line for a pair, or nothing.
std::string conflict_of(const manifest::Entry& a, const manifest::Entry& b) {
  for (const auto& slot : a.slots) {
    if (holds(b.slots, slot)) {
      return fmt::format("{} and {} both take the slot {}; a stack can have one of them", a.id,
                         b.id, slot);
    }
  }
  for (const auto& [updating, other] : {std::tie(a, b), std::tie(b, a)}) {
    auto conflict = conflict_with_updates_in_backward(updating, other);
    if (!conflict.empty()) return conflict;
  }
  if (holds(a.conflicts, b.id)) return fmt::format("{} cannot be stacked with {}", a.id, b.id);
  if (holds(b.conflicts, a.id)) return fmt::format("{} cannot be stacked with {}", b.id, a.id);
  return "";
}

// From choices in canonical order.
Stack with_selections(std::vector<Choice> choices) {
  Stack stack{std::move(choices), {}};
  for (const auto& choice : stack.choices) stack.selections.push_back(choice.use.selection);
  stack.selections = result::without_plain_baseline(std::move(stack.selections));
  return stack;
}

}  // namespace

Stack make_stack(const Catalogue& catalogue, const std::vector<TypedSelection>& typed,
                 const std::map<std::string, OptionTexts>& tables) {
  Stack stack;
  std::set<std::string> ids;
  for (const auto& one : typed) {
    if (!ids.insert(one.id).second) {
      throw ConfigError(fmt::format("strategy \"{}\" is in the stack twice; name it once", one.id));
    }
    stack.choices.push_back(
        catalogue.choose(manifest::Kind::kStrategy, one, table_of(tables, one.id)));
  }
  if (!ids.contains(kBaseline)) {
    stack.choices.push_back(
        catalogue.choose(manifest::Kind::kStrategy, {kBaseline, {}}, table_of(tables, kBaseline)));
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
      const auto conflict = conflict_of(entry_of(choices[i]), entry_of(choices[j]));
      if (!conflict.empty()) conflicts.push_back(conflict);
    }
  }
  return fmt::format("{}", fmt::join(conflicts, "; "));
}

std::string lack_of(const manifest::Entry& model, const Stack& stack) {
  std::vector<std::string> lacks;
  for (const auto& choice : stack.choices) {
    for (const auto& need : entry_of(choice).needs) {
      if (holds(model.facts, need)) continue;
      lacks.push_back(
          fmt::format("{} needs {}, which {} does not have", entry_of(choice).id, need, model.id));
    }
  }
  return fmt::format("{}", fmt::join(lacks, "; "));
}

Stack reference_of(const Stack& stack) {
  std::vector<Choice> parts;
  for (const auto& choice : stack.choices) {
    if (is_baseline(choice) || solves_another_problem(choice)) parts.push_back(choice);
  }
  return with_selections(std::move(parts));
}

result::Equivalence promise_of(const Stack& stack) {
  result::Equivalence promise;
  promise.promise = "bit_identical";
  promise.verdict = "not_checked";
  promise.different_problem = std::ranges::any_of(stack.choices, solves_another_problem);
  if (promise.different_problem && reference_of(stack).choices.size() == stack.choices.size()) {
    promise.promise = "different_problem";
    return promise;
  }
  for (const auto& choice : stack.choices) {
    const auto& entry = entry_of(choice);
    if (is_baseline(choice) || entry.promise != "within_tolerance") continue;
    promise.promise = entry.promise;
    add(promise.tolerance, entry.tolerance);
    add(promise.relative_tolerance, entry.relative_tolerance);
  }
  return promise;
}

}  // namespace peakbench::plan
