#include "linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <bit>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace peakbench::linear_cross_entropy {
namespace {

namespace autograd = torch::autograd;

std::int64_t ceil_divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// What a forward over all chunks makes. Gradients are undefined where nobody needs them.
struct Accumulated {
  at::Tensor loss;                  // ()
  at::Tensor hidden, weight, bias;  // (N, C), (V, C), (V)
};

// Targets with what each counts for.
struct Targets {
  at::Tensor labels;  // (n), 0 where ignored
  at::Tensor shares;  // (n), 1 / count, 0 where ignored
};

Targets targets_of(const at::Tensor& targets, std::int64_t ignore_index, at::ScalarType dtype) {
  const at::Tensor ignored = targets.eq(ignore_index);
  const at::Tensor counting = ignored.logical_not();
  const at::Tensor labels = targets.masked_fill(ignored, 0);
  const at::Tensor shares = counting.to(dtype);
  return {labels, shares / counting.sum()};
}

// From logits (n, V), which it takes, to their gradient in their dtype; adds to the loss.
at::Tensor gradient_of_logits(at::Tensor logits, const Targets& targets, at::ScalarType loss_dtype,
                              at::Tensor& loss) {
  const at::ScalarType dtype = logits.scalar_type();
  logits = logits.to(loss_dtype);
  at::Tensor p = at::log_softmax(logits, -1);
  logits.reset();
  const at::Tensor labels = targets.labels.unsqueeze(1);  // (n, 1)
  const at::Tensor shares = targets.shares.unsqueeze(1);
  loss.sub_((p.gather(1, labels) * shares).sum());
  p.exp_();
  p.mul_(shares);
  p.scatter_add_(1, labels, -shares);
  return p.to(dtype);
}

void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type())
    sum.addmm_(a, b);
  else
    sum.add_(a.mm(b));  // autocast's dtype into the parameter's
}

// hidden: (n, C); weight: (V, C)
void one_chunk(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
               const Targets& targets, at::ScalarType loss_dtype, at::Tensor hidden_gradient,
               Accumulated& sums) {
  const at::Tensor gradient =
      gradient_of_logits(at::linear(hidden, weight, bias), targets, loss_dtype, sums.loss);
  if (hidden_gradient.defined()) at::mm_out(hidden_gradient, gradient, weight);
  if (sums.weight.defined()) add_product(sums.weight, gradient.t(), hidden);
  if (sums.bias.defined()) sums.bias.add_(gradient.sum(0));
}

at::Tensor zeros_if_needed(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? at::zeros_like(tensor) : at::Tensor();
}

struct FusedLoss : autograd::Function<FusedLoss> {
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& hidden_states,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            const at::Tensor& all_targets, std::int64_t ignore_index,
                            at::ScalarType loss_dtype, std::int64_t chunk_tokens) {
    const auto device = weight.device().type();
    const bool autocast = at::autocast::is_autocast_enabled(device);
    const at::ScalarType dtype =
        autocast ? at::autocast::get_autocast_dtype(device) : weight.scalar_type();
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);

    const at::Tensor hidden = hidden_states.reshape({-1, hidden_states.size(-1)}).to(dtype);
    const at::Tensor multiplied = weight.to(dtype);
    const at::Tensor added = bias ? bias->to(dtype) : at::Tensor();
    const Targets targets = targets_of(all_targets.reshape(-1), ignore_index, loss_dtype);

    Accumulated sums;
    sums.loss = at::zeros({}, weight.options().dtype(loss_dtype));
    sums.weight = zeros_if_needed(weight);
    sums.bias = zeros_if_needed(bias.value_or(at::Tensor()));
    if (hidden_states.requires_grad()) sums.hidden = at::empty_like(hidden);
    const std::int64_t tokens = hidden.size(0);
    for (std::int64_t start = 0; start < tokens; start += chunk_tokens) {
      const std::int64_t length = std::min(chunk_tokens, tokens - start);
      const auto part = [&](const at::Tensor& of) {
        return of.defined() ? of.narrow(0, start, length) : of;
      };
      one_chunk(part(hidden), multiplied, added, {part(targets.labels), part(targets.shares)},
                loss_dtype, part(sums.hidden), sums);
    }
    if (sums.hidden.defined())
      sums.hidden = sums.hidden.to(hidden_states.scalar_type()).view(hidden_states.sizes());
    context->save_for_backward({sums.hidden, sums.weight, sums.bias});
    return sums.loss;
  }

  // The loss is the last operator: what comes in is one, or a loss scale.
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          const autograd::variable_list& gradients) {
    autograd::variable_list saved = context->get_saved_variables();
    for (at::Tensor& gradient : saved)
      if (gradient.defined()) gradient.mul_(gradients[0]);
    saved.resize(7);  // neither targets nor numbers have a gradient
    return saved;
  }
};

}  // namespace

std::int64_t tokens_of_a_chunk(std::int64_t tokens, std::int64_t width, std::int64_t vocabulary) {
  const auto wanted = ceil_divided(tokens, ceil_divided(vocabulary, width));
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
}

at::Tensor fused_loss(const OutputHead& head, const at::Tensor& hidden_states,
                      const at::Tensor& targets, std::int64_t chunk_tokens) {
  if (chunk_tokens == 0)
    chunk_tokens = tokens_of_a_chunk(targets.numel(), hidden_states.size(-1), head.weight.size(0));
  const auto bias = head.bias.defined() ? std::optional(head.bias) : std::nullopt;
  return FusedLoss::apply(hidden_states, head.weight, bias, targets, head.ignore_index,
                          head.loss_dtype, chunk_tokens);
}

// Cross entropy fused with the linear layer before it: no logits are kept.

namespace {

class FusedHead : public LossHead {
 public:
  explicit FusedHead(std::int64_t chunk_tokens) : chunk_tokens_(chunk_tokens) {}

  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    ModuleScope scope(model.module());
    const OutputHead head = model.output_head().value();
    if (const std::string why = head.why_not_plain(); !why.empty())
      throw Unsupported("linear-cross-entropy multiplies by the output head's weight itself, and " +
                        why + "; chunked-cross-entropy goes through the layer");
    return fused_loss(head, hidden_states, head.targets(batch.target), chunk_tokens_);
  }

 private:
  std::int64_t chunk_tokens_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.loss_head = std::make_shared<FusedHead>(context.options.integer("chunk_tokens"));
}

}  // namespace
}  // namespace peakbench::linear_cross_entropy

PEAKBENCH_STRATEGY_PLUGIN(peakbench::linear_cross_entropy::apply)
