#include "peakbench/batch.h"

#include <stdexcept>

namespace peakbench {

const at::Tensor& Batch::at(const std::string& name) const {
  std::string there;
  for (const NamedTensor& one : named) {
    if (one.name == name) return one.tensor;
    there += (there.empty() ? "" : ", ") + one.name;
  }
  throw std::out_of_range("the batch has no tensor \"" + name + "\"; it has " +
                          (there.empty() ? "none by name" : there));
}

}  // namespace peakbench
