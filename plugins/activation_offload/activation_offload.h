#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/function.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "peakbench/saved_tensor_hooks.h"

namespace peakbench::activation_offload {

// What autograd saves for backward, kept in the memory of the host: copied there when it is saved,
// and back when backward reads it.

// Which saved tensors go to the host: activations of some size. What lies in the storage of a
// parameter or buffer stays, since the device would hold it all the same.
struct Choice {
  bool pin_memory = true;  // page-locked, so that a card copies by itself
  std::int64_t min_bytes = 1024;

  bool takes(const at::Tensor& tensor, bool is_weight) const;
};

// Uninitialised memory of the host for a copy of the tensor, with its strides. Page-locked only for
// what comes from another device.
at::Tensor host_memory_like(const at::Tensor& tensor, bool pin_memory);

// Copies on the stream that computes. A copy has the strides of its tensor, so that backward
// multiplies and adds in the same order.
class Copies : public SavedTensorHooks {
 public:
  explicit Copies(const Choice& choice) : choice_(choice) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override;

 private:
  Choice choice_;
};

// torch.autograd.graph.save_on_cpu: every saved tensor, weights too, and contiguous copies. Source:
// torch/autograd/graph.py
class SaveOnCpu : public SavedTensorHooks {
 public:
  explicit SaveOnCpu(bool pin_memory) : pin_memory_(pin_memory) {}
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override;

 private:
  bool pin_memory_;
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
  OverlappedCopies(const Choice& choice, at::Device device, std::int64_t overlap);
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override;

  // On the thread that runs backward. `host` holds the tensor that was packed as number `id`.
  at::Tensor bring_back(std::int64_t id, const at::Tensor& host);

 private:
  struct Outgoing {
    std::int64_t id;
    at::Tensor tensor;
    c10::Event copied;
  };
  struct Incoming {
    at::Tensor tensor;
    std::optional<c10::Event> read;
  };

  c10::Stream computing() const;
  void release_outgoing_before(std::int64_t id);
  void release(std::vector<Incoming>& tensors) const;
  void begin_node();
  void node_has_run(const std::vector<at::Tensor>& outputs);
  void backward_has_run();

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

}  // namespace peakbench::activation_offload
