#include "freeze.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "peakbench/errors.h"
#include "peakbench/plugin.h"

namespace peakbench::freeze {
namespace {

// At the end of a path, or where a module's own path ends.
bool ends_a_path(std::string_view rest) { return rest.empty() || rest.front() == '.'; }

bool matches_from(std::string_view pattern, std::string_view path) {
  if (pattern.empty()) return ends_a_path(path);
  if (pattern.front() != '*')
    return !path.empty() && path.front() == pattern.front() &&
           matches_from(pattern.substr(1), path.substr(1));
  for (std::size_t skipped = 0; skipped <= path.size(); ++skipped)
    if (matches_from(pattern.substr(1), path.substr(skipped))) return true;
  return false;
}

}  // namespace

std::vector<std::string> parse(const std::string& patterns) {
  std::vector<std::string> parsed;
  std::istringstream text(patterns);
  for (std::string pattern; std::getline(text, pattern, ':');) {
    if (pattern.empty()) throw OptionError("freeze: modules=" + patterns + " has an empty pattern");
    parsed.push_back(pattern);
  }
  if (parsed.empty())
    throw OptionError("freeze: modules is empty; name paths of modules, joined by ':'");
  return parsed;
}

bool matches(const std::string& pattern, const std::string& path) {
  return matches_from(pattern, path);
}

// Some parameters are not trained.

namespace {

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.freezing.emplace_back(
      [patterns = parse(context.options.string("modules"))](const Parameter& parameter) {
        return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
          return matches(pattern, parameter.name);
        });
      });
}

}  // namespace
}  // namespace peakbench::freeze

PEAKBENCH_STRATEGY_PLUGIN(peakbench::freeze::apply)
