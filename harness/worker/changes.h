// Detects changes of tensors without reading them.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_set>
#include <vector>

#include "peakbench/update_rule.h"

namespace peakbench::worker {

// Detects changes of parameters by any of these:
//
// - the version, which every in-place operator increments;
// - the address of the data, in case it was exchanged;
// - while listening: memory that this thread's operators write according to their schemas. Only
//   this sees a change through `tensor.data()`, which has its own version.
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
  std::unordered_set<const void*> written_;  // storages; those of the tensors stay alive
  bool listens_;
  ChangeWatch* outer_ = nullptr;
};

}  // namespace peakbench::worker
