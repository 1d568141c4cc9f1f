// Where a case ran. The case says it; in files of schema 1.0 the run does, for all its cases at
// once: there the last case that ran left its card.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "result/run.h"

namespace peakbench::reports {

// The case's facts of its device (card, driver, cpu_capability, ...); of a file that has none, an
// empty object.
const nlohmann::json& device_facts(const result::CaseResult& result);

// One fact of where the case ran, the run's where the case has none; "" where nobody knows.
std::string fact_of(const result::CaseResult& result, const result::Run& run,
                    const std::string& name);

// A value as one text: strings as they are, else JSON; "" where it is missing or null.
std::string fact_text(const nlohmann::json& object, const std::string& name);

// "NVIDIA H100 80GB HBM3 (85899345920 bytes)": a real card's name and memory, what tells it from
// another. Empty for other devices, and where it is not known.
std::string real_card_of(const result::CaseResult& result, const result::Run& run);

// The space that the case's headline figures are of: as recorded, or in files of schema 1.0 the one
// that its device has.
std::string own_space(const result::CaseResult& result);

}  // namespace peakbench::reports
