// Activations in 8 bits: a quarter of what fp32 takes, at the price of rounded gradients.
//
// The idea of ActNN, https://arxiv.org/abs/2104.14129, in its simplest form: one scale for a whole
// tensor, rounding to the nearest. An example of saved-tensor hooks at the place kCompress: what
// they make is shown in visit_held, so that activation-offload takes it to the host.
#include <ATen/ATen.h>

#include <limits>
#include <string_view>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// values: int8, as the saved tensor; scale: (), in its dtype.
class Compressed : public SavedTensor {
 public:
  Compressed(at::Tensor values, at::Tensor scale)
      : values_(std::move(values)), scale_(std::move(scale)) {}

  at::Tensor unpack() override {
    at::Tensor tensor = values_.to(scale_.scalar_type());
    tensor.mul_(scale_);
    return tensor;
  }
  void visit_held(const HeldVisitor& visit) override {
    visit(values_);
    visit(scale_);
  }

 private:
  at::Tensor values_, scale_;
};

class Compress : public SavedTensorHooks {
 public:
  Compress(std::int64_t min_bytes, std::string modules)
      : min_bytes_(min_bytes), modules_(std::move(modules)) {}

  bool asks_where() const override { return !modules_.empty(); }

  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override {
    if (!takes(tensor, facts)) return nullptr;
    at::Tensor scale = at::linalg_vector_norm(tensor, std::numeric_limits<double>::infinity());
    scale.div_(kLargest);
    scale.clamp_min_(kAgainstZero);
    at::Tensor values = tensor / scale;
    values.round_();
    return std::make_shared<Compressed>(values.to(at::kChar), std::move(scale));
  }

 private:
  static constexpr double kLargest = 127, kAgainstZero = 1e-30;

  bool takes(const at::Tensor& tensor, const SavedTensorFacts& facts) const {
    if (facts.is_weight || !tensor.is_floating_point()) return false;
    if (static_cast<std::int64_t>(tensor.nbytes()) < min_bytes_) return false;
    return facts.module.find(modules_) != std::string_view::npos;
  }

  std::int64_t min_bytes_;
  std::string modules_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.saved_tensor_hooks.emplace_back(
      SavedTensorPlace::kCompress, std::make_shared<Compress>(context.options.integer("min_bytes"),
                                                              context.options.string("modules")));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
