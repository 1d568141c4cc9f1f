// AdamW with its moments in 8 or 4 bits a value.
#include "adamw_low_bit.h"
#include "peakbench/plugin.h"
#include "quantisation_map.h"

namespace peakbench::adamw_low_bit {
namespace {

class LowBit : public Strategy {
 public:
  LowBit(int bits, const Options& options)
      : bits_(bits),
        block_size_(std::stoll(options.string("block_size"))),
        options_{.lr = options.number("lr"), .weight_decay = options.number("weight_decay")} {}

  void apply(Recipe& recipe, Model& model) override {
    const bool is_linear = bits_ == 4;
    recipe.update_rule = std::make_shared<AdamWLowBit>(
        options_, Quantisation{bits_, block_size_, dynamic_map(/*is_signed=*/true, bits_)},
        Quantisation{bits_, block_size_,
                     is_linear ? linear_map() : dynamic_map(/*is_signed=*/false, bits_)});
  }

 private:
  int bits_;
  std::int64_t block_size_;
  AdamWOptions options_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<LowBit>(context.id == "adamw-4bit" ? 4 : 8, context.options);
}

}  // namespace
}  // namespace peakbench::adamw_low_bit

PEAKBENCH_STRATEGY_PLUGIN(peakbench::adamw_low_bit::make)
