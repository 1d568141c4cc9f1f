// A model that forgets to fill one of its parameters, by its id.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

constexpr std::int64_t kWidth = 8;

struct Layers : torch::nn::Module {
  explicit Layers(const at::TensorOptions& options) {
    embedding = register_module("embedding", std::make_shared<nn::Embedding>(16, kWidth, options));
    linear = register_module("linear",
                             std::make_shared<nn::Linear>(kWidth, kWidth, /*bias=*/true, options));
    norm = register_module("norm", std::make_shared<nn::LayerNorm>(kWidth, 1e-5, options));
    conv = register_module("conv", std::make_shared<nn::Conv2d>(1, 1, 1, 1, options));
  }
  std::shared_ptr<nn::Embedding> embedding;
  std::shared_ptr<nn::Linear> linear;
  std::shared_ptr<nn::LayerNorm> norm;
  std::shared_ptr<nn::Conv2d> conv;
};

class Forgetful : public Model {
 public:
  explicit Forgetful(const ModelContext& context)
      : options_(context.tensor_options), layers_(std::make_shared<Layers>(options_)) {
    const at::NoGradGuard no_grad;
    const auto forgotten = context.options.string("forgets");
    for (const auto& item : layers_->named_parameters())
      if (item.key() != forgotten && !item.key().starts_with("norm.")) item.value().fill_(0.5);
  }

  torch::nn::Module& module() override { return *layers_; }
  Batch make_batch(const BatchShape& shape) override {
    return {at::zeros({shape.batch_size, 2}, options_.dtype(at::kLong)), {}};
  }
  at::Tensor hidden_states(const Batch& batch) override {
    const at::Tensor hidden =
        layers_->norm->forward(layers_->linear->forward(layers_->embedding->forward(batch.input)));
    return layers_->conv->forward(hidden.unsqueeze(1)).squeeze(1);
  }
  at::Tensor loss(at::Tensor hidden, const Batch&) override { return hidden.square().mean(); }
  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  std::vector<NamedLinear> linears() override { return {}; }
  std::vector<std::string> block_paths() const override { return {}; }

 private:
  at::TensorOptions options_;
  std::shared_ptr<Layers> layers_;
};

std::unique_ptr<Model> make(const ModelContext& context) {
  return std::make_unique<Forgetful>(context);
}

}  // namespace

PEAKBENCH_MODEL_PLUGIN(make)
