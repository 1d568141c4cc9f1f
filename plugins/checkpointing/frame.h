#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "kept_outputs.h"
#include "peakbench/model.h"
#include "peakbench/saved_tensor_hooks.h"

namespace peakbench::checkpointing {

// Autocast as it was in forward. It is state of a thread, and backward may run on another.

// What torch.amp.autocast sets for one type of device.
struct AutocastState {
  at::DeviceType device;
  bool enabled, cache_enabled;
  at::ScalarType dtype;

  static AutocastState of(at::DeviceType device);
  void restore() const;
};

// The state of the random generators a block may draw from, so that its second run draws the same
// numbers.

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

// One run of checkpointed blocks, one or several in a row: what their second run needs, and which
// tensors it must bring back.
//
// Semantics of torch.utils.checkpoint(use_reentrant=False) with its defaults (random state
// preserved, early stop, determinism check on shape, dtype and device). Source:
// torch/utils/checkpoint.py, _checkpoint_without_reentrant_generator and _CheckpointFrame.
//
// In forward every tensor that autograd would save is replaced by a Holder. The first holder
// unpacked in a backward pass runs the block again; each tensor autograd saves then goes to the
// holder of the same position, and the run stops, by an exception, once the last holder has its
// tensor. A holder gives its tensor away when unpacked, so that it is freed as early as it could
// be.

class Frame;

// Stands for a saved tensor. Belongs to autograd's node, and keeps its frame alive: block, inputs
// and random state go when the last node of the block has run.
class Holder : public SavedTensor {
 public:
  explicit Holder(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  at::Tensor unpack() override;

  // By backward pass; empty once unpacked in it.
  std::map<int, at::Tensor> recomputed;

 private:
  std::shared_ptr<Frame> frame_;
};

// What must be the same of a tensor in both runs.
struct Metadata {
  std::vector<std::int64_t> shape;
  at::ScalarType dtype;
  at::Device device;

  static Metadata of(const at::Tensor& tensor);
  bool operator==(const Metadata&) const = default;
};

class Frame : public std::enable_shared_from_this<Frame> {
 public:
  explicit Frame(Selection keeps = {}) : kept_(keeps) {}

  // In forward: runs the block and keeps its inputs, as autograd keeps tensors, so that hooks
  // around it see them. Of a further block, what the one before has put out is not kept; throws
  // Unsupported where its first input is none of that.
  std::vector<at::Tensor> run(const BlockFunction& block, const std::vector<at::Tensor>& inputs);

  // In forward: a holder in the tensor's place.
  std::shared_ptr<Holder> hold(const at::Tensor& tensor);

  // In backward, on whichever thread runs it. Runs the blocks again, once a backward pass. Throws
  // std::runtime_error where the second run saves other tensors than the first.
  void ensure_recomputed(int backward_pass);
  // The second run's tensor at `position` of those it saves; true if it was the last.
  bool bring_back(std::size_t position, int backward_pass, const at::Tensor& tensor);

  int unique_pass() { return --last_unique_pass_; }

 private:
  // Kept, or the output of that number of the block before.
  struct Input {
    torch::autograd::SavedVariable kept;
    std::optional<std::size_t> output;
  };
  struct Piece {
    BlockFunction block;
    std::vector<Input> inputs;
  };

  void begin(const std::vector<at::Tensor>& inputs);
  Input keep(const at::Tensor& input) const;
  std::vector<std::vector<at::Tensor>> unpacked_inputs() const;
  void run_again(const std::vector<std::vector<at::Tensor>>& inputs) const;
  void check(int backward_pass, std::size_t brought_back) const;

  std::vector<Piece> pieces_;
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl>> last_outputs_;
  std::vector<at::Device> devices_;  // other than the CPU, of the inputs
  RandomState random_state_;
  std::vector<AutocastState> autocast_;
  KeptOutputs kept_;

  std::vector<std::weak_ptr<Holder>> holders_;  // in the order of saving
  std::vector<Metadata> metadata_;              // of each
  std::set<int> recomputed_passes_;
  int last_unique_pass_ = -1;
};

// Runs the block so that it keeps its inputs alone. Without grad mode: just runs it.
std::vector<at::Tensor> run_checkpointed(const BlockFunction& block,
                                         const std::vector<at::Tensor>& inputs,
                                         Selection keeps = {});

}  // namespace peakbench::checkpointing
