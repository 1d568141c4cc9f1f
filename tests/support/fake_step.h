// A fake step with known moments, for what is said and drawn of traces.
#pragma once

#include <cstdint>

#include "support/fake_trace.h"
#include "trace/summary.h"

namespace peakbench::trace {

inline constexpr std::int64_t kGib = std::int64_t{1} << 30;

struct Shape {
  std::int64_t activation = 1, gradient = 1, temporary = 1;  // GiB
};

// Parameters 1 GiB, optimizer state 2 GiB; a step as the shape says.
inline FakeTrace step_of(const Shape& shape) {
  FakeTrace fake;
  fake.named(Role::kParameter, "weight").alloc(kGib);
  fake.named(Role::kOptimizerState, "exp_avg").alloc(2 * kGib);
  fake.forward(0).at("encoder", "aten::addmm");
  const auto hidden = fake.alloc(shape.activation * kGib);
  fake.backward(0).at("encoder", "AddmmBackward0");
  const auto gradient = fake.named(Role::kGradient, "weight").alloc(shape.gradient * kGib);
  fake.free(hidden).optimizer_step(0).at("", "aten::_foreach_sqrt");
  const auto update = fake.alloc(shape.temporary * kGib);
  fake.free(update).free(gradient);
  return fake;
}

inline Anatomy anatomy_of(const Shape& shape) {
  const auto fake = step_of(shape);
  return anatomy(fake.trace(), lifetimes(fake.trace()));
}

}  // namespace peakbench::trace
