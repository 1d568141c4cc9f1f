// The state of the random generators a block may draw from, so that its second run draws the same
// numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace peakbench::checkpointing {

// The CPU's generator and those of `devices`. A state is a tensor on the CPU: 5056 bytes for the
// CPU's Mersenne Twister, 16 for a CUDA device. torch.get_rng_state, torch/utils/checkpoint.py:
// get_device_states
class RandomState {
 public:
  static RandomState of(const std::vector<at::Device>& devices);
  void restore() const;

 private:
  std::vector<std::pair<at::Device, at::Tensor>> states_;
};

// Puts a state in place, and the one found there back when destroyed. torch.random.fork_rng
class ForkedRandomState {
 public:
  ForkedRandomState(const RandomState& state, const std::vector<at::Device>& devices)
      : outer_(RandomState::of(devices)) {
    state.restore();
  }
  ~ForkedRandomState() { outer_.restore(); }
  ForkedRandomState(const ForkedRandomState&) = delete;
  ForkedRandomState& operator=(const ForkedRandomState&) = delete;

 private:
  RandomState outer_;
};

}  // namespace peakbench::checkpointing
