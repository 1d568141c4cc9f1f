// vit-h-14, vit-l-16 and vit-b-16: torchvision's VisionTransformer as a module tree, with the same
// names and the same order of parameters. Source: torchvision/models/vision_transformer.py.
#include <ATen/ATen.h>

#include <cmath>

#include "peakbench/nn.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::vit {
namespace {

constexpr double kLayerNormEps = 1e-6;  // torchvision's, not torch.nn's default

// torch.nn.init.xavier_uniform_ for a (out, in) matrix.
void xavier_uniform(at::Tensor& weight) {
  const double bound = std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1)));
  at::NoGradGuard no_grad;
  weight.uniform_(-bound, bound);
}

// q, k and v from one product, made contiguous together. x: (T, B, C) -> (3, T, B, C)
at::Tensor packed_projection(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias) {
  const std::int64_t width = x.size(-1);
  at::Tensor projection = at::linear(x, weight, bias);  // (T, B, 3 C)
  projection =
      projection.unflatten(-1, {3, width}).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous();
  return projection;
}

// Multi-head self-attention with packed projections, as torch.nn.MultiheadAttention runs it for
// torchvision (batch_first, need_weights off). Source: torch/nn/functional.py,
// multi_head_attention_forward.
//
// in_proj_weight: (3 C, C), in_proj_bias: (3 C), out_proj: Linear(C, C).
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(std::int64_t width, std::int64_t heads, const at::TensorOptions& options)
      : width_(width), heads_(heads) {
    in_proj_weight = register_parameter("in_proj_weight", at::empty({3 * width, width}, options));
    in_proj_bias = register_parameter("in_proj_bias", at::zeros({3 * width}, options));
    out_proj =
        register_module("out_proj", std::make_shared<nn::Linear>(width, width, true, options));
  }
  // (B, T, C) -> (B, T, C)
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    const at::Tensor x = input.transpose(1, 0);  // (T, B, C)
    const std::int64_t length = x.size(0), batch = x.size(1), head = width_ / heads_;

    at::Tensor q, k, v;
    {
      const at::Tensor packed = packed_projection(x, in_proj_weight, in_proj_bias);
      q = packed[0];
      k = packed[1];
      v = packed[2];
    }
    const auto by_head = [&](const at::Tensor& t) {
      return t.view({length, batch * heads_, head})
          .transpose(0, 1)
          .view({batch, heads_, length, head});
    };
    q = by_head(q);
    k = by_head(k);
    v = by_head(v);
    at::Tensor output = at::scaled_dot_product_attention(q, k, v);  // (B, H, T, C / H)
    output = output.permute({2, 0, 1, 3}).contiguous().view({batch * length, width_});
    // The projection runs as a function of its weight, not through the submodule, as in torch.
    output = at::linear(output, out_proj->weight, out_proj->bias);
    return output.view({length, batch, output.size(1)}).transpose(1, 0);
  }

  at::Tensor in_proj_weight, in_proj_bias;
  std::shared_ptr<nn::Linear> out_proj;

 private:
  std::int64_t width_, heads_;
};

// torchvision's MLPBlock: Sequential of Linear "0", GELU, Linear "3".
class MlpBlock : public torch::nn::Module {
 public:
  MlpBlock(std::int64_t width, std::int64_t inner, const at::TensorOptions& options) {
    first = register_module("0", std::make_shared<nn::Linear>(width, inner, true, options));
    second = register_module("3", std::make_shared<nn::Linear>(inner, width, true, options));
    at::NoGradGuard no_grad;
    for (const auto& linear : {first, second}) {
      xavier_uniform(linear->weight);
      linear->bias.normal_(0, 1e-6);
    }
  }
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor x = first->forward(input);  // (B, T, inner)
    x = at::gelu(x);
    x = at::dropout(x, 0.0, true);
    x = second->forward(x);  // (B, T, C)
    return at::dropout(x, 0.0, true);
  }
  std::shared_ptr<nn::Linear> first, second;
};

struct EncoderShape {
  std::int64_t layers, width, heads, mlp, tokens;
};

class EncoderBlock : public torch::nn::Module {
 public:
  EncoderBlock(const EncoderShape& shape, const at::TensorOptions& options) {
    ln_1 = register_module("ln_1",
                           std::make_shared<nn::LayerNorm>(shape.width, kLayerNormEps, options));
    self_attention = register_module(
        "self_attention", std::make_shared<SelfAttention>(shape.width, shape.heads, options));
    ln_2 = register_module("ln_2",
                           std::make_shared<nn::LayerNorm>(shape.width, kLayerNormEps, options));
    mlp = register_module("mlp", std::make_shared<MlpBlock>(shape.width, shape.mlp, options));
    at::NoGradGuard no_grad;
    xavier_uniform(self_attention->in_proj_weight);
    const double bound =
        1.0 /
        std::sqrt(static_cast<double>(shape.width));  // nn.Linear's kaiming_uniform(a=sqrt(5))
    self_attention->out_proj->weight.uniform_(-bound, bound);
    self_attention->out_proj->bias.zero_();
  }
  // input: (B, T, C) -> (B, T, C). Attention and MLP run as the model's parts.
  at::Tensor forward(Model& model, const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor x = ln_1->forward(input);
    x = model.run_part("attention",
                       [attention = self_attention.get()](const std::vector<at::Tensor>& in) {
                         return attention->forward(in[0]);
                       },
                       {x});
    x = at::dropout(x, 0.0, true);
    x = x + input;

    at::Tensor y = ln_2->forward(x);
    y = model.run_part(
        "mlp",
        [inner = mlp.get()](const std::vector<at::Tensor>& in) { return inner->forward(in[0]); },
        {y});
    return x + y;
  }

  std::shared_ptr<nn::LayerNorm> ln_1;
  std::shared_ptr<SelfAttention> self_attention;
  std::shared_ptr<nn::LayerNorm> ln_2;
  std::shared_ptr<MlpBlock> mlp;
};

// Blocks of attention and MLP with residuals, then a LayerNorm.
// Holds the blocks under the name "layers.encoder_layer_i".
class Encoder : public torch::nn::Module {
 public:
  Encoder(const EncoderShape& shape, const at::TensorOptions& options) {
    pos_embedding =
        register_parameter("pos_embedding", at::empty({1, shape.tokens, shape.width}, options));
    // nn.Sequential without a forward of its own: the encoder runs the blocks.
    auto layers = register_module("layers", std::make_shared<torch::nn::Module>());
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks.push_back(layers->register_module("encoder_layer_" + std::to_string(i),
                                               std::make_shared<EncoderBlock>(shape, options)));
    }
    ln =
        register_module("ln", std::make_shared<nn::LayerNorm>(shape.width, kLayerNormEps, options));
    at::NoGradGuard no_grad;
    pos_embedding.normal_(0, 0.02);
  }

  at::Tensor pos_embedding;  // (1, T, C)
  std::vector<std::shared_ptr<EncoderBlock>> blocks;
  std::shared_ptr<nn::LayerNorm> ln;
};

struct VitShape {
  EncoderShape encoder;
  std::int64_t image, patch, classes = 1000;
};

class VisionTransformer : public torch::nn::Module {
 public:
  VisionTransformer(const VitShape& s, const at::TensorOptions& options) : shape(s) {
    const std::int64_t width = shape.encoder.width;
    class_token = register_parameter("class_token", at::zeros({1, 1, width}, options));
    conv_proj = register_module(
        "conv_proj", std::make_shared<nn::Conv2d>(3, width, shape.patch, shape.patch, options));
    encoder = register_module("encoder", std::make_shared<Encoder>(shape.encoder, options));
    auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
    head = heads->register_module(
        "head", std::make_shared<nn::Linear>(width, shape.classes, true, options));

    at::NoGradGuard no_grad;
    const double fan_in = 3.0 * static_cast<double>(shape.patch * shape.patch);
    conv_proj->weight.normal_(
        0, std::sqrt(1.0 / fan_in));  // torchvision cuts it at two; the memory is the same
    conv_proj->bias.zero_();
    // torchvision's head starts at zero, and then no gradient reaches the encoder in the first
    // step. A small one keeps every step of a comparison meaningful.
    head->weight.normal_(0, 0.02);
    head->bias.zero_();
  }
  // (B, 3, H, W) -> (B, T - 1, C)
  at::Tensor patches(const at::Tensor& images) const {
    const std::int64_t batch = images.size(0), side = images.size(2) / shape.patch;
    at::Tensor x = conv_proj->forward(images);  // (B, C, side, side)
    x = x.reshape({batch, shape.encoder.width, side * side});
    return x.permute({0, 2, 1});
  }

  VitShape shape;
  at::Tensor class_token;  // (1, 1, C)
  std::shared_ptr<nn::Conv2d> conv_proj;
  std::shared_ptr<Encoder> encoder;
  std::shared_ptr<nn::Linear> head;
};

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
