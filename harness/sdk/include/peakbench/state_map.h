// What an update rule keeps of each parameter, in the order of their first updates.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace peakbench {

template <typename State>
class StateMap {
 public:
  // The parameter's state; `make()` is called for its first.
  template <typename Make>
  State& of(const at::Tensor& parameter, Make&& make) {
    const auto [found, is_new] =
        index_.try_emplace(parameter.unsafeGetTensorImpl(), entries_.size());
    if (is_new) entries_.emplace_back(parameter, make());
    return entries_[found->second].second;
  }
  State* find(const at::Tensor& parameter) {
    const auto found = index_.find(parameter.unsafeGetTensorImpl());
    return found == index_.end() ? nullptr : &entries_[found->second].second;
  }
  void forget(const at::Tensor& parameter) {
    const auto found = index_.find(parameter.unsafeGetTensorImpl());
    if (found == index_.end()) return;
    const std::size_t place = found->second;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
    index_.erase(found);
    for (auto& [impl, other] : index_)
      if (other > place) --other;
  }

  // Pairs of parameter and state.
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<at::Tensor, State>> entries_;             // keeps the parameters alive
  std::unordered_map<const at::TensorImpl*, std::size_t> index_;  // into entries_
};

}  // namespace peakbench
