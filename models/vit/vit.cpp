#include "vit.h"

#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::vit {
namespace {

class Heads : public torch::nn::Module {};  // nn.Sequential of one Linear "head"

}  // namespace

VisionTransformer::VisionTransformer(const VitShape& s, const at::TensorOptions& options)
    : shape(s) {
  const std::int64_t width = shape.encoder.width;
  class_token = register_parameter("class_token", at::zeros({1, 1, width}, options));
  conv_proj = register_module(
      "conv_proj", std::make_shared<nn::Conv2d>(3, width, shape.patch, shape.patch, options));
  encoder = register_module("encoder", std::make_shared<Encoder>(shape.encoder, options));
  auto heads = register_module("heads", std::make_shared<Heads>());
  head = heads->register_module("head",
                                std::make_shared<nn::Linear>(width, shape.classes, true, options));

  at::NoGradGuard no_grad;
  const double fan_in = 3.0 * static_cast<double>(shape.patch * shape.patch);
  conv_proj->weight.normal_(
      0, std::sqrt(1.0 / fan_in));  // torchvision cuts it at two; the memory is the same
  conv_proj->bias.zero_();
  // torchvision's head starts at zero, and then no gradient reaches the encoder in the first step.
  // A small one keeps every step of a comparison meaningful.
  head->weight.normal_(0, 0.02);
  head->bias.zero_();
}

at::Tensor VisionTransformer::patches(const at::Tensor& images) const {
  const std::int64_t batch = images.size(0), side = images.size(2) / shape.patch;
  at::Tensor x = conv_proj->forward(images);  // (B, C, side, side)
  x = x.reshape({batch, shape.encoder.width, side * side});
  return x.permute({0, 2, 1});
}

// The family's plugin: vit-h-14, vit-l-16 and vit-b-16.

namespace {

// Side of a patch, in pixels: what an id fixes and no option changes.
std::int64_t patch_of(const std::string& id) { return id == "vit-h-14" ? 14 : 16; }

VitShape shape_from(const std::string& id, const Options& options) {
  const std::int64_t image = options.integer("image"), patch = patch_of(id);
  if (image % patch != 0) {
    throw OptionError("image=" + std::to_string(image) +
                      ": the side of the image must be a multiple of " + std::to_string(patch));
  }
  VitShape shape{.encoder = {.layers = options.integer("layers"),
                             .width = options.integer("width"),
                             .heads = options.integer("heads"),
                             .mlp = options.integer("mlp"),
                             .tokens = (image / patch) * (image / patch) + 1},
                 .image = image,
                 .patch = patch};
  if (shape.encoder.width % shape.encoder.heads != 0) {
    throw OptionError("width=" + std::to_string(shape.encoder.width) +
                      " is not a multiple of heads=" + std::to_string(shape.encoder.heads));
  }
  return shape;
}

class Vit : public Model {
 public:
  explicit Vit(const ModelContext& context)
      : options_(context.tensor_options),
        vit_(std::make_shared<VisionTransformer>(shape_from(context.id, context.options),
                                                 context.tensor_options)) {
    if (const std::string& weights = context.options.string("weights"); !weights.empty()) {
      load_safetensors(*vit_, weights);
    }
  }

  torch::nn::Module& module() override { return *vit_; }

  Batch make_batch(const BatchShape& shape) override {
    return {at::rand({shape.batch_size, 3, vit_->shape.image, vit_->shape.image}, options_), {}};
  }

  at::Tensor hidden_states(const Batch& batch) override {
    ModuleScope scope(*vit_);
    at::Tensor x = vit_->patches(batch.input);  // (B, T - 1, C)
    x = at::cat({vit_->class_token.expand({x.size(0), -1, -1}), x}, 1);
    x = encode(x);
    return x.select(1, 0);  // the class token: (B, C)
  }

  LossReduction loss_reduction() const override { return LossReduction::kSum; }
  // "loss = model(x); loss.sum().backward()", as the tutorial trains it.
  at::Tensor loss(at::Tensor hidden_states, const Batch& batch) override {
    ModuleScope scope(*vit_);
    const at::Tensor logits = vit_->head->forward(hidden_states);
    hidden_states.reset();  // torchvision's local variable `x` is the logits by now
    return logits.sum();
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  std::vector<std::string> block_paths() const override {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < vit_->encoder->blocks.size(); ++i)
      paths.push_back("encoder.layers.encoder_layer_" + std::to_string(i));
    return paths;
  }

  std::vector<NamedLinear> linears() override {
    std::vector<NamedLinear> linears;
    for (std::size_t i = 0; i < vit_->encoder->blocks.size(); ++i) {
      const std::string path = "encoder.layers.encoder_layer_" + std::to_string(i) + ".mlp.";
      const MlpBlock& mlp = *vit_->encoder->blocks[i]->mlp;
      linears.push_back({"mlp", path + "0", mlp.first.get()});
      linears.push_back({"mlp", path + "3", mlp.second.get()});
    }
    linears.push_back({"output", "heads.head", vit_->head.get()});
    return linears;
  }

  std::string why_no_linear(const std::string& part) const override {
    return "its attention weights are packed in one matrix (in_proj_weight), which has no " + part +
           " layer";
  }

 private:
  at::Tensor encode(const at::Tensor& input) {
    const Encoder& encoder = *vit_->encoder;
    ModuleScope scope(encoder);
    // torchvision's local variable `input` holds the sum until the encoder is through, whether
    // autograd needs it or not.
    const at::Tensor embedded = input + encoder.pos_embedding;
    at::Tensor x = at::dropout(embedded, 0.0, true);
    for (std::size_t i = 0; i < encoder.blocks.size(); ++i) {
      const EncoderBlock* block = encoder.blocks[i].get();
      const TensorFunction function = [this, block](const std::vector<at::Tensor>& in) {
        return block->forward(*this, in[0]);
      };
      x = run_block(i, function, {x});
    }
    return encoder.ln->forward(x);
  }

  at::TensorOptions options_;
  std::shared_ptr<VisionTransformer> vit_;
};

std::unique_ptr<Model> make(const ModelContext& context) { return std::make_unique<Vit>(context); }

}  // namespace
}  // namespace peakbench::vit

PEAKBENCH_MODEL_PLUGIN(peakbench::vit::make)
