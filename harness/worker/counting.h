#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "peakbench/update_rule.h"
#include "worker/changes.h"
#include "worker/contributions.h"
#include "worker/plugin_call.h"
#include "worker/step_tally.h"

namespace peakbench::worker {

// Whose fault it is where one plugin's code fails on what another gave it.

// Runs `function`. If the plugin `inner` fails in it on what it was given, the failure becomes one
// of `giver`. `what()` describes it ("an input of ...") and is called after a failure. If it
// returns an empty text, and for failures of other plugins, the failure is unchanged.
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

// LibTorch's errors in `function` are attributed to no plugin, whichever called it.
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

// Whether the gradient has the shape, dtype and device that PyTorch requires. True without a
// gradient.
bool gradient_fits(const Parameter& parameter);
// "the gradient of fc.weight as fp64 [4, 3] on cpu, the parameter is fp32 [3, 4] on cpu".
std::string misfit_in_words(const Parameter& parameter);

// The rule inside a wrapper, as the wrapper calls it.
class GivenRule final : public RuleAround {
 public:
  // `rule`: the owner of the recipe's rule. `is_baseline`: the baseline's rule, so if it fails on
  // tensors that the wrapper made, the wrapper is at fault. Of two other plugins, both are named.
  GivenRule(std::shared_ptr<UpdateRule> inner, Owner giver, Owner rule, bool is_baseline)
      : RuleAround(std::move(inner)),
        giver_(std::move(giver)),
        rule_(std::move(rule)),
        is_baseline_(is_baseline) {}

  // What the wrapper itself is given for the call that begins.
  void begin(const std::vector<Parameter>& parameters) { whole_ = &parameters; }
  void end() { whole_ = nullptr; }

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;

 private:
  std::string misfit(const std::vector<Parameter>& parameters) const;
  std::string own_tensor(const std::vector<Parameter>& parameters) const;

  Owner giver_, rule_;
  bool is_baseline_;
  const std::vector<Parameter>* whole_ = nullptr;
};

// An object of a recipe behind one that counts the calls into it and names it when they fail.

template <typename Function>
auto count(Contribution& contribution, const char* call, Function&& function) {
  contribution.calls.fetch_add(1, std::memory_order_relaxed);
  return call_plugin(contribution.owner, call, std::forward<Function>(function));
}

inline bool has_gradient(const std::vector<Parameter>& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& parameter) { return parameter.tensor.grad().defined(); });
}

// Calls an update-related object. A call without gradients that changes no parameter is not
// counted.
template <typename Function>
auto count_update(Contribution& contribution, const char* call,
                  const std::vector<Parameter>& parameters, Function&& function) {
  constexpr bool kListens = false;
  const bool given = has_gradient(parameters);
  const ChangeWatch watch(parameters, kListens);
  const auto note = [&] {
    if (given || has_gradient(parameters) || watch.changed_any())
      contribution.calls.fetch_add(1, std::memory_order_relaxed);
    else
      contribution.called_in_vain = true;
  };
  return call_plugin(contribution.owner, call, [&] {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      note();
    } else {
      const auto result = function();
      note();
      return result;
    }
  });
}

// As call_plugin, but lets an exception pass that is no std::exception. A wrapper may end a block
// with its own kind of exception and catch it itself (checkpointing, when it has recomputed
// everything that backward needs).
template <typename Function>
std::vector<at::Tensor> call_in_block(const Owner& owner, const char* call, Function&& function) {
  std::exception_ptr own;
  auto result = call_plugin(owner, call, [&]() -> std::vector<at::Tensor> {
    try {
      return function();
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      own = std::current_exception();
      return {};
    }
  });
  if (own) std::rethrow_exception(own);
  return result;
}

// What some of them need to know besides. `model`: whose blocks the block wrappers run.
struct Surroundings {
  Contributions& contributions;
  Owner model;
};

// Each forwards to what a strategy put into the recipe. Memory that it holds is its strategy's.
template <typename Interface>
class Forwarding : public Interface {
 public:
  Forwarding(std::shared_ptr<Interface> inner, Contribution& contribution,
             const Surroundings& around)
      : inner_(std::move(inner)), contribution_(contribution), around_(around) {}

  void visit_memory(const MemoryVisitor& visit) override {
    const Owner& owner = contribution_.owner;
    call_plugin(owner, "visit_memory", [&] {
      inner_->visit_memory([&](const std::string& name, const at::Tensor& tensor,
                               StorageRole role) { visit(owner.id + "." + name, tensor, role); });
    });
  }

 protected:
  std::shared_ptr<Interface> inner_;
  Contribution& contribution_;
  Surroundings around_;
};

template <typename Interface>
class Counting;

}  // namespace peakbench::worker
