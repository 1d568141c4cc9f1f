#include "reports/analysis/line_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace peakbench::analysis {
namespace {

constexpr const char* kNowhere = "an unknown line";

std::string folder_of(const std::string& path) {
  return path.substr(0, path.find_last_of('/') + 1);  // npos + 1 is 0
}

std::string common_folder(const std::string& a, const std::string& b) {
  const auto [end, ignored] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return folder_of({a.begin(), end});
}

constexpr double kMostOfIt = 0.5;

}  // namespace

LineNames::LineNames(const std::vector<std::string>& files) {
  bool first = true;
  for (const auto& file : files) {
    if (trace::is_cell(file)) cells_.push_back(file);
    if (trace::is_library_file(file) || trace::is_cell(file)) continue;
    folder_ = first ? folder_of(file) : common_folder(folder_, folder_of(file));
    first = false;
  }
  if (folder_ == "/") folder_.clear();  // nothing in common: whole paths
}

std::string LineNames::file(const std::string& path) const {
  if (const auto number = trace::cell_number(path)) return fmt::format("In[{}]", *number);
  if (const auto cell = std::ranges::find(cells_, path); cell != cells_.end())
    return cells_.size() == 1 ? "<cell>" : fmt::format("<cell {}>", cell - cells_.begin() + 1);
  if (trace::is_library_file(path)) return trace::library_file(path);
  return path.starts_with(folder_) ? path.substr(folder_.size()) : path;
}

std::string LineNames::line(const trace::SourceLine& line) const {
  if (line.file.empty()) return kNowhere;
  return line.line > 0 ? file(line.file) + ":" + std::to_string(line.line) : file(line.file);
}

std::string LineNames::in_words(const trace::SourceLine& line) const {
  const bool is_named = !line.function.empty() && line.function.front() != '<';
  return this->line(line) + (is_named ? " (" + line.function + ")" : "");
}

std::vector<trace::LineShare> called_lines(const trace::Trace& trace,
                                           const std::vector<trace::Lifetime>& lifetimes,
                                           std::uint64_t event,
                                           const std::vector<trace::LineShare>& own) {
  if (own.empty() || own.front().line.file.empty() || own.front().share <= kMostOfIt) return {};
  auto called =
      trace::lines_at(trace, lifetimes, event, trace::kOwnSpace, trace::LineOf::kAnyLibrary);
  if (std::ranges::equal(called, own, {}, &trace::LineShare::line, &trace::LineShare::line))
    return {};
  return called;
}

}  // namespace peakbench::analysis
