// QLoRA's base weights: the frozen linear layers in four bits a value. Adapters are another
// strategy.
#include "nf4_weight.h"
#include "peakbench/plugin.h"

namespace peakbench::qlora {
namespace {

// All but the output head, as QLoRA leaves it.
class QuantiseLinears : public ModelTransform {
 public:
  explicit QuantiseLinears(bool double_quantisation) : double_quantisation_(double_quantisation) {}

  void apply(Model& model) override {
    bool any = false;
    for (const NamedLinear& linear : model.linears()) {
      if (linear.part == "output") continue;
      quantise(linear);
      any = true;
    }
    if (!any) throw Unsupported("this model has no linear layer but its output head");
  }

 private:
  // One layer after the other: only one is there in both forms.
  void quantise(const NamedLinear& linear) const {
    nn::LinearLayer& layer = *linear.layer;
    const std::int64_t values = layer.in_features() * layer.out_features();
    if (values % kBlock != 0)
      throw Unsupported(linear.path + " has " + std::to_string(values) +
                        " weights, which are no whole blocks of " + std::to_string(kBlock));
    layer.replace_weight(std::make_shared<Nf4Weight>(layer, double_quantisation_));
  }

  bool double_quantisation_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.base_weights = std::make_shared<QuantiseLinears>(context.options.boolean("double_quant"));
}

}  // namespace
}  // namespace peakbench::qlora

PEAKBENCH_STRATEGY_PLUGIN(peakbench::qlora::apply)
