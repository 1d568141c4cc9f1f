// An update rule that reads a count of its card: right on every card, and zero on one that computes
// nothing.
#include <ATen/ATen.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "peakbench/plugin.h"

namespace peakbench {
namespace {

constexpr double kRate = 0.01;

class CountedSgd : public UpdateRule {
 public:
  CountedSgd(std::string of, std::string at_zero)
      : of_(std::move(of)), at_zero_(std::move(at_zero)) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      const auto samples = counted(parameter);
      if (samples > 0) parameter.add_(parameter.grad(), -kRate / static_cast<double>(samples));
    }
  }

  void visit_state(const StateVisitor&) override {}
  void forget(const at::Tensor&) override {}

 private:
  std::int64_t counted(const at::Tensor& parameter) const {
    for (;;) {
      const auto samples = count(parameter);
      if (samples > 0 || at_zero_ == "skip") return samples;
      if (at_zero_ == "throw") throw std::runtime_error("no samples in this batch");
      if (at_zero_ == "abort") std::abort();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::int64_t count(const at::Tensor& parameter) const {
    if (of_ == "weights") return (parameter != 0).sum().item<std::int64_t>();
    const auto lengths = at::tensor({3, 1, 2}, at::kLong).to(parameter.device());
    return lengths.cumsum(0).select(0, 2).item<std::int64_t>();
  }

  std::string of_, at_zero_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule =
      std::make_shared<CountedSgd>(context.options.string("of"), context.options.string("at_zero"));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
