// How far the memory figures of an emulated program can be relied on, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/ledger.h"

namespace peakbench::emulator {

enum class VerdictKind { exact, exact_if, lower_bound, upper_bound, unreliable };

struct Verdict {
  VerdictKind kind = VerdictKind::exact;
  // What the figures do not contain, or rest on; the worst first.
  std::vector<std::string> reasons;
  // What holds the verdict only as long as the program does not act on it: with any, `exact` is
  // `exact_if`.
  std::vector<std::string> conditions;
  std::vector<std::string> notes;  // whether values were computed, where they were not
  std::vector<std::string> advice;
};

struct VerdictRequest {
  int wait_status = 0;  // how the program ended, as waitpid gives it
  std::string assume;   // --assume: "", "nonzero=all" or "nonzero=none"
  bool late_streams = false;
  std::uint64_t context_bytes = 0;  // set aside for the CUDA context
};

// Of all processes of a program. Pure: from the records alone.
Verdict judge(const std::vector<const Ledger*>& ledgers, const VerdictRequest& request);

// exact, exact if, lower bound, upper bound, unreliable.
const char* verdict_word(VerdictKind kind);
// The lines that end the table.
std::string verdict_text(const Verdict& verdict);
nlohmann::json to_json(const Verdict& verdict);

}  // namespace peakbench::emulator
