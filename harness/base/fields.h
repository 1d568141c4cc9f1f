// Typed reading of a JSON object. Every error names the field by its JSON pointer, what was
// expected and what is there.
//
// A missing field and `null` are the same to `maybe` and `get_or`. Numbers are finite; where a
// measured one may be none, it is one of the strings "nan", "inf" and "-inf" (read_measured).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/numbers.h"

namespace peakbench {

// "POINTER: what is wrong".
struct FieldError : RunFileError {
  FieldError(const std::string& pointer, const std::string& problem);
  std::string pointer;
};

// How messages call a JSON value: "the string \"abc\"", "an object".
std::string describe(const nlohmann::json& value);

// One value as a T, or FieldError. For std::string, bool, integers, double, std::vector and
// std::map of these, and nlohmann::json (which must be an object).
template <class T>
T read_value(const nlohmann::json& value, const std::string& pointer);

// A number, or the name of a non-finite one as finite_or_name() writes it.
double read_measured(const nlohmann::json& value, const std::string& pointer);

class Fields {
 public:
  // `object` must outlive this. Throws FieldError unless it is an object.
  explicit Fields(const nlohmann::json& object, std::string pointer = "");

  const std::string& pointer() const { return pointer_; }
  std::string pointer(const std::string& key) const;

  // nullptr where the field is missing or null.
  const nlohmann::json* find(const std::string& key) const;
  const nlohmann::json& require(const std::string& key) const;

  template <class T>
  T get(const std::string& key) const {
    return read_value<T>(require(key), pointer(key));
  }
  template <class T>
  T get_or(const std::string& key, T otherwise) const {
    const auto* value = find(key);
    return value ? read_value<T>(*value, pointer(key)) : otherwise;
  }
  template <class T>
  std::optional<T> maybe(const std::string& key) const {
    const auto* value = find(key);
    return value ? std::optional<T>(read_value<T>(*value, pointer(key))) : std::nullopt;
  }

  // The same for a number that must lie in a range.
  template <class T>
  T get(const std::string& key, const Range<T>& range) const {
    return in_range(get<T>(key), key, range);
  }
  template <class T>
  T get_or(const std::string& key, T otherwise, const Range<T>& range) const {
    const auto* value = find(key);
    return value ? get(key, range) : otherwise;
  }
  template <class T>
  std::optional<T> maybe(const std::string& key, const Range<T>& range) const {
    return find(key) ? std::optional<T>(get(key, range)) : std::nullopt;
  }

  Fields child(const std::string& key) const { return Fields(require(key), pointer(key)); }
  std::optional<Fields> maybe_child(const std::string& key) const;

  // Calls `visit` with each object of the list `key`; a missing list is empty.
  void each(const std::string& key, const std::function<void(const Fields&)>& visit) const;

  std::vector<std::string> keys() const;

  // Throws FieldError for an unknown key, with the nearest known one.
  void only(const std::vector<std::string>& known) const;

 private:
  template <class T>
  T in_range(T value, const std::string& key, const Range<T>& range) const {
    if (!range.holds(value)) refuse(key, words_of(range));
    return value;
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

  const nlohmann::json& object_;
  std::string pointer_;
};

// A number for JSON: non-finite ones as the strings that read_measured() reads.
nlohmann::json finite_or_name(double value);

}  // namespace peakbench
