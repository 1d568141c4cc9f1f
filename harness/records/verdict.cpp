#include "records/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/numbers.h"

namespace peakbench::records {
namespace {

struct KindRow {
  VerdictKind kind;
  const char* word;
  int doubt;
};

constexpr std::array kVerdictKinds{KindRow{VerdictKind::exact, "exact", 0},
                                   KindRow{VerdictKind::exact_if, "exact if", 1},
                                   KindRow{VerdictKind::estimate, "estimate", 1},
                                   KindRow{VerdictKind::lower_bound, "lower bound", 2},
                                   KindRow{VerdictKind::upper_bound, "upper bound", 2},
                                   KindRow{VerdictKind::unreliable, "unreliable", 3}};

const KindRow& row_of(VerdictKind kind) { return kVerdictKinds.at(static_cast<std::size_t>(kind)); }

}  // namespace

const char* verdict_word(VerdictKind kind) { return row_of(kind).word; }

int doubt(VerdictKind kind) { return row_of(kind).doubt; }

EstimateError wider(const EstimateError& a, const EstimateError& b) {
  return {std::max(a.less_bytes, b.less_bytes), std::max(a.more_bytes, b.more_bytes),
          std::max(a.more_reserved_bytes, b.more_reserved_bytes)};
}

std::string text_of(const EstimateError& error) {
  return fmt::format("-{}/+{}", size_text(static_cast<std::uint64_t>(error.less_bytes)),
                     size_text(static_cast<std::uint64_t>(error.more_bytes)));
}

VerdictKind verdict_kind_from(const std::string& word) {
  for (const KindRow& row : kVerdictKinds)
    if (word == row.word) return row.kind;
  throw std::invalid_argument(fmt::format(
      "'{}' is no verdict; expected exact, exact if, estimate, lower bound, upper bound "
      "or unreliable",
      word));
}

}  // namespace peakbench::records
