// Whose fault it is where one plugin's code fails on what another gave it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peakbench/update_rule.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

// Runs `function`. A failure of the plugin `inner` in it, which was given `what()` ("an input of
// ..."), becomes one of `giver`; where that is empty, and of others, it stays as it is. `what` is
// called where there was a failure.
template <typename What, typename Function>
auto given_by(const Owner& giver, const char* call, const Owner& inner, What&& what,
              Function&& function) {
  try {
    return function();
  } catch (const PluginFailure& failure) {
    if (failure.owner().id != inner.id || giver.id == inner.id) throw;
    const std::string given = what();
    if (given.empty()) throw;
    throw PluginFailure(giver, call,
                        "it gave " + inner.id + " " + given + ", and " + inner.id + " failed in " +
                            failure.call() + ": " + failure.what());
  }
}

// What LibTorch throws in `function` is nobody's, whichever plugin called it.
template <typename Function>
auto call_of_nobody(Function&& function) {
  try {
    return function();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    if (!host_failure(error).empty()) throw;
    throw PluginFailure({}, "", error.what_without_backtrace());
  }
}

// Whether the gradient has the shape, dtype and device that PyTorch demands of one. True where
// there is none.
bool gradient_fits(const Parameter& parameter);
// "the gradient of fc.weight as fp64 [4, 3] on cpu, the parameter is fp32 [3, 4] on cpu".
std::string misfit_in_words(const Parameter& parameter);

// The rule inside a wrapper, as the wrapper calls it.
class GivenRule final : public UpdateRule {
 public:
  // `rule`: whose the recipe's rule is. `is_baseline`: where that fails on tensors that the wrapper
  // made, it is the wrapper's fault; of two plugins that nobody knows, both are named.
  GivenRule(std::shared_ptr<UpdateRule> inner, Owner giver, Owner rule, bool is_baseline)
      : inner_(std::move(inner)),
        giver_(std::move(giver)),
        rule_(std::move(rule)),
        is_baseline_(is_baseline) {}

  // What the wrapper itself is given for the call that begins.
  void begin(const std::vector<Parameter>& parameters) { whole_ = &parameters; }
  void end() { whole_ = nullptr; }

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

 private:
  std::string misfit(const std::vector<Parameter>& parameters) const;
  std::string own_tensor(const std::vector<Parameter>& parameters) const;

  std::shared_ptr<UpdateRule> inner_;
  Owner giver_, rule_;
  bool is_baseline_;
  const std::vector<Parameter>* whole_ = nullptr;
};

}  // namespace peakbench::worker
