// ResNet-50: torchvision.models.resnet.ResNet of Bottlenecks as a module tree, with the same names
// and the same order of parameters. Source: torchvision/models/resnet.py.
#include <ATen/ATen.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "peakbench/errors.h"
#include "peakbench/nn.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::resnet {
namespace {

// Convolution without a bias and batch normalisation, with the operators, names and order of their
// torch.nn namesakes. Source: torch/nn/modules/conv.py, torch/nn/modules/batchnorm.py.

// Device and dtype of the parameters, and how matrices of images lie in memory.
struct Placement {
  at::TensorOptions options;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
};

// Square kernel, padded so that stride 1 keeps the size. weight: (out, in, k, k), drawn as
// torchvision's ResNet draws it: kaiming_normal_, fan_out.
class Conv2d : public torch::nn::Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
         const Placement& placement)
      : stride_(stride), padding_(kernel / 2) {
    weight = register_parameter(
        "weight", at::empty({out, in, kernel, kernel}, placement.options, placement.format));
    const at::NoGradGuard no_grad;
    weight.normal_(0, std::sqrt(2.0 / static_cast<double>(out * kernel * kernel)));
  }
  // (B, in, H, W) -> (B, out, H', W')
  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    return at::conv2d(x, weight, /*bias=*/{}, {stride_, stride_}, {padding_, padding_});
  }
  at::Tensor weight;

 private:
  std::int64_t stride_, padding_;
};

// In training: normalises by the batch's own statistics, and moves the running ones towards them.
// weight, bias, running_mean, running_var: (C); num_batches_tracked: () int64. The last three are
// buffers.
class BatchNorm2d : public torch::nn::Module {
 public:
  BatchNorm2d(std::int64_t features, const at::TensorOptions& options) {
    weight = register_parameter("weight", at::ones({features}, options));
    bias = register_parameter("bias", at::zeros({features}, options));
    running_mean = register_buffer("running_mean", at::zeros({features}, options));
    running_var = register_buffer("running_var", at::ones({features}, options));
    num_batches_tracked =
        register_buffer("num_batches_tracked", at::zeros({}, options.dtype(at::kLong)));
  }
  // (B, C, H, W) -> (B, C, H, W)
  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    constexpr double kMomentum = 0.1, kEps = 1e-5;
    {
      const at::NoGradGuard no_grad;
      at::Tensor(num_batches_tracked).add_(1);
    }
    return at::batch_norm(x, weight, bias, running_mean, running_var, /*training=*/true, kMomentum,
                          kEps, at::globalContext().userEnabledCuDNN());
  }
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

struct BottleneckShape {
  std::int64_t in, inner, out, stride;
};

// The shortcut where its size changes: nn.Sequential of a convolution "0" and a normalisation "1".
class Downsample : public torch::nn::Module {
 public:
  Downsample(const BottleneckShape& shape, const Placement& placement) {
    convolution_ = register_module(
        "0", std::make_shared<Conv2d>(shape.in, shape.out, 1, shape.stride, placement));
    norm_ = register_module("1", std::make_shared<BatchNorm2d>(shape.out, placement.options));
  }
  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    return norm_->forward(convolution_->forward(x));
  }

 private:
  std::shared_ptr<Conv2d> convolution_;
  std::shared_ptr<BatchNorm2d> norm_;
};

// torchvision's Bottleneck: 1 x 1, 3 x 3 (with the stride) and 1 x 1 convolutions beside a
// shortcut.
class Bottleneck : public torch::nn::Module {
 public:
  Bottleneck(const BottleneckShape& shape, const Placement& placement) {
    const auto convolution = [&](const char* name, std::int64_t in, std::int64_t out,
                                 std::int64_t kernel, std::int64_t stride) {
      return register_module(name, std::make_shared<Conv2d>(in, out, kernel, stride, placement));
    };
    const auto norm = [&](const char* name, std::int64_t features) {
      return register_module(name, std::make_shared<BatchNorm2d>(features, placement.options));
    };
    conv1_ = convolution("conv1", shape.in, shape.inner, 1, 1);
    bn1_ = norm("bn1", shape.inner);
    conv2_ = convolution("conv2", shape.inner, shape.inner, 3, shape.stride);
    bn2_ = norm("bn2", shape.inner);
    conv3_ = convolution("conv3", shape.inner, shape.out, 1, 1);
    bn3_ = norm("bn3", shape.out);
    if (shape.stride != 1 || shape.in != shape.out)
      downsample_ = register_module("downsample", std::make_shared<Downsample>(shape, placement));
  }
  // (B, in, H, W) -> (B, out, H', W')
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor identity = input;
    at::Tensor x = conv1_->forward(input);
    x = bn1_->forward(x);
    at::relu_(x);

    x = conv2_->forward(x);
    x = bn2_->forward(x);
    at::relu_(x);

    x = conv3_->forward(x);
    x = bn3_->forward(x);
    if (downsample_) identity = downsample_->forward(input);

    x.add_(identity);
    return at::relu_(x);
  }

 private:
  std::shared_ptr<Conv2d> conv1_, conv2_, conv3_;
  std::shared_ptr<BatchNorm2d> bn1_, bn2_, bn3_;
  std::shared_ptr<Downsample> downsample_;  // null where the input is added as it is
};

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

struct ResNetConfig {
  std::array<std::int64_t, 4> blocks;  // of each stage
  std::int64_t width, image, classes = 1000;
  bool channels_last;
};

// Throws OptionError for blocks that are not four numbers.
ResNetConfig config_from(const Options& options) {
  return {.blocks = blocks_from(options.string("blocks")),
          .width = options.integer("width"),
          .image = options.integer("image"),
          .channels_last = options.boolean("channels_last")};
}

// "layer1" to "layer4": nn.Sequential of bottlenecks.
class Stage : public torch::nn::Module {
 public:
  // Its first bottleneck has the shape, the others keep the size.
  Stage(const BottleneckShape& first, std::int64_t blocks, const Placement& placement) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      const BottleneckShape shape =
          i == 0 ? first : BottleneckShape{first.out, first.inner, first.out, 1};
      blocks_.push_back(
          register_module(std::to_string(i), std::make_shared<Bottleneck>(shape, placement)));
    }
  }
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor x = input;
    for (const auto& block : blocks_) x = block->forward(x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Bottleneck>> blocks_;
};

class ResidualNetwork : public torch::nn::Module {
 public:
  ResidualNetwork(const ResNetConfig& c, const at::TensorOptions& options) : config(c) {
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
  // (B, 3, H, W) -> (B, C)
  at::Tensor features(const at::Tensor& images) const {
    at::Tensor x = conv1_->forward(images);
    x = bn1_->forward(x);
    at::relu_(x);
    x = at::max_pool2d(x, /*kernel_size=*/{3, 3}, /*stride=*/{2, 2}, /*padding=*/{1, 1});
    for (const auto& stage : stages_) x = stage->forward(x);
    x = at::adaptive_avg_pool2d(x, {1, 1});
    return at::flatten(x, 1);
  }

  ResNetConfig config;
  std::shared_ptr<nn::Linear> fc;

 private:
  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<BatchNorm2d> bn1_;
  std::array<std::shared_ptr<Stage>, 4> stages_;
};

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
