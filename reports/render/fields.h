// The fields that a template may use: what they are called, of what kind, what they mean. Templates
// are checked against them before rendering. They follow from the views themselves (record.h).
#pragma once

#include <string>
#include <vector>

namespace peakbench::reports {

enum class FieldKind {
  kText,    // {{name}}; as a section {{#name}} it is shown when it is not empty
  kFlag,    // {{#name}} or {{^name}} only
  kObject,  // {{#name}}...{{/name}}, or {{name.field}}; may be absent
  kList,    // {{#name}}...{{/name}} for each; without fields of its own, {{.}} is the item
};

struct Field {
  std::string name;
  FieldKind kind = FieldKind::kText;
  std::string summary;
  std::vector<Field> fields;

  const Field* find(const std::string& child) const;
};

// As a page of docs/reference has them: a table of the parent's own fields; and, with headings, one
// of each object and list inside it.
std::string table_of(const Field& parent);
std::string fields_as_markdown(const Field& root);

}  // namespace peakbench::reports
