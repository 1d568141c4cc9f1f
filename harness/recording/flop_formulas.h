// How many floating-point operations an operator of PyTorch takes, by its shapes: what
// torch.utils.flop_counter counts, for the same operators and by the same rules. A multiplication
// and an addition are two; nothing is taken off for a causal mask; an operator without a formula
// (additions, norms, activations) takes none.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace peakbench::recording {

enum class FlopFormula {
  kNone,
  kMatrices,       // mm: the arguments 0 and 1
  kAddedMatrices,  // addmm: 1 and 2
  kBatches,        // bmm
  kAddedBatches,   // baddbmm
  kConvolution,
  kConvolutionBackward,
  kAttention,          // (B, H, S, D): query, key and value are the first three
  kAttentionBackward,  // after the gradient of the output
  kPackedAttention,    // of sequences of several lengths, where the cumulative lengths are given
  kPackedAttentionBackward,
  kUnknown,  // multiplies matrices, and PyTorch has no formula for it
};

// By the operator's name without its overload: "aten::addmm".
FlopFormula flop_formula(std::string_view name);

struct Flops {
  std::int64_t count = 0;
  bool each_output_place = false;  // of a convolution: times the places of its output
};

// nullopt: the formula is not for these arguments, such as packed sequences, whose lengths are on
// the card.
std::optional<Flops> flops_of(FlopFormula formula, c10::ArrayRef<c10::IValue> inputs);

// Of an output of a convolution, (N, C, ...): how often its filter was put.
std::int64_t places_of(c10::ArrayRef<std::int64_t> output_shape);

// The argument whose dtype is the product's.
std::size_t first_factor(FlopFormula formula);

}  // namespace peakbench::recording
