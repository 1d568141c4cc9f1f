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

#include "moment.h"
#include "peakbench/plugin.h"
#include "peakbench/state_map.h"
#include "quantisation_map.h"

namespace peakbench::adamw_low_bit {
namespace {

constexpr std::int64_t kValuesAtOnce = 1 << 20;  // a multiple of every block size
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;

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
