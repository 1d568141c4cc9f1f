// AdamW with quantised state, as torchao 0.18 lays it out (torchao/optim: AdamW8bit, AdamW4bit):
// what is kept has the same bytes. Computed in float32, one parameter at a time. Sources:
// "8-bit Optimizers via Block-wise Quantization", https://arxiv.org/abs/2110.02861; "Memory
// Efficient Optimizers with 4-bit States", https://arxiv.org/abs/2309.01507
//
// torchao compiles its update into one kernel. Here it is plain operators over at most
// kValuesAtOnce values at a time, so that its temporaries are 33 bytes times that at most, however
// large a parameter is.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "moment.h"
#include "peakbench/state_map.h"
#include "peakbench/update_rule.h"

namespace peakbench::adamw_low_bit {

inline constexpr std::int64_t kValuesAtOnce = 1 << 20;  // a multiple of every block size

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 1e-2;  // decoupled
};

struct AdamWState {
  at::Tensor step;  // float32 scalar on the CPU
  std::unique_ptr<Moment> exp_avg, exp_avg_sq;
};

class AdamWLowBit : public UpdateRule {
 public:
  // exp_avg has a sign, exp_avg_sq none.
  AdamWLowBit(AdamWOptions options, Quantisation exp_avg, Quantisation exp_avg_sq)
      : options_(options), exp_avg_(std::move(exp_avg)), exp_avg_sq_(std::move(exp_avg_sq)) {}

  // One parameter at a time for kForeach, too. Throws Unsupported for kFused.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override;
  void visit_state(const StateVisitor& visit) override;
  void forget(const at::Tensor& parameter) override;

 private:
  void update_one(const at::Tensor& parameter, AdamWState& state);

  AdamWOptions options_;
  Quantisation exp_avg_, exp_avg_sq_;
  StateMap<AdamWState> states_;
};

}  // namespace peakbench::adamw_low_bit
