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
// templates are checked against (fields_of) and the tables of docs/reference. PEAKBENCH_VIEW
// declares the members and lists them:
//
//   struct TickView {
//     PEAKBENCH_VIEW(text(label, "The value at the tick"),
//                    text(at, "Its place, 0 to 1"));
//   };
//
// | field | member |
// |---|---|
// | text(NAME, SUMMARY), texts(...) | std::string, std::vector<std::string> |
// | flag(NAME, SUMMARY) | bool, false |
// | object(VIEW, NAME, SUMMARY) | VIEW |
// | maybe(VIEW, NAME, SUMMARY) | std::optional<VIEW> |
// | list(VIEW, NAME, SUMMARY) | std::vector<VIEW> |
// | shown("NAME", VALUE, SUMMARY) | none: a member declared before, or a flag that is computed |
#define PEAKBENCH_VIEW(...)                                 \
  PEAKBENCH_EACH(PEAKBENCH_MEMBER_, __VA_ARGS__)            \
  ::peakbench::reports::FieldValues fields() const {        \
    return {PEAKBENCH_EACH(PEAKBENCH_FIELD_, __VA_ARGS__)}; \
  }

// NOLINTBEGIN(bugprone-macro-parentheses): names and types take none.
#define PEAKBENCH_MEMBER_text(name, summary) std::string name{};
#define PEAKBENCH_MEMBER_texts(name, summary) std::vector<std::string> name{};
#define PEAKBENCH_MEMBER_flag(name, summary) bool name = false;
#define PEAKBENCH_MEMBER_object(view, name, summary) view name{};
#define PEAKBENCH_MEMBER_maybe(view, name, summary) std::optional<view> name{};
#define PEAKBENCH_MEMBER_list(view, name, summary) std::vector<view> name{};
#define PEAKBENCH_MEMBER_shown(name, value, summary)
#define PEAKBENCH_FIELD_text(name, summary) {#name, name, summary},
#define PEAKBENCH_FIELD_texts(name, summary) {#name, name, summary},
#define PEAKBENCH_FIELD_flag(name, summary) {#name, name, summary},
#define PEAKBENCH_FIELD_object(view, name, summary) {#name, name, summary},
#define PEAKBENCH_FIELD_maybe(view, name, summary) {#name, name, summary},
#define PEAKBENCH_FIELD_list(view, name, summary) {#name, name, summary},
#define PEAKBENCH_FIELD_shown(name, value, summary) {name, value, summary},
// NOLINTEND(bugprone-macro-parentheses)

// `prefix` and each of the others joined, up to 100: a macro is not expanded in itself, so the next
// step is put off until the scan that follows.
#define PEAKBENCH_EACH(prefix, ...) PEAKBENCH_SCAN(PEAKBENCH_STEP(prefix, __VA_ARGS__))
#define PEAKBENCH_STEP(prefix, first, ...) \
  prefix##first __VA_OPT__(PEAKBENCH_AGAIN PEAKBENCH_NOTHING()()(prefix, __VA_ARGS__))
#define PEAKBENCH_AGAIN() PEAKBENCH_STEP
#define PEAKBENCH_NOTHING()
#define PEAKBENCH_SCAN(...) PEAKBENCH_SCAN4(PEAKBENCH_SCAN4(PEAKBENCH_SCAN4(__VA_ARGS__)))
#define PEAKBENCH_SCAN4(...) PEAKBENCH_SCAN3(PEAKBENCH_SCAN3(PEAKBENCH_SCAN3(__VA_ARGS__)))
#define PEAKBENCH_SCAN3(...) PEAKBENCH_SCAN2(PEAKBENCH_SCAN2(PEAKBENCH_SCAN2(__VA_ARGS__)))
#define PEAKBENCH_SCAN2(...) PEAKBENCH_SCAN1(PEAKBENCH_SCAN1(PEAKBENCH_SCAN1(__VA_ARGS__)))
#define PEAKBENCH_SCAN1(...) __VA_ARGS__

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

template <typename T>
requires std::same_as<T, std::string> || std::same_as<T, bool>
struct FieldType<T> {
  static constexpr FieldKind kKind = std::same_as<T, bool> ? FieldKind::kFlag : FieldKind::kText;
  static std::vector<Field> fields() { return {}; }
  static nlohmann::json value(const T& member) { return member; }
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
