#include "records/verdict.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace peakbench::records {
namespace {

struct KindRow {
  VerdictKind kind;
  const char* word;
  int doubt;
};

constexpr std::array kVerdictKinds{KindRow{VerdictKind::exact, "exact", 0},
                                   KindRow{VerdictKind::exact_if, "exact if", 1},
                                   KindRow{VerdictKind::lower_bound, "lower bound", 2},
                                   KindRow{VerdictKind::upper_bound, "upper bound", 2},
                                   KindRow{VerdictKind::unreliable, "unreliable", 3}};

const KindRow& row_of(VerdictKind kind) { return kVerdictKinds.at(static_cast<std::size_t>(kind)); }

}  // namespace

const char* verdict_word(VerdictKind kind) { return row_of(kind).word; }

int doubt(VerdictKind kind) { return row_of(kind).doubt; }

VerdictKind verdict_kind_from(const std::string& word) {
  for (const KindRow& row : kVerdictKinds)
    if (word == row.word) return row.kind;
  throw std::invalid_argument(
      fmt::format("'{}' is no verdict; expected exact, exact if, lower bound, upper bound or "
                  "unreliable",
                  word));
}

}  // namespace peakbench::records
