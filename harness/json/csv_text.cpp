#include "json/csv_text.h"

#include <algorithm>
#include <map>
#include <vector>

namespace peakbench {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string plain(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : dumped(value);
}

std::string cell_of(const Json& value) {
  if (!value.is_array()) return plain(value);
  if (std::any_of(value.begin(), value.end(), [](const Json& one) { return one.is_structured(); }))
    return dumped(value);
  std::string text;
  for (const auto& one : value) text += (text.empty() ? "" : " ") + plain(one);
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

// One row at a time, so that a column has a place before a later row has a value for it.
class Columns {
 public:
  void add(const std::string& name, const Json& value, std::vector<std::string>& row) {
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items())
        add(name.empty() ? key : name + "." + key, inner, row);
      return;
    }
    const auto [found, is_new] = places_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    if (row.size() <= found->second) row.resize(found->second + 1);
    row[found->second] = cell_of(value);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> names_;
};

std::string line_of(const std::vector<std::string>& cells, std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < columns; ++i)
    line += (i == 0 ? "" : ",") + (i < cells.size() ? quoted(cells[i]) : "");
  return line + "\n";
}

}  // namespace

std::string csv_text(const Json& rows) {
  Columns columns;
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) columns.add("", row, cells.emplace_back());
  if (cells.empty()) return "";
  std::string text = line_of(columns.names(), columns.names().size());
  for (const auto& row : cells) text += line_of(row, columns.names().size());
  return text;
}

}  // namespace peakbench
