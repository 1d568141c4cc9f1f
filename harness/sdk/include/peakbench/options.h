// Options hold the values of a plugin's options. They are complete, with defaults filled in, and
// have the types that the manifest declares.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

namespace peakbench {

class Options {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string>;

  Options() = default;
  explicit Options(std::map<std::string, Value> values) : values_(std::move(values)) {}

  // Each function returns the value of one option; `number` also reads an integer. Each throws
  // std::logic_error if the manifest does not declare the name, or declares another type. This is
  // an error of the plugin's author, which the worker reports with the plugin's path.
  bool boolean(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& string(const std::string& name) const;

  const std::map<std::string, Value>& values() const { return values_; }
  // Returns the names read so far, through this object or any copy of it. If the user gave an
  // option that no code reads, the case ends as `no_effect`.
  const std::set<std::string>& names_read() const { return *read_; }

 private:
  const Value& at(const std::string& name) const;

  std::map<std::string, Value> values_;
  std::shared_ptr<std::set<std::string>> read_ = std::make_shared<std::set<std::string>>();
};

}  // namespace peakbench
