// The optimizer's state under its parameters' names, for the tracer.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "peakbench/observer.h"
#include "peakbench/recipe.h"

namespace peakbench::worker {

class StateNames {
 public:
  explicit StateNames(const std::vector<Parameter>& parameters);

  // Names the state tensors that exist now, as `encoder.ln.weight.exp_avg`. To be asked wherever
  // state may have been made or moved: a name stays with the allocation, and does not follow the
  // values.
  void name(UpdateRule& rule, Observer& observer) const;
  // Only that of the parameters just updated, and what belongs to no parameter. With the step fused
  // into backward this is called once a parameter: no text is made for the others. Learns the names
  // of what stands in for the model's parameters.
  void name(UpdateRule& rule, const std::vector<Parameter>& updated, Observer& observer);

 private:
  std::string name_of(const at::Tensor& parameter, const std::string& state) const;

  std::unordered_map<const at::TensorImpl*, std::string> owners_;
};

}  // namespace peakbench::worker
