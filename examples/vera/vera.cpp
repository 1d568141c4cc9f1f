// An adapter from outside: VeRA, https://arxiv.org/abs/2310.11454, with the operators and lifetimes
// of peft 0.21.2 (peft/tuners/vera/layer.py, class Linear). What all adapters share is a buffer of
// each.
#include <ATen/ATen.h>

#include <cmath>
#include <unordered_set>

#include "peakbench/linear_parts.h"
#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// Random and never trained: a (rank, largest in) and b (largest out, rank), in fp32. A layer uses
// the first columns of a and the first rows of b.
struct Shared {
  at::Tensor a, b;

  Shared(const std::vector<ChosenLinear>& chosen, std::int64_t rank) {
    std::int64_t in = 0, out = 0;
    for (const auto& one : chosen) {
      in = std::max(in, one.linear.layer->in_features());
      out = std::max(out, one.linear.layer->out_features());
    }
    const auto options = chosen.front().linear.layer->options().dtype(at::kFloat);
    a = kaiming_uniform(rank, in, options);
    b = kaiming_uniform(out, rank, options);
  }

 private:
  static at::Tensor kaiming_uniform(std::int64_t rows, std::int64_t columns,
                                    const at::TensorOptions& options) {
    const double bound = std::sqrt(6.0 / static_cast<double>(columns));
    return at::empty({rows, columns}, options).uniform_(-bound, bound);
  }
};

// y = base(x) + b (B (d (A x))). Parameters: b (out), zeros at first; d (rank).
class VeraAdapter : public nn::LinearAdapter {
 public:
  VeraAdapter(const nn::LinearLayer& base, const Shared& shared, double d_initial)
      : shared_a_(shared.a), shared_b_(shared.b) {
    // A plain module: peft's dictionary of what adapters have, by the adapter's name.
    const auto add = [&](const char* name) {
      return register_module(name, std::make_shared<torch::nn::Module>());
    };
    const auto options = shared.a.options();
    lambda_b_ = add("vera_lambda_b")
                    ->register_parameter("default", at::zeros({base.out_features()}, options));
    lambda_d_ =
        add("vera_lambda_d")
            ->register_parameter("default", at::full({shared.a.size(0)}, d_initial, options));
    add("vera_A")->register_buffer("default", shared_a_);
    add("vera_B")->register_buffer("default", shared_b_);
  }

  at::Tensor forward(const nn::LinearLayer& base, const at::Tensor& input) override {
    at::Tensor result = base.base_forward(input);  // (..., out)
    const at::ScalarType dtype = result.scalar_type();
    const at::Tensor a = shared_a_.narrow(1, 0, base.in_features());
    const at::Tensor b = shared_b_.narrow(0, 0, base.out_features());
    const at::Tensor x = input.to(lambda_d_.scalar_type());
    // One statement an operator: each intermediate is freed where Python frees it.
    at::Tensor update = at::linear(x, a);  // (..., rank)
    update = lambda_d_ * update;
    update = at::linear(update, b);  // (..., out)
    update = lambda_b_ * update;
    result = result + update;
    update.reset();
    return result.to(dtype);
  }

 private:
  at::Tensor shared_a_, shared_b_, lambda_b_, lambda_d_;
};

class Vera : public ModelTransform {
 public:
  explicit Vera(const Options& options)
      : rank_(options.integer("rank")),
        d_initial_(options.number("d_initial")),
        targets_(options.string("targets")) {}

  void apply(Model& model) override {
    const auto chosen = choose_linears(model, targets_, kAttentionOrMlp);
    const Shared shared(chosen, rank_);
    for (const auto& one : chosen) {
      nn::LinearLayer& layer = *one.linear.layer;
      const auto adapter = std::make_shared<VeraAdapter>(layer, shared, d_initial_);
      for (const at::Tensor& parameter : adapter->parameters())
        trained_.insert(parameter.unsafeGetTensorImpl());
      layer.attach("vera", adapter);
    }
  }

  bool trains(const Parameter& parameter) const {
    return trained_.contains(parameter.tensor.unsafeGetTensorImpl());
  }

 private:
  std::int64_t rank_;
  double d_initial_;
  std::string targets_;
  std::unordered_set<const at::TensorImpl*> trained_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const auto adapters = std::make_shared<Vera>(context.options);
  recipe.adapters = adapters;
  recipe.freezing.push_back(
      [adapters](const Parameter& parameter) { return !adapters->trains(parameter); });
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
