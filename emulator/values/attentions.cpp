// The fused attentions, as PyTorch's own formula computes them.
#include <stdexcept>

#include "values/differentiate.h"
#include "values/equivalent_kernels.h"

namespace peakbench::values {
namespace {

struct Attention {
  at::Tensor query, key, value;
  std::optional<at::Tensor> mask;
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale;

  at::Tensor out() const {
    return std::get<0>(at::_scaled_dot_product_attention_math(
        query, key, value, mask, dropout, causal, {}, scale, query.size(1) != key.size(1)));
  }
};

// Query, key and value come one behind the other; the others stand at other places in each.
struct Places {
  int query, mask, dropout, causal, scale;
};

Attention attention_of(const Stack& stack, const Places& places) {
  const auto at = [&](int index) -> const c10::IValue& {
    return stack[static_cast<std::size_t>(index)];
  };
  return {.query = at(places.query).toTensor(),
          .key = at(places.query + 1).toTensor(),
          .value = at(places.query + 2).toTensor(),
          .mask = places.mask < 0 ? std::nullopt : optional_tensor(at(places.mask)),
          .dropout = at(places.dropout).toDouble(),
          .causal = at(places.causal).toBool(),
          .scale = at(places.scale).isNone() ? std::nullopt
                                             : std::optional(at(places.scale).toDouble())};
}

void attend(Stack& stack, const Places& places) { stack = {attention_of(stack, places).out()}; }

// The gradients of query, key, value and mask; that of the output comes first.
void attend_backward(Stack& stack, const Places& places) {
  const Differentiable differentiable;
  Attention attention = attention_of(stack, places);
  if (attention.dropout != 0) C10_THROW_ERROR(Error, "what was dropped is not known");
  attention.query = leaf_of(attention.query);
  attention.key = leaf_of(attention.key);
  attention.value = leaf_of(attention.value);
  const at::Tensor mask = attention.mask ? leaf_of(*attention.mask) : at::Tensor();
  if (attention.mask) attention.mask = mask;
  const auto found = gradients_of({attention.out()}, {stack[0].toTensor()},
                                  {attention.query, attention.key, attention.value, mask});
  stack = {found[0], found[1], found[2], found[3]};
}

}  // namespace

void flash_attention(Stack& stack) { attend(stack, {0, -1, 3, 4, 6}); }
void efficient_attention(Stack& stack) { attend(stack, {0, 3, 5, 6, 7}); }
void cudnn_attention(Stack& stack) { attend(stack, {0, 3, 5, 6, 8}); }

void flash_attention_backward(Stack& stack) { attend_backward(stack, {1, -1, 10, 11, 14}); }
void efficient_attention_backward(Stack& stack) { attend_backward(stack, {1, 4, 9, 11, 12}); }
void cudnn_attention_backward(Stack& stack) { attend_backward(stack, {1, 8, 13, 14, 15}); }

}  // namespace peakbench::values
