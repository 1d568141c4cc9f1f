#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers.h"

namespace peakbench::planning {

// What is looked at in a TOML file before it is parsed.

inline constexpr int kMostKeyParts = 32;  // model_options."qwen2.5-0.5b".layers has three

// The line (from 1) of the first dotted key with more than kMostKeyParts parts, in a table's head
// or before a value. Each part is a table in a table. The parser has no limit for these, and a
// hundred thousand of them would use up its stack.
std::optional<std::size_t> line_of_endless_key(std::string_view text);

// Typed reading of a TOML table. Every error carries file, line and column.

// A value as text with its place: FILE:LINE:COLUMN.
struct Placed {
  std::string text, where;
};

struct PlacedValue {
  Placed placed;
  nlohmann::json value;
};

class SuiteTable {
 public:
  SuiteTable(const toml::table& table, const std::string& file) : table_(table), file_(file) {}

  // Throws ConfigError at the first unknown key, with the nearest known one.
  void only(const std::vector<std::string>& known) const;

  bool has(const std::string& key) const { return table_.contains(key); }
  bool is_text(const std::string& key) const;
  std::vector<std::string> keys() const;
  std::string where(
      const std::string& key) const;  // of the key's value; of the table where it has none
  std::string here() const { return place(table_); }

  // nullopt, or an empty list, where the key is missing. A wrong type is a ConfigError.
  std::optional<std::string> text(const std::string& key) const;
  std::optional<std::int64_t> integer(const std::string& key,
                                      const Range<std::int64_t>& range = {}) const;
  std::optional<double> number(const std::string& key, const Range<double>& range) const;
  std::vector<Placed> texts(const std::string& key) const;
  std::vector<Placed> integers(const std::string& key) const;
  // Of a list, each a string, an integer, a number (no infinity), true or false.
  std::vector<PlacedValue> values(const std::string& key) const;

  std::optional<SuiteTable> table(const std::string& key) const;

  // Strings, integers, numbers and booleans of this table as text.
  std::map<std::string, Placed> scalars() const;

  void each_table(const std::string& key,
                  const std::function<void(const std::string&, const SuiteTable&)>& visit) const;
  void each_in_list(const std::string& key,
                    const std::function<void(const SuiteTable&)>& visit) const;

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;
  [[noreturn]] void fail_here(const std::string& problem) const;

 private:
  std::string place(const toml::node& node) const;
  [[noreturn]] void wrong_type(const toml::node& node, const std::string& key,
                               const char* expected) const;
  const toml::array* list(const std::string& key, const char* expected) const;

  const toml::table& table_;
  const std::string& file_;
};

std::string place_text(const std::string& file, const toml::source_position& position);

}  // namespace peakbench::planning
