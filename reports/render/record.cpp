#include "reports/render/record.h"

#include <array>

namespace peakbench::reports {
namespace {

constexpr std::array kKinds{"text", "flag", "object", "list"};  // in the order of FieldKind

void describe(const Field& parent, const std::string& path, std::string& out) {
  out += "\n### " + (path.empty() ? "Everywhere" : "In `" + path + "`") + "\n\n" + table_of(parent);
  for (const Field& field : parent.fields) {
    if (!field.fields.empty()) {
      describe(field, path.empty() ? field.name : path + "." + field.name, out);
    }
  }
}

}  // namespace

const Field* Field::find(const std::string& child) const {
  for (const Field& field : fields) {
    if (field.name == child) return &field;
  }
  return nullptr;
}

std::string table_of(const Field& parent) {
  std::string out = "| field | kind | what it is |\n|---|---|---|\n";
  for (const Field& field : parent.fields)
    out += "| `" + field.name + "` | " + kKinds.at(static_cast<std::size_t>(field.kind)) + " | " +
           field.summary + " |\n";
  return out;
}

std::string fields_as_markdown(const Field& root) {
  std::string out;
  describe(root, "", out);
  return out;
}

std::vector<Field> fields_of(const FieldValues& values) {
  std::vector<Field> fields;
  for (const FieldValue& one : values)
    fields.push_back({one.name, one.kind, one.summary, one.fields()});
  return fields;
}

nlohmann::json data_of(const FieldValues& values) {
  auto object = nlohmann::json::object();
  for (const FieldValue& one : values) object[one.name] = one.value();
  return object;
}

}  // namespace peakbench::reports
