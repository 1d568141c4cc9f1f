// A mixture of experts as people write one: a router, and each expert takes the rows for which it
// is one of the two best (nonzero). Its twin in PyTorch is in cases_verdict_test.py.
#include <ATen/ATen.h>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

constexpr std::int64_t kWidth = 256, kInner = 1024, kExperts = 16, kTokens = 512, kOfEach = 2;

struct Experts : torch::nn::Module {
  explicit Experts(const at::TensorOptions& options) {
    router =
        register_module("router", std::make_shared<nn::Linear>(kWidth, kExperts, false, options));
    for (std::int64_t i = 0; i < kExperts; ++i) {
      const auto name = std::to_string(i);
      up.push_back(register_module("up" + name,
                                   std::make_shared<nn::Linear>(kWidth, kInner, true, options)));
      down.push_back(register_module("down" + name,
                                     std::make_shared<nn::Linear>(kInner, kWidth, true, options)));
    }
  }

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor scores = router->forward(x).softmax(-1);
    auto [weights, chosen] = scores.topk(kOfEach, -1);
    at::Tensor out = at::zeros_like(x);
    for (std::size_t i = 0; i < up.size(); ++i) {
      const auto where = at::nonzero(chosen == static_cast<std::int64_t>(i));
      const at::Tensor row = where.select(1, 0), rank = where.select(1, 1);
      const at::Tensor inner = at::relu(up[i]->forward(x.index({row})));
      const at::Tensor of_expert =
          down[i]->forward(inner) * weights.index({row, rank}).unsqueeze(-1);
      out = out.index_add(0, row, of_expert);
    }
    return out;
  }

  std::shared_ptr<nn::Linear> router;
  std::vector<std::shared_ptr<nn::Linear>> up, down;
};

class Routed : public Model {
 public:
  explicit Routed(const ModelContext& context)
      : options_(context.tensor_options), experts_(std::make_shared<Experts>(options_)) {}

  torch::nn::Module& module() override { return *experts_; }
  Batch make_batch(const BatchShape& shape) override {
    return {at::randn({shape.batch_size * kTokens, kWidth}, options_), {}};
  }
  at::Tensor hidden_states(const Batch& batch) override {
    ModuleScope scope(*experts_);
    return experts_->forward(batch.input);
  }
  at::Tensor loss(at::Tensor hidden_states, const Batch&) override { return hidden_states.sum(); }
  LossReduction loss_reduction() const override { return LossReduction::kSum; }
  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdamW; }
  std::vector<NamedLinear> linears() override { return {}; }
  std::vector<std::string> block_paths() const override { return {}; }

 private:
  at::TensorOptions options_;
  std::shared_ptr<Experts> experts_;
};

std::unique_ptr<Model> make(const ModelContext& context) {
  return std::make_unique<Routed>(context);
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_MODEL_PLUGIN(peakbench::make)
