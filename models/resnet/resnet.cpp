// The family's plugin: resnet-50.
#include <ATen/ATen.h>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"
#include "residual_network.h"

namespace peakbench::resnet {
namespace {

class ResNet : public Model {
 public:
  explicit ResNet(const ModelContext& context)
      : options_(context.tensor_options),
        network_(std::make_shared<ResidualNetwork>(config_from(context.options),
                                                   context.tensor_options)) {
    if (const std::string& weights = context.options.string("weights"); !weights.empty()) {
      load_safetensors(*network_, weights);
    }
  }

  torch::nn::Module& module() override { return *network_; }

  Batch make_batch(const BatchShape& shape) override {
    const std::int64_t side = network_->config.image;
    const at::Tensor images = at::rand({shape.batch_size, 3, side, side}, options_);
    if (!network_->config.channels_last) return {images, {}};
    return {images.contiguous(at::MemoryFormat::ChannelsLast), {}};
  }

  at::Tensor hidden_states(const Batch& batch) override {
    ModuleScope scope(*network_);
    return network_->features(batch.input);  // (B, C)
  }

  LossReduction loss_reduction() const override { return LossReduction::kSum; }
  // As the vision transformers are trained.
  at::Tensor loss(at::Tensor hidden_states, const Batch&) override {
    ModuleScope scope(*network_);
    const at::Tensor logits = network_->fc->forward(hidden_states);
    hidden_states.reset();  // torchvision's local variable `x` is the logits by now
    return logits.sum();
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  // Its bottlenecks are no blocks that repeat: they change the size of what goes through.
  std::vector<std::string> block_paths() const override { return {}; }
  std::vector<NamedLinear> linears() override { return {}; }

 private:
  at::TensorOptions options_;
  std::shared_ptr<ResidualNetwork> network_;
};

std::unique_ptr<Model> make(const ModelContext& context) {
  return std::make_unique<ResNet>(context);
}

}  // namespace
}  // namespace peakbench::resnet

PEAKBENCH_MODEL_PLUGIN(peakbench::resnet::make)
