// LoRA as peft does it: adapters beside linear layers, everything else frozen.
#include <unordered_set>

#include "low_rank_adapter.h"
#include "peakbench/plugin.h"
#include "targets.h"

namespace peakbench::lora {
namespace {

struct LoraOptions {
  AdapterShape shape;
  std::string targets;
  bool in_model_dtype;

  explicit LoraOptions(const Options& options)
      : shape{.rank = options.integer("rank"),
              .scaling = options.number("alpha") / static_cast<double>(options.integer("rank"))},
        targets(options.string("targets")),
        in_model_dtype(options.string("adapter_dtype") == "model") {}
};

class AddAdapters : public ModelTransform {
 public:
  explicit AddAdapters(LoraOptions options) : options_(std::move(options)) {}

  void apply(Model& model) override {
    for (const NamedLinear& target : target_layers(model, options_.targets)) {
      nn::Linear& base = *target.layer;
      const auto dtype = options_.in_model_dtype ? base.weight.scalar_type() : at::kFloat;
      const auto adapter = std::make_shared<LowRankAdapter>(base, options_.shape, dtype);
      for (const at::Tensor& parameter : adapter->parameters()) {
        trained_.insert(parameter.unsafeGetTensorImpl());
      }
      base.attach("lora", adapter);
    }
  }

  bool trains(const Parameter& parameter) const {
    return trained_.contains(parameter.tensor.unsafeGetTensorImpl());
  }

 private:
  LoraOptions options_;
  std::unordered_set<const at::TensorImpl*> trained_;
};

class Lora : public Strategy {
 public:
  explicit Lora(const Options& options) : options_(options) {}

  void apply(Recipe& recipe, Model& model) override {
    const auto adapters = std::make_shared<AddAdapters>(options_);
    recipe.adapters = adapters;
    recipe.freezing.push_back(
        [adapters](const Parameter& parameter) { return !adapters->trains(parameter); });
  }

 private:
  LoraOptions options_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Lora>(context.options);
}

}  // namespace
}  // namespace peakbench::lora

PEAKBENCH_STRATEGY_PLUGIN(peakbench::lora::make)
