#pragma once

#include <concepts>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::reports {

// The fields that a template may use: what they are called, of what kind, what they mean. Templates
// are checked against them before rendering. They follow from the views themselves (record.h).

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

// What a template is given: a plain struct whose `fields()` lists its members, each with its name
// and what it is. From this one list follow the data that is rendered (data_of), the names that
// templates are checked against (fields_of) and the tables of docs/reference.
//
//   struct TickView {
//     std::string label, at;
//
//     FieldValues fields() const {
//       return {{"label", label, "The value at the tick"}, {"at", at, "Its place, 0 to 1"}};
//     }
//   };

struct FieldValue;
using FieldValues = std::vector<FieldValue>;

template <typename T>
concept Record = std::default_initializable<T> && requires(const T& view) {
  { view.fields() } -> std::same_as<FieldValues>;
};

std::vector<Field> fields_of(const FieldValues& values);
nlohmann::json data_of(const FieldValues& values);

// What a member's type is to a template: its kind, the fields inside, and its value.
template <typename T>
struct FieldType;

template <>
struct FieldType<std::string> {
  static constexpr FieldKind kKind = FieldKind::kText;
  static std::vector<Field> fields() { return {}; }
  static nlohmann::json value(const std::string& text) { return text; }
};

template <>
struct FieldType<bool> {
  static constexpr FieldKind kKind = FieldKind::kFlag;
  static std::vector<Field> fields() { return {}; }
  static nlohmann::json value(bool flag) { return flag; }
};

template <Record T>
struct FieldType<T> {
  static constexpr FieldKind kKind = FieldKind::kObject;
  static std::vector<Field> fields() { return fields_of(T().fields()); }
  static nlohmann::json value(const T& view) { return data_of(view.fields()); }
};

template <Record T>
struct FieldType<std::optional<T>> : FieldType<T> {
  static nlohmann::json value(const std::optional<T>& view) {
    return view ? FieldType<T>::value(*view) : nlohmann::json(false);
  }
};

template <typename T>
struct FieldType<std::vector<T>> {
  static constexpr FieldKind kKind = FieldKind::kList;
  static std::vector<Field> fields() { return FieldType<T>::fields(); }
  static nlohmann::json value(const std::vector<T>& items) {
    auto list = nlohmann::json::array();
    for (const T& item : items) list.push_back(FieldType<T>::value(item));
    return list;
  }
};

// A line of the list. It reads the member when asked, so the struct must outlive it. A flag may be
// computed in the list: {"has_rows", !rows.empty(), "`rows` is not empty"}.
struct FieldValue {
  template <typename T>
  FieldValue(const char* name, const T& member, const char* summary)
      : name(name),
        summary(summary),
        kind(FieldType<T>::kKind),
        fields(FieldType<T>::fields),
        value([&member] { return FieldType<T>::value(member); }) {}
  FieldValue(const char* name, bool flag, const char* summary)
      : name(name),
        summary(summary),
        kind(FieldKind::kFlag),
        fields(FieldType<bool>::fields),
        value([flag] { return flag; }) {}
  template <typename T>
  FieldValue(const char* name, const T&& temporary, const char* summary) = delete;

  const char *name, *summary;
  FieldKind kind;
  std::vector<Field> (*fields)();
  std::function<nlohmann::json()> value;
};

// The root: an object without a name.
template <Record T>
const Field& fields_of() {
  static const Field root{"", FieldKind::kObject, "", FieldType<T>::fields()};
  return root;
}

// Every field present: texts as "", flags as false, lists as [], absent objects as false.
template <Record T>
nlohmann::json data_of(const T& view) {
  return FieldType<T>::value(view);
}

}  // namespace peakbench::reports
