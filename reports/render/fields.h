// The published list of fields that a template may use: what they are called, of what kind, what
// they mean. docs/reference/report_fields.md holds the same list (a test keeps both equal);
// templates are checked against it before rendering.
#pragma once

#include <nlohmann/json.hpp>
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

const Field& published_fields();  // the root: a kObject without a name

// Every published field present: texts as "", flags as false, lists as [], objects as false. Throws
// std::logic_error for a field that is not published or of another kind: the view and the list
// cannot drift apart.
nlohmann::json complete(const nlohmann::json& view, const Field& fields);

// The list as the tables of docs/reference/report_fields.md.
std::string fields_as_markdown();
std::string fields_as_markdown(const Field& root);

}  // namespace peakbench::reports
