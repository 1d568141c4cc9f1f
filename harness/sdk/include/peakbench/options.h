// A plugin's options as the manifest declares them: complete (defaults filled in) and of the
// declared types.
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

  // Each throws std::logic_error for a name the manifest does not declare, or of another type: an
  // error of the plugin's author, which the worker reports with the plugin's path. `number` also
  // reads an integer.
  bool boolean(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& string(const std::string& name) const;

  const std::map<std::string, Value>& values() const { return values_; }
  // Names read so far, through this or any copy of it: a case whose options were chosen and never
  // read ends as `no_effect`.
  const std::set<std::string>& names_read() const { return *read_; }

 private:
  const Value& at(const std::string& name) const;

  std::map<std::string, Value> values_;
  std::shared_ptr<std::set<std::string>> read_ = std::make_shared<std::set<std::string>>();
};

}  // namespace peakbench
