#include "records/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/json.h"

namespace peakbench::records {
namespace {

constexpr std::array<KindFacts, 3> kCaseKinds{{
    {.kind = CaseKind::kStrategy, .word = "strategy"},
    {.kind = CaseKind::kProgram,
     .word = "program",
     .has_stack = false,
     .has_promise = false,
     .has_times = false,
     .has_lines = true,
     .no_times = "a program runs as it is: which of its steps to time is not known"},
    {.kind = CaseKind::kPython,
     .word = "python",
     .has_times = false,
     .has_lines = true,
     .no_times = "steps in Python are not timed: a plugin's, which are, have no Python in them"},
}};

}  // namespace

const KindFacts& facts_of(CaseKind kind) {
  return *std::ranges::find(kCaseKinds, kind, &KindFacts::kind);
}

std::string to_string(CaseKind kind) { return facts_of(kind).word; }

CaseKind case_kind_from(const std::string& word) {
  for (const auto& facts : kCaseKinds)
    if (word == facts.word) return facts.kind;
  throw std::invalid_argument("expected strategy, program or python, got \"" + word + "\"");
}

namespace {

std::string value_text(const nlohmann::json& value) {
  if (!value.is_string()) return json_line(value);
  const auto text = value.get<std::string>();
  const bool plain = !text.empty() && text.find_first_of(",+\" ") == std::string::npos;
  return plain ? text : fmt::format("\"{}\"", text);
}

}  // namespace

std::string selection_text(const Selection& selection) {
  std::string text = selection.id;
  for (const auto& [name, value] : selection.options.items())
    text += fmt::format(",{}={}", name, value_text(value));
  return text;
}

std::string stack_text(const std::vector<Selection>& strategies) {
  std::string text;
  for (const auto& strategy : strategies) {
    if (!text.empty()) text += '+';
    text += selection_text(strategy);
  }
  return text;
}

std::vector<Selection> without_plain_baseline(std::vector<Selection> strategies) {
  if (strategies.size() > 1)
    std::erase_if(strategies, [](const Selection& strategy) {
      return strategy.id == kBaseline && strategy.options.empty();
    });
  return strategies;
}

}  // namespace peakbench::records
