#include "result/case_kind.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace peakbench::result {
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

}  // namespace peakbench::result
