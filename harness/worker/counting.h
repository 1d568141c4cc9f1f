// An object of a recipe behind one that counts the calls into it and names it when they fail.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "worker/changes.h"
#include "worker/contributions.h"

namespace peakbench::worker {

template <typename Function>
auto count(Contribution& contribution, const char* call, Function&& function) {
  contribution.calls.fetch_add(1, std::memory_order_relaxed);
  return call_plugin(contribution.owner, call, std::forward<Function>(function));
}

inline bool has_gradient(const std::vector<Parameter>& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& parameter) { return parameter.tensor.grad().defined(); });
}

// Calls what belongs to the update. One that is given no gradient and changes nothing is no call:
// whoever is around the rule had nothing to do.
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

// As call_plugin, but what is no std::exception goes through: a wrapper may end a block with a
// throw of its own kind, which it catches itself (checkpointing, once all that backward wants is
// back).
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

// Each forwards to what a strategy put into the recipe. Memory that it holds is its strategy's.
template <typename Interface>
class Forwarding : public Interface {
 public:
  Forwarding(std::shared_ptr<Interface> inner, Contribution& contribution)
      : inner_(std::move(inner)), contribution_(contribution) {}

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
};

template <typename Interface>
class Counting;

}  // namespace peakbench::worker
