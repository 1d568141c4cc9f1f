// AdamW with its moments in 8 or 4 bits a value, as torchao 0.18 lays them out (torchao/optim:
// AdamW8bit, AdamW4bit): what is kept has the same bytes. Computed in float32, one parameter at a
// time. Sources: "8-bit Optimizers via Block-wise Quantization", https://arxiv.org/abs/2110.02861;
// "Memory Efficient Optimizers with 4-bit States", https://arxiv.org/abs/2309.01507
//
// torchao compiles its update into one kernel. Here it is plain operators over at most
// kValuesAtOnce values at a time, so that its temporaries are 33 bytes times that at most, however
// large a parameter is.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peakbench/plugin.h"
#include "peakbench/state_map.h"
#include "quantisation_map.h"

namespace peakbench::adamw_low_bit {
namespace {

constexpr std::int64_t kLeastQuantised = 4096;   // torchao's, and bitsandbytes'
constexpr std::int64_t kValuesAtOnce = 1 << 20;  // a multiple of every block size
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;

// How a moment is quantised: in blocks of consecutive values that share a scale.
struct Quantisation {
  int bits = 8;                   // 8, or 4: two codes in a byte
  std::int64_t block_size = 256;  // values
  std::vector<float> map;         // 2^bits, ascending: what a code stands for
};

// A moment of Adam's as it is kept between steps: in few bits a value, or as a tensor where a
// parameter is too small for that to pay. The values of one parameter, flattened. Ranges begin and
// end at a block's bounds (or at the end).
class Moment {
 public:
  virtual ~Moment() = default;
  // (end - begin) values in float32, a copy.
  virtual at::Tensor read(std::int64_t begin, std::int64_t end) const = 0;
  // values: float32, to `begin` and what follows.
  virtual void write(std::int64_t begin, const at::Tensor& values) = 0;
  // Every tensor of it, with what distinguishes it: "", or ".codes", ".scale", ".qmap".
  using Visitor = std::function<void(const std::string& suffix, at::Tensor& tensor)>;
  virtual void visit(const Visitor& visit) = 0;
};

class PlainMoment : public Moment {
 public:
  explicit PlainMoment(const at::Tensor& parameter)
      : values_(at::zeros_like(parameter, at::MemoryFormat::Contiguous)) {}
  at::Tensor read(std::int64_t begin, std::int64_t end) const override {
    return values_.view(-1).slice(0, begin, end).to(at::kFloat, false, /*copy=*/true);
  }
  void write(std::int64_t begin, const at::Tensor& values) override {
    values_.view(-1).slice(0, begin, begin + values.numel()).copy_(values);
  }
  void visit(const Visitor& visit) override { visit("", values_); }

 private:
  at::Tensor values_;
};

// The code whose value is nearest, for values in [-1, 1]. int32
at::Tensor nearest_codes(const at::Tensor& values, const at::Tensor& map) {
  const std::int64_t last = map.size(0) - 1;
  const at::Tensor below = at::bucketize(values, map.slice(0, 1), /*out_int32=*/true,
                                         /*right=*/true);
  const at::Tensor above = below.add(1).clamp_max_(last);
  const at::Tensor value_below = map.index_select(0, below);
  at::Tensor gap = map.index_select(0, above);
  gap.sub_(value_below).mul_(0.5);
  const at::Tensor is_above = values.sub(value_below).ge(gap);
  return at::where(is_above, above, below);
}

class QuantisedMoment : public Moment {
 public:
  QuantisedMoment(const at::Tensor& parameter, const Quantisation& quantisation)
      : bits_(quantisation.bits), block_size_(quantisation.block_size) {
    const at::TensorOptions options = parameter.options();
    codes_ = at::zeros({bytes(parameter.numel())}, options.dtype(at::kByte));
    scale_ = at::zeros({parameter.numel() / block_size_}, options.dtype(at::kFloat));
    map_ = at::tensor(quantisation.map, options.dtype(at::kFloat));
  }

  at::Tensor read(std::int64_t begin, std::int64_t end) const override {
    at::Tensor codes = codes_.slice(0, bytes(begin), bytes(end));
    if (bits_ == 4) codes = at::stack({codes.bitwise_right_shift(4), codes.bitwise_and(15)}, -1);
    codes = codes.view(-1).to(at::kInt);
    at::Tensor values = map_.index_select(0, codes);
    values.view({-1, block_size_}).mul_(scales(begin, end));
    return values;
  }

  void write(std::int64_t begin, const at::Tensor& values) override {
    const std::int64_t end = begin + values.numel();
    const at::Tensor blocks = values.view({-1, block_size_});
    at::Tensor scale = scales(begin, end);
    scale.copy_(blocks.abs().amax(-1, /*keepdim=*/true).clamp_min_(1e-12));
    at::Tensor codes = nearest_codes(blocks.div(scale).view(-1), map_).to(at::kByte);
    if (bits_ == 4) codes = packed(codes);
    codes_.slice(0, bytes(begin), bytes(end)).copy_(codes);
  }

  void visit(const Visitor& visit) override {
    visit(".codes", codes_);
    visit(".scale", scale_);
    visit(".qmap", map_);
  }

 private:
  std::int64_t bytes(std::int64_t values) const { return values * bits_ / 8; }
  // (blocks, 1)
  at::Tensor scales(std::int64_t begin, std::int64_t end) const {
    return scale_.slice(0, begin / block_size_, end / block_size_).unsqueeze(1);
  }
  static at::Tensor packed(const at::Tensor& codes) {
    const at::Tensor high = codes.slice(0, 0, codes.numel(), 2).bitwise_left_shift(4);
    return high.bitwise_or(codes.slice(0, 1, codes.numel(), 2));
  }

  int bits_;
  std::int64_t block_size_;
  at::Tensor codes_, scale_, map_;
};

// All zero. Fewer than 4096 values, or a number that is no multiple of the block size, are kept as
// a tensor of the parameter's dtype; more are quantised, which takes numel * bits / 8 bytes for
// codes, 4 a block for scales, and 4 * 2^bits for the map.
std::unique_ptr<Moment> make_moment(const at::Tensor& parameter, const Quantisation& quantisation) {
  const std::int64_t values = parameter.numel();
  if (values < kLeastQuantised || values % quantisation.block_size != 0)
    return std::make_unique<PlainMoment>(parameter);
  return std::make_unique<QuantisedMoment>(parameter, quantisation);
}

struct State {
  at::Tensor step;  // float32 scalar on the CPU
  std::unique_ptr<Moment> exp_avg, exp_avg_sq;
};

class AdamWLowBit : public UpdateRule {
 public:
  AdamWLowBit(int bits, const Options& options)
      : lr_(options.number("lr")),
        weight_decay_(options.number("weight_decay")),
        exp_avg_sq_{bits, std::stoll(options.string("block_size")),
                    bits == 4 ? linear_map() : dynamic_map(/*is_signed=*/false, bits)},
        exp_avg_{bits, exp_avg_sq_.block_size, dynamic_map(/*is_signed=*/true, bits)} {}

  // One parameter at a time for kForeach, too.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kFused)
      throw Unsupported("the fused kernel reads moments as tensors; here they are quantised");
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      State& state = states_.of(parameter, [&] {
        return State{at::scalar_tensor(0.0, at::kFloat), make_moment(parameter, exp_avg_),
                     make_moment(parameter, exp_avg_sq_)};
      });
      update_one(parameter, state);
    }
  }

  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, state] : states_) {
      visit(parameter, "step", state.step);
      for (const auto& [name, moment] : {std::pair("exp_avg", state.exp_avg.get()),
                                         std::pair("exp_avg_sq", state.exp_avg_sq.get())})
        moment->visit([&, name = std::string(name)](const std::string& suffix, at::Tensor& tensor) {
          visit(parameter, name + suffix, tensor);
        });
    }
  }

  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  void update_one(const at::Tensor& parameter, State& state) {
    state.step.add_(1);
    const double step = state.step.item<double>();
    // Blocks go by the order of a contiguous tensor: one in another format (channels_last) is
    // copied.
    const at::Tensor values = parameter.reshape(-1), gradient = parameter.grad().reshape(-1);
    for (std::int64_t begin = 0; begin < values.numel(); begin += kValuesAtOnce) {
      const std::int64_t end = std::min(begin + kValuesAtOnce, values.numel());
      update_part(values.slice(0, begin, end), gradient.slice(0, begin, end), begin, step, state);
    }
    if (!parameter.is_contiguous()) parameter.copy_(values.view(parameter.sizes()));
  }

  // Values [begin, begin + parameter.numel()) of a parameter.
  void update_part(at::Tensor parameter, const at::Tensor& gradient_part, std::int64_t begin,
                   double step, State& state) const {
    const std::int64_t end = begin + parameter.numel();
    at::Tensor gradient = gradient_part.to(at::kFloat);
    at::Tensor exp_avg = state.exp_avg->read(begin, end);
    exp_avg.lerp_(gradient, 1 - kBeta1);
    state.exp_avg->write(begin, exp_avg);
    at::Tensor denominator = state.exp_avg_sq->read(begin, end);
    denominator.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    gradient.reset();
    state.exp_avg_sq->write(begin, denominator);
    // From what was computed, not from what is kept of it.
    const double bias_correction1 = 1 - std::pow(kBeta1, step);
    const double bias_correction2 = 1 - std::pow(kBeta2, step);
    denominator.sqrt_().div_(std::sqrt(bias_correction2)).add_(kEps);
    at::Tensor updated = parameter.to(at::kFloat);  // the parameter itself where that is its dtype
    updated.mul_(1 - lr_ * weight_decay_);
    updated.addcdiv_(exp_avg, denominator, -(lr_ / bias_correction1));
    parameter.copy_(updated);
  }

  double lr_;
  double weight_decay_;                // decoupled
  Quantisation exp_avg_sq_, exp_avg_;  // exp_avg has a sign, exp_avg_sq none
  StateMap<State> states_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule =
      std::make_shared<AdamWLowBit>(context.id == "adamw-4bit" ? 4 : 8, context.options);
}

}  // namespace
}  // namespace peakbench::adamw_low_bit

PEAKBENCH_STRATEGY_PLUGIN(peakbench::adamw_low_bit::apply)
