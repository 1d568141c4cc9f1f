// A published figure: its case, kind and unit, and how it is compared with ours. A suite's
// [[published]], a run's `published`.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/fields.h"
#include "records/case.h"

namespace peakbench::records {

struct Published {
  std::string model, strategy;  // strategy: a stack, as in a case id; empty = any
  // peak_allocated | peak_active | peak_reserved, as PyTorch counts them; peak_memory where the
  // publisher does not say which; throughput
  std::string metric;
  double value = 0;
  std::string unit;  // as published: GB, GiB, bytes, tok/s, ...
  std::string source, url, note;
  // Of these cases only; empty and nullopt: any.
  std::string dtype = {};
  std::optional<std::int64_t> batch_size = {}, sequence_length = {};
  std::string device = {};  // the emulated card in place of the publisher's: emulated:a100-80gb
  std::optional<double> rounded_to = {};  // in `unit`; absent: to the last digit of `value`
  std::map<std::string, std::string> versions = {};  // the publisher's: {"torch", "2.4.0"}
  // How much of the configuration is the same (kGrades). Only graded figures are compared with
  // ours.
  std::string grade = {};
  // Of a difference that stays: one of kCauses, and what was seen, in a sentence.
  std::string cause = {}, explanation = {};
};

inline constexpr const char* kMemoryMetrics[] = {"peak_memory", "peak_allocated", "peak_active",
                                                 "peak_reserved"};
inline constexpr const char* kGrades[] = {
    "same_configuration",  // all that moves memory is known and the same
    "same_law",            // something is unknown or different; how memory grows is
    "other_versions",      // other kernels or libraries than the publisher's
    "computed",            // the publisher computed it, and measured nothing: never counted
};
inline constexpr const char* kCauses[] = {"versions", "kernels", "workspaces",
                                          "data",     "timing",  "unknown"};

// What a figure lacks or has wrong: the field, and what was expected there.
struct WrongField {
  std::string field, problem;
};
std::optional<WrongField> wrong_field_of(const Published& figure);

bool is_of_memory(const Published& figure);

// Whether the figure is about this model (its id, or with the case's options), for this stack,
// dtype, batch and sequence or any; on this emulated card or any. Real cards are not compared: all
// figures are shown for them.
bool is_about(const Published& figure, const CaseSpec& spec);

// Our figure of the published kind; nullopt if this memory has none. peak_memory and peak_active
// are both compared with allocated bytes. Active bytes are only more while a freed block waits for
// another stream.
std::optional<std::int64_t> bytes_of_kind(const Memory& memory, const std::string& metric);

nlohmann::ordered_json to_json(const Published& figure);

}  // namespace peakbench::records
