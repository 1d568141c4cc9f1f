#include "reports/render/fields.h"

#include <stdexcept>

namespace peakbench::reports {
namespace {

using nlohmann::json;

json empty_value(const Field& field) {
  switch (field.kind) {
    case FieldKind::kText:
      return "";
    case FieldKind::kList:
      return json::array();
    default:
      return false;
  }
}

[[noreturn]] void drifted(const std::string& path, const std::string& what) {
  throw std::logic_error("report view: field `" + path + "` " + what +
                         " (reports/fields_list.cpp)");
}

json complete_at(const json& view, const Field& fields, const std::string& path);

json complete_field(const json& value, const Field& field, const std::string& path) {
  switch (field.kind) {
    case FieldKind::kText:
      if (!value.is_string()) drifted(path, "is not a text");
      return value;
    case FieldKind::kFlag:
      if (!value.is_boolean()) drifted(path, "is not a flag");
      return value;
    case FieldKind::kObject:
      return value.is_boolean() && !value.get<bool>() ? value : complete_at(value, field, path);
    case FieldKind::kList:
      break;
  }
  if (!value.is_array()) drifted(path, "is not a list");
  json items = json::array();
  for (const json& item : value) {
    items.push_back(field.fields.empty() ? item : complete_at(item, field, path));
  }
  return items;
}

json complete_at(const json& view, const Field& fields, const std::string& path) {
  if (!view.is_object()) drifted(path, "is not an object");
  json result = json::object();
  for (const Field& field : fields.fields) {
    const auto found = view.find(field.name);
    result[field.name] = found == view.end() || found->is_null()
                             ? empty_value(field)
                             : complete_field(*found, field, path + "." + field.name);
  }
  for (const auto& [name, value] : view.items()) {
    if (!fields.find(name)) drifted(path + "." + name, "is not published");
  }
  return result;
}

const char* kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::kText:
      return "text";
    case FieldKind::kFlag:
      return "flag";
    case FieldKind::kObject:
      return "object";
    case FieldKind::kList:
      return "list";
  }
  return "";
}

void describe(const Field& parent, const std::string& path, std::string& out) {
  out += "\n### " + (path.empty() ? "Everywhere" : "In `" + path + "`") + "\n\n";
  out += "| field | kind | what it is |\n|---|---|---|\n";
  for (const Field& field : parent.fields) {
    out += "| `" + field.name + "` | " + kind_name(field.kind) + " | " + field.summary + " |\n";
  }
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

nlohmann::json complete(const nlohmann::json& view, const Field& fields) {
  return complete_at(view, fields, "report");
}

std::string fields_as_markdown() { return fields_as_markdown(published_fields()); }

std::string fields_as_markdown(const Field& root) {
  std::string out;
  describe(root, "", out);
  return out;
}

}  // namespace peakbench::reports
