// The examples for authors, opened as plugins: their numbers against the equations of their papers,
// and their state in closed form. That they build against an installation is the consumer tests'.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "no_model.h"

namespace peakbench::test {
namespace {

std::shared_ptr<UpdateRule> rule_of(const std::string& library,
                                    std::map<std::string, Options::Value> options) {
  void* handle = ::dlopen((std::string(EXAMPLES_FOLDER) + "/" + library + ".so").c_str(), RTLD_NOW);
  if (handle == nullptr) throw std::runtime_error(::dlerror());
  const auto* entry = static_cast<const PluginEntry*>(::dlsym(handle, "peakbench_plugin"));
  Recipe recipe;
  NoModel model;
  entry->apply_strategy({library, Options(std::move(options))}, recipe, model);
  return recipe.update_rule;
}

// The gradient of step k.
at::Tensor gradient(int step) { return at::sin(at::arange(24, at::kFloat) + step).view({4, 6}); }
at::Tensor start() { return at::cos(at::arange(24, at::kFloat)).view({4, 6}); }

Parameter trained(UpdateRule& rule, KernelGrouping grouping, int steps) {
  const Parameter one{"weight", start().set_requires_grad(true)};
  const at::NoGradGuard no_grad;
  for (int step = 0; step < steps; ++step) {
    one.tensor.mutable_grad() = gradient(step);
    rule.update({one}, grouping);
  }
  return one;
}

std::int64_t state_bytes(UpdateRule& rule) {
  std::int64_t bytes = 0;
  rule.visit_state([&](const at::Tensor&, const std::string&, at::Tensor& state) {
    bytes += static_cast<std::int64_t>(state.nbytes());
  });
  return bytes;
}

TEST(AdamMini, HasOneSecondMomentARow) {
  const auto rule = rule_of("adam_mini", {{"lr", 0.01}, {"weight_decay", 0.1}});
  const Parameter own = trained(*rule, KernelGrouping::kSingle, 3);
  at::Tensor expected = start(), m = at::zeros({4, 6}), v = at::zeros({4, 1});
  for (int t = 1; t <= 3; ++t) {
    const at::Tensor g = gradient(t - 1);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g.square().mean(1, true);
    expected = expected * (1 - 0.01 * 0.1);
    const at::Tensor root = (v / (1 - std::pow(0.999, t))).sqrt() + 1e-8;
    expected = expected - 0.01 * m / (1 - std::pow(0.9, t)) / root;
  }
  EXPECT_TRUE(at::allclose(own.tensor, expected, 1e-5, 1e-6)) << own.tensor - expected;
  EXPECT_EQ(state_bytes(*rule), (24 + 4) * 4 + 4);
}

TEST(ScheduleFree, FollowsItsThreeSequences) {
  at::Tensor x = start(), y = start(), z = start();
  for (int t = 1; t <= 4; ++t) {
    z = z - 0.5 * gradient(t - 1);
    x = x * (1 - 1.0 / t) + z / t;
    y = 0.9 * x + 0.1 * z;
  }
  for (const auto grouping : {KernelGrouping::kSingle, KernelGrouping::kForeach}) {
    const auto rule = rule_of("schedule_free", {{"lr", 0.5}, {"momentum", 0.9}});
    const Parameter own = trained(*rule, grouping, 4);
    EXPECT_TRUE(at::allclose(own.tensor, y, 1e-5, 1e-6)) << own.tensor - y;
    EXPECT_EQ(state_bytes(*rule), 24 * 4);
  }
}

}  // namespace
}  // namespace peakbench::test
