#include "frame.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "peakbench/device_graph.h"
#include "peakbench/errors.h"
#include "peakbench/observer.h"

namespace peakbench::checkpointing {

AutocastState AutocastState::of(at::DeviceType device) {
  return {device, at::autocast::is_autocast_enabled(device),
          at::autocast::is_autocast_cache_enabled(), at::autocast::get_autocast_dtype(device)};
}

void AutocastState::restore() const {
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_cache_enabled(cache_enabled);
}

namespace {

at::Tensor state_of(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

RandomState RandomState::of(const std::vector<at::Device>& devices) {
  RandomState state;
  state.states_.emplace_back(at::kCPU, state_of(at::kCPU));
  for (const at::Device device : devices) state.states_.emplace_back(device, state_of(device));
  return state;
}

void RandomState::restore() const {
  for (const auto& [device, state] : states_) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
  random_state_restored();
}

namespace {

// Puts states in place, and those found there back when destroyed; leaving the outermost autocast
// empties its cache of cast weights. torch/amp/autocast_mode.py
class AutocastScope {
 public:
  explicit AutocastScope(const std::vector<AutocastState>& states) {
    for (const AutocastState& state : states) {
      outer_.push_back(AutocastState::of(state.device));
      state.restore();
      at::autocast::increment_nesting();
    }
  }
  ~AutocastScope() {
    while (!outer_.empty()) {
      if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
      outer_.back().restore();
      outer_.pop_back();
    }
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  std::vector<AutocastState> outer_;
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

// Ends the second run. Not a std::exception: nothing between here and there may take it for an
// error.
struct EverythingIsBack {};

// Forward: a holder for every tensor.
class ForwardHooks : public SavedTensorHooks {
 public:
  explicit ForwardHooks(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, const SavedTensorFacts&) override {
    return frame_->hold(tensor);
  }

 private:
  std::shared_ptr<Frame> frame_;
};

// A tensor that the second run's own graph keeps while it lasts.
class Kept : public SavedTensor {
 public:
  explicit Kept(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor unpack() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

// The second run: every tensor to its holder.
class RecomputeHooks : public SavedTensorHooks {
 public:
  RecomputeHooks(Frame& frame, int backward_pass) : frame_(frame), backward_pass_(backward_pass) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, const SavedTensorFacts&) override {
    const at::Tensor kept = tensor.requires_grad() ? tensor.detach() : tensor;
    if (frame_.bring_back(brought_back_++, backward_pass_, kept)) throw EverythingIsBack();
    return std::make_shared<Kept>(kept);
  }
  std::size_t brought_back() const { return brought_back_; }

 private:
  Frame& frame_;
  int backward_pass_;
  std::size_t brought_back_ = 0;
};

std::vector<at::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.is_cpu() || tensor.is_meta()) continue;
    const bool is_new = std::find(devices.begin(), devices.end(), tensor.device()) == devices.end();
    if (is_new) devices.push_back(tensor.device());
  }
  return devices;
}

std::vector<AutocastState> autocast_of(const std::vector<at::Device>& devices) {
  std::vector<AutocastState> states;
  if (!devices.empty()) states.push_back(AutocastState::of(devices.front().type()));
  states.push_back(AutocastState::of(at::kCPU));
  return states;
}

std::ostream& operator<<(std::ostream& out, const Metadata& metadata) {
  return out << metadata.dtype << ' ' << at::IntArrayRef(metadata.shape) << " on "
             << metadata.device;
}

}  // namespace

at::Tensor Holder::unpack() {
  int pass = torch::autograd::get_current_graph_task_id();
  if (pass == -1) pass = frame_->unique_pass();  // read outside of any backward pass
  frame_->ensure_recomputed(pass);
  at::Tensor& tensor = recomputed[pass];
  if (!tensor.defined()) {
    throw std::runtime_error(
        "checkpointing: a saved tensor was read twice in one backward pass; it is given away at "
        "the "
        "first time. Read what a backward needs once.");
  }
  return std::exchange(tensor, {});
}

Metadata Metadata::of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.scalar_type(), tensor.device()};
}

void Frame::begin(const std::vector<at::Tensor>& inputs) {
  devices_ = devices_of(inputs);
  random_state_ = RandomState::of(devices_);
  autocast_ = autocast_of(devices_);
}

// By identity: what the block before has put out comes back when that runs again.
Frame::Input Frame::keep(const at::Tensor& input) const {
  for (std::size_t i = 0; i < last_outputs_.size() && input.defined(); ++i)
    if (last_outputs_[i].lock().get() == input.unsafeGetTensorImpl()) return {{}, i};
  return {{input, /*is_output=*/false}, std::nullopt};
}

std::vector<at::Tensor> Frame::run(const BlockFunction& block,
                                   const std::vector<at::Tensor>& inputs) {
  Piece piece{block, {}};
  if (pieces_.empty()) begin(inputs);
  for (const at::Tensor& input : inputs) piece.inputs.push_back(keep(input));
  if (!pieces_.empty() && !piece.inputs.front().output) {
    throw Unsupported(
        "checkpointing: segments need blocks that follow each other, and this model does something "
        "between them; use segments=blocks");
  }
  pieces_.push_back(std::move(piece));

  SavedTensorHooksScope hooks(std::make_shared<ForwardHooks>(shared_from_this()));
  const KeepScope scope(kept_, KeepScope::Run::kFirst);
  auto outputs = block(inputs);
  last_outputs_.clear();
  for (const at::Tensor& output : outputs) last_outputs_.emplace_back(output.getIntrusivePtr());
  return outputs;
}

std::shared_ptr<Holder> Frame::hold(const at::Tensor& tensor) {
  auto holder = std::make_shared<Holder>(shared_from_this());
  holders_.push_back(holder);
  metadata_.push_back(Metadata::of(tensor));
  return holder;
}

bool Frame::bring_back(std::size_t position, int backward_pass, const at::Tensor& tensor) {
  // A holder that is gone was released in an earlier backward pass over a part of the block.
  if (const auto holder = holders_.at(position).lock()) holder->recomputed[backward_pass] = tensor;
  return position + 1 == holders_.size();
}

void Frame::ensure_recomputed(int backward_pass) {
  if (!recomputed_passes_.insert(backward_pass).second) return;
  const auto inputs = unpacked_inputs();
  const auto hooks = std::make_shared<RecomputeHooks>(*this, backward_pass);
  {
    SavedTensorHooksScope hooks_scope(hooks);
    at::AutoGradMode grad_mode(true);
    ForkedRandomState random_state(random_state_, devices_);
    AutocastScope autocast(autocast_);
    KeepScope keep(kept_, KeepScope::Run::kSecond);
    RecomputeScope recompute;
    try {
      run_again(inputs);
    } catch (const EverythingIsBack&) {
    }
  }
  check(backward_pass, hooks->brought_back());
}

std::vector<std::vector<at::Tensor>> Frame::unpacked_inputs() const {
  std::vector<std::vector<at::Tensor>> inputs(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    for (const Input& input : pieces_[i].inputs)
      inputs[i].push_back(input.output ? at::Tensor() : input.kept.unpack());
  return inputs;
}

void Frame::run_again(const std::vector<std::vector<at::Tensor>>& inputs) const {
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    std::vector<at::Tensor> of_block = inputs[i];
    for (std::size_t k = 0; k < of_block.size(); ++k)
      if (const auto output = pieces_[i].inputs[k].output) of_block[k] = outputs.at(*output);
    outputs = pieces_[i].block(of_block);
  }
}

void Frame::check(int backward_pass, std::size_t brought_back) const {
  constexpr const char* kAdvice =
      "\nA block must do the same when it runs again: no choice by what has changed since, no "
      "randomness but the default generators'.";
  std::ostringstream message;
  if (brought_back != holders_.size()) {
    message << "checkpointing: the block saved " << holders_.size() << " tensors in forward and "
            << brought_back << " when it ran again in backward." << kAdvice;
    throw std::runtime_error(message.str());
  }
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    const auto holder = holders_[i].lock();
    if (holder == nullptr) continue;
    const Metadata again = Metadata::of(holder->recomputed.at(backward_pass));
    if (again == metadata_[i]) continue;
    message << "\n  saved tensor " << i << ": " << metadata_[i] << " in forward, " << again
            << " when the block ran again";
  }
  if (const std::string differences = message.str(); !differences.empty()) {
    throw std::runtime_error("checkpointing: the block saved other tensors when it ran again." +
                             differences + kAdvice);
  }
}

std::vector<at::Tensor> run_checkpointed(const BlockFunction& block,
                                         const std::vector<at::Tensor>& inputs, Selection keeps) {
  if (!at::GradMode::is_enabled()) return block(inputs);
  return std::make_shared<Frame>(keeps)->run(block, inputs);
}

}  // namespace peakbench::checkpointing
