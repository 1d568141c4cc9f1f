// LoRA and DoRA as peft does them: adapters beside linear layers, everything else frozen.
#include <cmath>
#include <unordered_set>

#include "dora_adapter.h"
#include "low_rank_adapter.h"
#include "peakbench/linear_parts.h"
#include "peakbench/plugin.h"

namespace peakbench::lora {
namespace {

struct LoraOptions {
  bool with_magnitude;
  std::int64_t rank;
  double alpha, dropout;
  bool rank_stabilised;
  std::string targets;
  bool in_model_dtype;

  LoraOptions(const std::string& id, const Options& options)
      : with_magnitude(id == "dora"),
        rank(options.integer("rank")),
        alpha(options.number("alpha")),
        dropout(with_magnitude ? 0 : options.number("dropout")),
        rank_stabilised(options.boolean("rslora")),
        targets(options.string("targets")),
        in_model_dtype(options.string("adapter_dtype") == "model") {}

  AdapterShape shape(std::optional<std::int64_t> own_rank) const {
    const std::int64_t used = own_rank.value_or(rank);
    const double size = static_cast<double>(used);
    return {used, alpha / (rank_stabilised ? std::sqrt(size) : size), dropout};
  }
  at::ScalarType dtype(const nn::LinearLayer& base) const {
    return in_model_dtype ? c10::typeMetaToScalarType(base.options().dtype()) : at::kFloat;
  }
};

std::shared_ptr<LowRankAdapter> make_adapter(const LoraOptions& options, const ChosenLinear& at) {
  const nn::LinearLayer& base = *at.linear.layer;
  const AdapterShape shape = options.shape(at.number);
  if (options.with_magnitude)
    return std::make_shared<DoraAdapter>(base, shape, options.dtype(base));
  return std::make_shared<LowRankAdapter>(base, shape, options.dtype(base));
}

class AddAdapters : public ModelTransform {
 public:
  explicit AddAdapters(const StrategyContext& context) : options_(context.id, context.options) {}

  void apply(Model& model) override {
    for (const ChosenLinear& chosen : choose_linears(model, options_.targets, kAttentionOrMlp)) {
      const auto adapter = make_adapter(options_, chosen);
      for (const at::Tensor& parameter : adapter->parameters())
        trained_.insert(parameter.unsafeGetTensorImpl());
      chosen.linear.layer->attach("lora", adapter);
    }
  }

  bool trains(const Parameter& parameter) const {
    return trained_.contains(parameter.tensor.unsafeGetTensorImpl());
  }

 private:
  LoraOptions options_;
  std::unordered_set<const at::TensorImpl*> trained_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const auto adapters = std::make_shared<AddAdapters>(context);
  recipe.adapters = adapters;
  recipe.freezing.push_back(
      [adapters](const Parameter& parameter) { return !adapters->trains(parameter); });
}

}  // namespace
}  // namespace peakbench::lora

PEAKBENCH_STRATEGY_PLUGIN(peakbench::lora::apply)
