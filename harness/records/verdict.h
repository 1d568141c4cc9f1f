// How far the memory figures of an emulated case or program can be relied on, and why.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"

namespace peakbench::records {

// The best first.
enum class VerdictKind {
  exact,
  exact_if,     // as long as the `conditions` hold
  estimate,     // a card takes as much, less `estimate`'s less_bytes to more_bytes
  lower_bound,  // a card takes as much or more
  upper_bound,
  unreliable,
};

// Runs of a program with other plausible values in place of unknown ones (`emulate
// --second-guess`).
struct SecondGuess {
  std::int64_t runs = 0;                 // that came to their end, the first one included
  std::vector<std::int64_t> peak_bytes;  // of the fullest card, by run
  std::string problem;                   // why another run says nothing; empty: all did
  bool same = false;                     // all of its peaks were the same in each run

  bool operator==(const SecondGuess&) const = default;
};

// How much less and more than the peak of allocated bytes a card may take, and how much more
// PyTorch may reserve there, as far as is known.
struct EstimateError {
  std::int64_t less_bytes = 0, more_bytes = 0, more_reserved_bytes = 0;

  bool operator==(const EstimateError&) const = default;
};

EstimateError wider(const EstimateError& a, const EstimateError& b);
std::string text_of(const EstimateError& error);  // "-5.0 MiB/+12 MiB"

struct Verdict {
  VerdictKind kind = VerdictKind::exact;
  // What the figures do not contain, or rest on; the worst first.
  std::vector<std::string> reasons;
  // What holds the verdict only as long as the program does not act on it: with any, `exact` is
  // `exact_if`.
  std::vector<std::string> conditions;
  std::vector<std::string> notes;  // whether values were computed, where they were not
  std::vector<std::string> advice;
  // Of a lower bound for which workspaces of the vendor's choosing are missing, and nothing else:
  // it is exact unless one of them is larger than this.
  std::optional<std::int64_t> workspace_room_bytes;
  std::optional<EstimateError> estimate;  // where workspaces of convolutions are among the figures
  std::optional<SecondGuess> second_guess;
};

// exact, exact if, estimate, lower bound, upper bound, unreliable.
const char* verdict_word(VerdictKind kind);
VerdictKind verdict_kind_from(const std::string& word);  // throws std::invalid_argument

// How much worse one kind of figure is than another: 0 for exact, 1 for exact if and an estimate,
// the same for both bounds.
int doubt(VerdictKind kind);

nlohmann::ordered_json to_json(const Verdict& verdict);
Verdict read_verdict(const Fields& fields);

}  // namespace peakbench::records
