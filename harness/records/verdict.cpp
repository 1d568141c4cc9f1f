#include "records/verdict.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "records/case_json.h"

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

namespace {

// throws std::invalid_argument
VerdictKind verdict_kind_from(const std::string& word) {
  for (const KindRow& row : kVerdictKinds)
    if (word == row.word) return row.kind;
  throw std::invalid_argument(
      fmt::format("'{}' is no verdict; expected exact, exact if, lower bound, upper bound or "
                  "unreliable",
                  word));
}

}  // namespace

int doubt(VerdictKind kind) { return row_of(kind).doubt; }

namespace {

nlohmann::ordered_json to_json(const SecondGuess& guess) {
  return {{"runs", guess.runs},
          {"peak_bytes", guess.peak_bytes},
          {"same", guess.same},
          {"problem", guess.problem}};
}

SecondGuess read_second_guess(const Fields& fields) {
  SecondGuess guess;
  guess.runs = fields.get<std::int64_t>("runs");
  guess.peak_bytes = fields.get_or<std::vector<std::int64_t>>("peak_bytes", {});
  guess.same = fields.get_or("same", false);
  guess.problem = fields.get_or<std::string>("problem", "");
  return guess;
}

}  // namespace

nlohmann::ordered_json to_json(const Verdict& verdict) {
  nlohmann::ordered_json json{
      {"kind", verdict_word(verdict.kind)},
      {"reasons", verdict.reasons},
      {"conditions", verdict.conditions},
      {"notes", verdict.notes},
      {"advice", verdict.advice},
      {"workspace_room_bytes", optional_to_json(verdict.workspace_room_bytes)}};
  if (verdict.second_guess) json["second_guess"] = to_json(*verdict.second_guess);
  return json;
}

Verdict read_verdict(const Fields& fields) {
  using Texts = std::vector<std::string>;
  Verdict verdict;
  try {
    verdict.kind = verdict_kind_from(fields.get<std::string>("kind"));
  } catch (const std::invalid_argument& error) {
    throw FieldError(fields.pointer("kind"), error.what());
  }
  verdict.reasons = fields.get_or<Texts>("reasons", {});
  verdict.conditions = fields.get_or<Texts>("conditions", {});
  verdict.notes = fields.get_or<Texts>("notes", {});
  verdict.advice = fields.get_or<Texts>("advice", {});
  verdict.workspace_room_bytes =
      fields.maybe<std::int64_t>("workspace_room_bytes", Range<std::int64_t>{.least = 0});
  if (const auto guess = fields.maybe_child("second_guess"))
    verdict.second_guess = read_second_guess(*guess);
  return verdict;
}

}  // namespace peakbench::records
