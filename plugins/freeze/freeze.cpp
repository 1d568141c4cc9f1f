// Some parameters are not trained.
#include <algorithm>

#include "patterns.h"
#include "peakbench/plugin.h"

namespace peakbench::freeze {
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
