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

using namespace peakbench;

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

class TwoForwards : public StepRunner {
 public:
  explicit TwoForwards(const Options& options)
      : lr_(options.number("lr")), eps_(options.number("eps")), seed_(options.integer("seed")) {}

  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    const at::NoGradGuard no_grad;
    const auto& parameters = training.parameters();
    const std::int64_t seed = seed_ + step;
    move(parameters, seed, eps_);
    const at::Tensor up = passes.forward(/*grad=*/false, {.last = false});
    move(parameters, seed, -2 * eps_);
    const at::Tensor down = passes.forward(/*grad=*/false);
    move(parameters, seed, eps_);
    at::Tensor projected = up - down;
    projected.div_(2 * eps_);
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
    const UpdateScope scope;
    along(parameters, seed, [&](const at::Tensor& weight, at::Tensor& z) {
      z.mul_(projected);
      weight.sub_(z, lr_);
    });
  }

  double lr_, eps_;
  std::int64_t seed_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.step_runner = std::make_shared<TwoForwards>(context.options);
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
