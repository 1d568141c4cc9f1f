#include "peakbench/options.h"

#include <stdexcept>

namespace peakbench {
namespace {

template <typename T>
const T& get(const Options::Value& value, const std::string& name, const char* type) {
  if (const T* held = std::get_if<T>(&value)) return *held;
  throw std::logic_error("option '" + name + "' is read as " + type +
                         ", which is not its type in the manifest");
}

}  // namespace

const Options::Value& Options::at(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error("option '" + name + "' is read but the manifest does not declare it");
  }
  read_->insert(name);
  return found->second;
}

bool Options::boolean(const std::string& name) const {
  return get<bool>(at(name), name, "a boolean");
}

std::int64_t Options::integer(const std::string& name) const {
  return get<std::int64_t>(at(name), name, "an integer");
}

double Options::number(const std::string& name) const {
  const Value& value = at(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return get<double>(value, name, "a number");
}

const std::string& Options::string(const std::string& name) const {
  return get<std::string>(at(name), name, "a string");
}

}  // namespace peakbench
