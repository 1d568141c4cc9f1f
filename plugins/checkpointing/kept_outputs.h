// Selective checkpointing: what chosen operators made in the first run is kept, and the second run
// takes it instead of computing it again.
//
// Semantics of torch.utils.checkpoint.create_selective_checkpoint_contexts with a list of
// operators. Source: torch/utils/checkpoint.py, _CachingTorchDispatchMode and
// _CachedTorchDispatchMode. Those are Python dispatch modes, which see operators below autograd;
// here a fallback on a dispatch key at the same place sees them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::checkpointing {

// Operators whose outputs are kept.
struct Selection {
  bool matmuls = false;    // mm, addmm, bmm, baddbmm
  bool attention = false;  // the fused kernels of scaled_dot_product_attention

  bool empty() const { return !matmuls && !attention; }
  bool holds(const c10::OperatorHandle& op) const;
};

class KeptOutputs {
 public:
  explicit KeptOutputs(Selection selection) : selection_(selection) {}
  const Selection& selection() const { return selection_; }

  void keep(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> outputs);
  // In the order of keeping; each once. Throws std::runtime_error where the second run asks for
  // another operator's, or where somebody changed the tensor since.
  std::vector<c10::IValue> take(const c10::OperatorHandle& op);

 private:
  struct Kept {
    c10::OperatorName op;
    std::vector<c10::IValue> outputs;
    std::vector<std::int64_t> versions;  // of the outputs that are tensors
  };

  Selection selection_;
  std::deque<Kept> kept_;
};

// While it lasts, every operator that this thread runs below autograd is looked at: kept in the
// first run, taken from what was kept in the second. Without a selection it does nothing.
class KeepScope {
 public:
  enum class Run { kFirst, kSecond };
  KeepScope(KeptOutputs& kept, Run run);
  ~KeepScope();
  KeepScope(const KeepScope&) = delete;
  KeepScope& operator=(const KeepScope&) = delete;

 private:
  KeepScope* outer_;
  KeptOutputs& kept_;
  Run run_;
  std::optional<c10::impl::IncludeDispatchKeyGuard> include_;
  std::optional<c10::impl::TorchDispatchModeTLS> modes_before_;

  friend class Interception;
};

}  // namespace peakbench::checkpointing
