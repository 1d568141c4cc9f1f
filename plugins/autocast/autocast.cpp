// torch.autocast around forward and loss. Source: torch/amp/autocast_mode.py, __enter__ and
// __exit__.
#include <ATen/autocast_mode.h>

#include "peakbench/plugin.h"

namespace peakbench {
namespace {

// Autocast is state of a thread; what was found is put back.
class Scope {
 public:
  Scope(at::DeviceType device, at::ScalarType dtype)
      : device_(device),
        was_enabled_(at::autocast::is_autocast_enabled(device)),
        was_cached_(at::autocast::is_autocast_cache_enabled()),
        was_dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::increment_nesting();
  }
  // Leaving the outermost one drops the cache of cast weights; autograd keeps those it needs.
  ~Scope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, was_dtype_);
    at::autocast::set_autocast_cache_enabled(was_cached_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_, was_cached_;
  at::ScalarType was_dtype_;
};

class AroundForward : public StepContext {
 public:
  AroundForward(at::DeviceType device, at::ScalarType dtype) : device_(device), dtype_(dtype) {}
  std::shared_ptr<void> enter_forward(const Pass&) override {
    return std::make_shared<Scope>(device_, dtype_);
  }

 private:
  at::DeviceType device_;
  at::ScalarType dtype_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  const bool is_fp16 = context.options.string("dtype") == "fp16";
  const at::DeviceType device = model.module().parameters().at(0).device().type();
  recipe.step_contexts.push_back(
      std::make_shared<AroundForward>(device, is_fp16 ? at::kHalf : at::kBFloat16));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
