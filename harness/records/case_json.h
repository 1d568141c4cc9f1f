// The records of a case as JSON and back; the names are run.json's (docs/reference/run_json.md,
// run.schema.json).
//
// Every field is written, with null where it is absent. Readers accept missing optional fields and
// unknown fields, and throw FieldError with the field's JSON pointer otherwise.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/fields.h"
#include "records/case.h"

namespace peakbench::records {

nlohmann::ordered_json to_json(const Selection& selection);
nlohmann::ordered_json to_json(const Memory& memory);
nlohmann::ordered_json to_json(const StepWork& work);
nlohmann::ordered_json to_json(const Equivalence& equivalence);
nlohmann::ordered_json to_json(const OutOfMemory& out_of_memory);
nlohmann::ordered_json to_json(const Emulation& emulation);
nlohmann::ordered_json to_json(const CaseResult& result);
nlohmann::json losses_to_json(const std::vector<double>& losses);

Selection read_selection(const Fields& fields);
Equivalence read_equivalence(const Fields& fields);
CaseResult read_case(const Fields& fields);
// The list `losses`, which may contain infinity and NaN; empty if it is missing.
std::vector<double> read_losses(const Fields& fields);
Status read_status(const Fields& fields, const std::string& key);

// null for nullopt.
template <class T>
nlohmann::ordered_json optional_to_json(const std::optional<T>& value) {
  if constexpr (requires { to_json(*value); }) {
    return value ? to_json(*value) : nlohmann::ordered_json(nullptr);
  } else {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  }
}

}  // namespace peakbench::records
