// Activation offloading: what backward needs waits in the host's memory.
#include "activation_offload.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

#include "peakbench/plugin.h"

namespace peakbench::activation_offload {
namespace {

class OnHost : public SavedTensor {
 public:
  OnHost(at::Tensor host, at::Device device, bool pinned)
      : host_(std::move(host)), device_(device), pinned_(pinned) {}

  at::Tensor unpack() override {
    return host_.to(host_.options().device(device_), /*non_blocking=*/pinned_);
  }

 private:
  at::Tensor host_;
  at::Device device_;
  bool pinned_;
};

at::TensorOptions on_host(const at::Tensor& tensor, bool pin_memory) {
  const bool pinned = pin_memory && !tensor.is_cpu();
  return at::TensorOptions(tensor.dtype()).device(at::kCPU).pinned_memory(pinned);
}

// Uninitialised memory of the host for a copy of the tensor, with its strides. Page-locked only for
// what comes from another device.
at::Tensor host_memory_like(const at::Tensor& tensor, bool pin_memory) {
  return at::empty_like(tensor, on_host(tensor, pin_memory));
}

}  // namespace

bool Choice::takes(const at::Tensor& tensor, bool is_weight) const {
  return !is_weight && static_cast<std::int64_t>(tensor.nbytes()) >= min_bytes;
}

std::shared_ptr<SavedTensor> Copies::pack(const at::Tensor& tensor, const SavedTensorFacts& facts) {
  if (!choice_.takes(tensor, facts.is_weight)) return nullptr;
  at::Tensor host = host_memory_like(tensor, choice_.pin_memory);
  host.copy_(tensor);
  return std::make_shared<OnHost>(std::move(host), tensor.device(), choice_.pin_memory);
}

std::shared_ptr<SavedTensor> SaveOnCpu::pack(const at::Tensor& tensor, const SavedTensorFacts&) {
  at::Tensor host = at::empty(tensor.sizes(), on_host(tensor, pin_memory_));
  host.copy_(tensor);
  return std::make_shared<OnHost>(std::move(host), tensor.device(), pin_memory_);
}

namespace {

namespace autograd = torch::autograd;

c10::Event record(const c10::Stream& stream) {
  c10::Event event(stream.device_type());
  event.record(stream);
  return event;
}

// `waiting` goes on when `other` has done what it was given so far.
void wait(const c10::Stream& waiting, const c10::Stream& other) { record(other).block(waiting); }

class AfterNode : public autograd::FunctionPostHook {
 public:
  using Function = std::function<void(const autograd::variable_list& outputs)>;
  explicit AfterNode(Function function) : function_(std::move(function)) {}
  autograd::variable_list operator()(const autograd::variable_list& outputs,
                                     const autograd::variable_list&) override {
    function_(outputs);
    return outputs;
  }

 private:
  Function function_;
};

// The same copies on a stream of their own, beside the computation.
//
// Ordered as torchtune's OffloadActivations(use_streams=True) orders them. Source: torchtune,
// torchtune/training/_activation_offloading.py.
//
// Forward: a tensor is kept until its copy is done, and computation waits for a copy only when
// `overlap` younger tensors have been saved. Backward: a tensor is brought back on the copying
// stream, into that stream's memory, and computation waits for it. That memory is free again when
// the next node that reads something has run: the copying stream waits for the reader, the host
// does not.
class OverlappedCopies : public SavedTensorHooks,
                         public std::enable_shared_from_this<OverlappedCopies> {
 public:
  // Of tensors on `device`, which has streams; those on other devices are left alone.
  OverlappedCopies(const Choice& choice, at::Device device, std::int64_t overlap)
      : choice_(choice),
        device_(device),
        overlap_(overlap),
        copying_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override {
    const std::int64_t id = next_id_++;
    if (tensor.device() != device_ || !choice_.takes(tensor, facts.is_weight)) return nullptr;
    release_outgoing_before(id - overlap_ + 1);
    wait(copying_, computing());
    const c10::StreamGuard on_its_stream(copying_);
    at::Tensor host = host_memory_like(tensor, choice_.pin_memory);
    host.copy_(tensor, /*non_blocking=*/true);
    outgoing_.push_back({id, tensor, record(copying_)});
    return std::make_shared<OnItsWay>(shared_from_this(), id, std::move(host));
  }

  // On the thread that runs backward. `host` holds the tensor that was packed as number `id`.
  at::Tensor bring_back(std::int64_t id, const at::Tensor& host) {
    begin_node();
    const auto still_here = std::find_if(outgoing_.begin(), outgoing_.end(),
                                         [&](const Outgoing& one) { return one.id == id; });
    if (still_here != outgoing_.end()) return still_here->tensor;
    at::Tensor tensor;
    {
      const c10::StreamGuard on_its_stream(copying_);
      tensor = host.to(host.options().device(device_), /*non_blocking=*/true);
    }
    wait(computing(), copying_);
    incoming_.push_back({tensor, std::nullopt});
    return tensor;
  }

 private:
  class OnItsWay : public SavedTensor {
   public:
    OnItsWay(std::shared_ptr<OverlappedCopies> copies, std::int64_t id, at::Tensor host)
        : copies_(std::move(copies)), id_(id), host_(std::move(host)) {}
    at::Tensor unpack() override { return copies_->bring_back(id_, host_); }

   private:
    std::shared_ptr<OverlappedCopies> copies_;
    std::int64_t id_;
    at::Tensor host_;
  };
  struct Outgoing {
    std::int64_t id;
    at::Tensor tensor;
    c10::Event copied;
  };
  struct Incoming {
    at::Tensor tensor;
    std::optional<c10::Event> read;
  };

  c10::Stream computing() const {
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  }
  void release_outgoing_before(std::int64_t id) {
    while (!outgoing_.empty() && outgoing_.front().id < id) {
      outgoing_.front().copied.block(computing());
      outgoing_.pop_front();
    }
  }
  void release(std::vector<Incoming>& tensors) const {
    for (Incoming& one : tensors)
      if (one.read) one.read->block(copying_);
    tensors.clear();
  }
  // Once for each node that reads something, and once for each backward.
  void begin_node() {
    const auto self = shared_from_this();
    const int pass = autograd::get_current_graph_task_id();
    if (pass != backward_pass_) {
      backward_pass_ = pass;
      node_ = nullptr;
      autograd::Engine::get_default_engine().queue_callback([self] { self->backward_has_run(); });
    }
    const auto node = autograd::get_current_node();
    if (node.get() == node_) return;
    node_ = node.get();
    std::move(incoming_.begin(), incoming_.end(), std::back_inserter(earlier_));
    incoming_.clear();
    node->add_post_hook(std::make_unique<AfterNode>(
        [self](const autograd::variable_list& outputs) { self->node_has_run(outputs); }));
  }
  void node_has_run(const std::vector<at::Tensor>& outputs) {
    const auto passed_on = [&](const Incoming& one) {
      const bool is = std::any_of(outputs.begin(), outputs.end(), [&](const at::Tensor& output) {
        return output.defined() && output.is_alias_of(one.tensor);
      });
      // Who reads it next is not known: the allocator is told to wait for the whole stream.
      if (is) one.tensor.record_stream(computing());
      return is;
    };
    node_ = nullptr;
    std::erase_if(incoming_, passed_on);
    for (Incoming& one : incoming_) one.read = record(computing());
    release_outgoing_before(next_id_);
    release(earlier_);
  }
  void backward_has_run() {
    release(earlier_);
    release(incoming_);
    node_ = nullptr;
  }

  Choice choice_;
  at::Device device_;
  std::int64_t overlap_, next_id_ = 0;
  c10::Stream copying_;
  std::deque<Outgoing> outgoing_;
  // Brought back for the node that runs, and for the one before it.
  std::vector<Incoming> incoming_, earlier_;
  // That reads now; only compared, as its owning pointer is of another type in each release of
  // LibTorch.
  const torch::autograd::Node* node_ = nullptr;
  int backward_pass_ = -1;
};

std::shared_ptr<SavedTensorHooks> hooks_of(const StrategyContext& context, Model& model) {
  const Options& options = context.options;
  const bool pin_memory = options.boolean("pin_memory");
  if (context.id == "save-on-cpu") return std::make_shared<SaveOnCpu>(pin_memory);
  const Choice choice{.pin_memory = pin_memory, .min_bytes = options.integer("min_bytes")};
  const std::int64_t overlap = options.integer("overlap");
  if (overlap == 0) return std::make_shared<Copies>(choice);
  const at::Device device = model.module().parameters().front().device();
  if (device.is_cpu())
    throw Unsupported("activation-offload,overlap=" + std::to_string(overlap) +
                      ": the CPU has no stream beside the one that computes; use overlap=0");
  return std::make_shared<OverlappedCopies>(choice, device, overlap);
}

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload, hooks_of(context, model));
}

}  // namespace
}  // namespace peakbench::activation_offload

PEAKBENCH_STRATEGY_PLUGIN(peakbench::activation_offload::apply)
