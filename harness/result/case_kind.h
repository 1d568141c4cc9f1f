// What a case is of. What the kinds differ in is asked of their facts, never by comparing kinds.
#pragma once

#include <string>

namespace peakbench::result {

enum class CaseKind {
  kStrategy,  // a model under a stack of strategies
  kProgram,   // somebody's own program, run as it is
  kPython,    // a model under a strategy, both functions in Python
};

struct KindFacts {
  CaseKind kind = CaseKind::kStrategy;
  const char* word = "";      // in files and ids
  bool has_stack = true;      // strategies, `baseline` at least
  bool has_promise = true;    // about training, held against a reference case
  bool has_times = true;      // its steps are ours to time
  bool has_lines = false;     // its memory is of lines of somebody's Python
  const char* no_times = "";  // for people, why not; empty where they are
};

const KindFacts& facts_of(CaseKind kind);

std::string to_string(CaseKind kind);              // "strategy", "program", "python"
CaseKind case_kind_from(const std::string& word);  // throws std::invalid_argument that names all

}  // namespace peakbench::result
