// How lists of published fields are written down: one function a kind.
#pragma once

#include <utility>

#include "reports/render/fields.h"

namespace peakbench::reports::make_field {

inline Field text(std::string name, std::string summary) {
  return {std::move(name), FieldKind::kText, std::move(summary), {}};
}
inline Field flag(std::string name, std::string summary) {
  return {std::move(name), FieldKind::kFlag, std::move(summary), {}};
}
inline Field object(std::string name, std::string summary, std::vector<Field> fields) {
  return {std::move(name), FieldKind::kObject, std::move(summary), std::move(fields)};
}
inline Field list(std::string name, std::string summary, std::vector<Field> fields = {}) {
  return {std::move(name), FieldKind::kList, std::move(summary), std::move(fields)};
}

}  // namespace peakbench::reports::make_field
