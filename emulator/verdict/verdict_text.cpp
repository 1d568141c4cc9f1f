#include <fmt/format.h>

#include <algorithm>

#include "verdict/judge.h"

namespace peakbench::emulator {
namespace {

constexpr std::size_t kMostLines = 12;

void add_lines(std::string& out, const char* before, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    out += fmt::format("  {}{}\n", before, lines[i]);
  if (lines.size() > kMostLines)
    out += fmt::format("  ... and {} more (--json has all)\n", lines.size() - kMostLines);
}

}  // namespace

std::string verdict_sentence(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::exact) return "";
  const bool conditional = verdict.kind == VerdictKind::exact_if;
  const auto& why = conditional ? verdict.conditions : verdict.reasons;
  std::string text = verdict_word(verdict.kind);
  if (!why.empty())
    text += fmt::format("{} {}",
                        conditional ? " the program's path does not depend on this:" : ", because",
                        why.front());
  if (why.size() > 1) text += fmt::format(" (and {} more)", why.size() - 1);
  if (!verdict.advice.empty()) text += ". To do: " + verdict.advice.front();
  return text + ".";
}

std::string verdict_text(const Verdict& verdict) {
  const bool conditional = verdict.kind == VerdictKind::exact_if;
  std::string out = fmt::format("Verdict: {}{}\n", verdict_word(verdict.kind),
                                conditional ? " the program's path does not depend on these:"
                                : verdict.reasons.empty() ? ""
                                                          : ", because");
  add_lines(out, "", verdict.reasons);
  if (!conditional && !verdict.conditions.empty())
    out += "Provided that the program's path does not depend on these:\n";
  add_lines(out, "", verdict.conditions);
  add_lines(out, "note: ", verdict.notes);
  add_lines(out, "to do: ", verdict.advice);
  return out;
}

}  // namespace peakbench::emulator
