// Calling a recorded operator on the CPU, with the values that its inputs have, or may have on a
// card.
#pragma once

#include <cstdint>
#include <vector>

#include "values/unspecified.h"
#include "values/value.h"

namespace peakbench::values {

// Which of a value's bytes: the CPU's, the least, the most on any card.
enum class Side : std::uint8_t { data, low, high };
const at::Tensor& bytes_on(const Value& value, Side side);

// By input, and by output for what a target held before. Empty: data throughout.
struct Sides {
  std::vector<Side> inputs, before;

  static Sides all(const Node& node, Side side);
  Side of_input(std::size_t i) const { return inputs.empty() ? Side::data : inputs[i]; }
  Side of_before(std::size_t i) const { return before.empty() ? Side::data : before[i]; }
};

struct Evaluation {
  bool done = false;         // else: the CPU has no such kernel, or refuses the values
  bool substituted = false;  // rests on a substitute
  Stack arguments, results;
  std::vector<at::Tensor> bytes;  // of each output's storage
  std::vector<bool> right;        // which outputs came out as they were expected
};

// Which of the plausible values are asked for (core/values_hook.h). 0: the usual ones.
std::uint64_t guess();
// The first two are extremes.
inline constexpr std::uint64_t kHighGuess = 1, kLowGuess = 2;
bool is_unsure_input(const Input& input);
// The computed arguments. `targets`: bytes for outputs that are arguments, which are in them.
Stack stack_of(const Node& node, const std::vector<at::Tensor>& targets, const Sides& sides = {});
// False where the CPU refuses. Throws what is no refusal, such as std::bad_alloc.
bool run(const Node& node, Stack& stack);
Evaluation evaluate(const Node& node, const Sides& sides = {});
// Makes one argument, in double precision, of the least and the greatest that it may be.
using Make = at::Tensor (*)(const at::Tensor& low, const at::Tensor& high);
// The outputs with all floating-point arguments so; empty where that cannot be done.
std::vector<at::Tensor> evaluate_widely(const Node& node, Make make);

}  // namespace peakbench::values
