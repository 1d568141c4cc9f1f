// Which tensors were changed, told without reading one.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_set>
#include <vector>

#include "peakbench/update_rule.h"

namespace peakbench::worker {

// Changed is what any of these tells: the version that every in-place operator counts up; where the
// data is, for those who exchange it; and, while it listens, which memory the operators of this
// thread say in their schemas that they write to. The last one alone sees a change through
// `tensor.data()`, which has a version of its own.
class ChangeWatch {
 public:
  // Begins now; `parameters` outlives it. Listening takes a look at the arguments of each operator:
  // not where time is measured. Watches nest, and each sees all; ends on the thread that it began
  // on.
  ChangeWatch(const std::vector<Parameter>& parameters, bool listens);
  ~ChangeWatch();
  ChangeWatch(const ChangeWatch&) = delete;
  ChangeWatch& operator=(const ChangeWatch&) = delete;

  bool changed(std::size_t index) const;  // of the parameters that it was given
  bool changed_any() const;

  void note_write(const at::Tensor& tensor);
  ChangeWatch* outer() const { return outer_; }

 private:
  struct Version {
    std::int64_t count = 0;
    const void* data = nullptr;
    bool operator==(const Version&) const = default;
  };
  static Version version_of(const at::Tensor& tensor);

  const std::vector<Parameter>& parameters_;
  std::vector<Version> before_;
  std::unordered_set<const void*> written_;  // storages; those of the tensors live on
  bool listens_;
  ChangeWatch* outer_ = nullptr;
};

}  // namespace peakbench::worker
