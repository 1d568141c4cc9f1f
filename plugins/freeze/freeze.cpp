// Some parameters are not trained.
#include <algorithm>

#include "patterns.h"
#include "peakbench/plugin.h"

namespace peakbench::freeze {
namespace {

class Freeze : public Strategy {
 public:
  explicit Freeze(const Options& options) : patterns_(parse(options.string("modules"))) {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.freezing.emplace_back([patterns = patterns_](const Parameter& parameter) {
      return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return matches(pattern, parameter.name);
      });
    });
  }

 private:
  std::vector<std::string> patterns_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Freeze>(context.options);
}

}  // namespace
}  // namespace peakbench::freeze

PEAKBENCH_STRATEGY_PLUGIN(peakbench::freeze::make)
