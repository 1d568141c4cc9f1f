// MeZO: training without backward, in the memory of inference.
//
// https://arxiv.org/abs/2305.17333, algorithm 1, as https://github.com/princeton-nlp/MeZO has it:
// the direction z of a step is never kept, but drawn again from the step's seed each time that it
// is needed. Here the projected gradient stays a tensor on the device, so that nothing is read
// back. An example of a StepRunner that runs forward alone and changes the parameters itself.
#include <ATen/ATen.h>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace {

using peakbench::Parameter;

struct MezoOptions {
  double lr, eps;
  std::int64_t seed;
};

// Calls `use` with each trained parameter and its part of the direction: z ~ N(0, 1), of the
// parameter's shape, dtype and device. One part is there at a time. The same for a seed, and apart
// from the generators that the model's dropout draws from.
template <typename Use>
void along(const std::vector<Parameter>& parameters, std::int64_t seed, Use&& use) {
  const at::Device device = parameters.front().tensor.device();
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(static_cast<std::uint64_t>(seed));
  for (const Parameter& parameter : parameters) {
    const at::Tensor& weight = parameter.tensor;
    if (!weight.requires_grad()) continue;
    at::Tensor z = at::normal(0.0, 1.0, weight.sizes(), generator,
                              at::TensorOptions(weight.dtype()).device(weight.device()));
    use(weight, z);
  }
}

class TwoForwards : public peakbench::StepRunner {
 public:
  explicit TwoForwards(MezoOptions options) : options_(options) {}

  at::Tensor run(peakbench::Training& training, peakbench::Passes& passes,
                 std::int64_t step) override {
    const at::NoGradGuard no_grad;
    const auto& parameters = training.parameters();
    const std::int64_t seed = options_.seed + step;
    move(parameters, seed, options_.eps);
    const at::Tensor up = passes.forward(/*grad=*/false, {.last = false});
    move(parameters, seed, -2 * options_.eps);
    const at::Tensor down = passes.forward(/*grad=*/false);
    move(parameters, seed, options_.eps);
    at::Tensor projected = up - down;
    projected.div_(2 * options_.eps);
    update(parameters, seed, projected);
    training.count_update();
    return up;
  }

 private:
  static void move(const std::vector<Parameter>& parameters, std::int64_t seed, double by) {
    along(parameters, seed, [&](const at::Tensor& weight, at::Tensor& z) { weight.add_(z, by); });
  }

  // projected: the loss's slope along the direction, a scalar on the device.
  void update(const std::vector<Parameter>& parameters, std::int64_t seed,
              const at::Tensor& projected) const {
    const peakbench::UpdateScope scope;
    along(parameters, seed, [&](const at::Tensor& weight, at::Tensor& z) {
      z.mul_(projected);
      weight.sub_(z, options_.lr);
    });
  }

  MezoOptions options_;
};

class Mezo : public peakbench::Strategy {
 public:
  explicit Mezo(const peakbench::Options& options)
      : options_{.lr = options.number("lr"),
                 .eps = options.number("eps"),
                 .seed = options.integer("seed")} {}

  void apply(peakbench::Recipe& recipe, peakbench::Model&) override {
    recipe.step_runner = std::make_shared<TwoForwards>(options_);
  }

 private:
  MezoOptions options_;
};

std::unique_ptr<peakbench::Strategy> make(const peakbench::StrategyContext& context) {
  return std::make_unique<Mezo>(context.options);
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(make)
