// Keeps the state that an update rule has for each parameter, in the order of their first updates.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace peakbench {

// Maps each parameter, by its TensorImpl, to a state.
template <typename State>
class StateMap {
 public:
  // Returns the parameter's state. The first call for a parameter creates the state by `make()`.
  // The reference is valid until a state is created for another parameter, or one is forgotten.
  template <typename Make>
  State& of(const at::Tensor& parameter, Make&& make) {
    const auto [found, is_new] =
        index_.try_emplace(parameter.unsafeGetTensorImpl(), entries_.size());
    if (is_new) entries_.emplace_back(parameter, make());
    return entries_[found->second].second;
  }
  // Returns the parameter's state, or nullptr if it has none.
  State* find(const at::Tensor& parameter) {
    const auto found = index_.find(parameter.unsafeGetTensorImpl());
    return found == index_.end() ? nullptr : &entries_[found->second].second;
  }
  // Drops the parameter's state, if it has one.
  void forget(const at::Tensor& parameter) {
    const auto found = index_.find(parameter.unsafeGetTensorImpl());
    if (found == index_.end()) return;
    const std::size_t place = found->second;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
    index_.erase(found);
    for (auto& [impl, other] : index_)
      if (other > place) --other;
  }

  // The elements are pairs of parameter and state, in the order of their creation.
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<at::Tensor, State>> entries_;             // keeps the parameters alive
  std::unordered_map<const at::TensorImpl*, std::size_t> index_;  // into entries_
};

}  // namespace peakbench
