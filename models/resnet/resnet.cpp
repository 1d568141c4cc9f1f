#include "resnet.h"

#include <ATen/ATen.h>

#include <charconv>
#include <cmath>
#include <string>

#include "peakbench/errors.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::resnet {
namespace {

constexpr std::int64_t kMostBlocks = 64;

// "3:4:6:3"
std::array<std::int64_t, 4> blocks_from(const std::string& text) {
  std::array<std::int64_t, 4> blocks{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [after, error] = std::from_chars(at, end, blocks[i]);
    const bool ends_well = i + 1 < blocks.size() ? after != end && *after == ':' : after == end;
    if (error != std::errc() || !ends_well || blocks[i] < 1 || blocks[i] > kMostBlocks) {
      throw OptionError("blocks=" + text + ": expected four numbers from 1 to " +
                        std::to_string(kMostBlocks) + " joined by ':', as in 3:4:6:3");
    }
    at = after + 1;
  }
  return blocks;
}

}  // namespace

ResNetConfig config_from(const Options& options) {
  return {.blocks = blocks_from(options.string("blocks")),
          .width = options.integer("width"),
          .image = options.integer("image"),
          .channels_last = options.boolean("channels_last")};
}

Stage::Stage(const BottleneckShape& first, std::int64_t blocks, const Placement& placement) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    const BottleneckShape shape =
        i == 0 ? first : BottleneckShape{first.out, first.inner, first.out, 1};
    blocks_.push_back(
        register_module(std::to_string(i), std::make_shared<Bottleneck>(shape, placement)));
  }
}

at::Tensor Stage::forward(const at::Tensor& input) const {
  ModuleScope scope(*this);
  at::Tensor x = input;
  for (const auto& block : blocks_) x = block->forward(x);
  return x;
}

ResidualNetwork::ResidualNetwork(const ResNetConfig& c, const at::TensorOptions& options)
    : config(c) {
  constexpr std::int64_t kStem = 64, kExpansion = 4;
  const Placement placement{options, config.channels_last ? at::MemoryFormat::ChannelsLast
                                                          : at::MemoryFormat::Contiguous};
  conv1_ = register_module("conv1", std::make_shared<Conv2d>(3, kStem, 7, 2, placement));
  bn1_ = register_module("bn1", std::make_shared<BatchNorm2d>(kStem, options));
  std::int64_t in = kStem;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const std::int64_t factor = 1 << i;
    const BottleneckShape first{in, config.width * factor, kStem * factor * kExpansion,
                                i == 0 ? 1 : 2};
    stages_[i] = register_module("layer" + std::to_string(i + 1),
                                 std::make_shared<Stage>(first, config.blocks[i], placement));
    in = first.out;
  }
  fc = register_module("fc", std::make_shared<nn::Linear>(in, config.classes, true, options));
  const at::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));  // nn.Linear's own
  fc->weight.uniform_(-bound, bound);
  fc->bias.uniform_(-bound, bound);
}

at::Tensor ResidualNetwork::features(const at::Tensor& images) const {
  at::Tensor x = conv1_->forward(images);
  x = bn1_->forward(x);
  at::relu_(x);
  x = at::max_pool2d(x, /*kernel_size=*/{3, 3}, /*stride=*/{2, 2}, /*padding=*/{1, 1});
  for (const auto& stage : stages_) x = stage->forward(x);
  x = at::adaptive_avg_pool2d(x, {1, 1});
  return at::flatten(x, 1);
}

// The family's plugin: resnet-50.

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
