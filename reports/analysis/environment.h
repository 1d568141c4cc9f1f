#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "records/run.h"

namespace peakbench::reports {

// Where a case ran. The case says it; in files of schema 1.0 the run does, for all its cases at
// once: there the last case that ran left its card.

// The case's facts of its device (card, driver, cpu_capability, ...); of a file that has none, an
// empty object.
const nlohmann::json& device_facts(const records::CaseResult& result);

// A fact about the machine and software of a case; the run's if the case has none. "" if unknown.
std::string fact_of(const records::CaseResult& result, const records::Run& run,
                    const std::string& name);

// A value as one text: strings as they are, else JSON; "" where it is missing or null.
std::string fact_text(const nlohmann::json& object, const std::string& name);

// "NVIDIA H100 80GB HBM3 (85899345920 bytes)": a real card's name and memory, which identify it.
// Empty for other devices, and if unknown.
std::string real_card_of(const records::CaseResult& result, const records::Run& run);

// The space that the case's headline figures are of: as recorded, or in files of schema 1.0 the one
// that its device has.
std::string own_space(const records::CaseResult& result);

}  // namespace peakbench::reports

namespace peakbench::analysis {

// What two runs must have in common for a difference between them to be caused by the code: which
// PyTorch, which driver, how many steps. One rule for comparisons and trends.

struct Conditions {
  std::string libtorch, libtorch_git_version, libtorch_cuda, driver;  // empty: unknown
  std::int64_t steps = 0;                                             // 0: unknown

  bool operator==(const Conditions&) const = default;
};

// A real card's own driver where there is one; else the CUDA that the driver is for: "CUDA 13.0".
Conditions conditions_of(const records::Run& run);

// "LibTorch 2.11.0 → 2.12.0; driver 550 → 560"; empty where they are equal.
std::string difference(const Conditions& before, const Conditions& now);
// The same, but facts that are unknown in one of them are not compared.
std::string known_difference(Conditions before, Conditions now);

}  // namespace peakbench::analysis
