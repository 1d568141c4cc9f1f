// A trace of as many events as asked for, shaped like training: layers kept until backward, short
// temporaries, gradients and optimizer state. For benchmarks and tests of size; the same every
// time.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "support/fake_trace.h"

namespace peakbench::trace {

// At least `events` events in three steps, on a card with segments, or on the CPU.
inline Trace synthetic_trace(std::size_t events, bool card = true) {
  FakeTrace fake(card ? "cuda:0" : "cpu");
  std::mt19937 random(7);
  const auto bytes = [&] { return static_cast<std::int64_t>(64 * (1 + random() % 100000)); };
  const auto block = [&](std::int64_t size) { return card ? (size + 511) / 512 * 512 : size; };
  const auto alloc = [&](std::int64_t size) { return fake.alloc(size, block(size)); };
  constexpr int kSteps = 3, kTemporaries = 5;
  // Events a layer: a parameter, a state, and in each step an activation, a gradient, temporaries.
  const std::size_t layers = events / (2 + kSteps * (4 + 2 * 3 * kTemporaries)) + 1;
  const auto name = [](std::size_t layer) {
    return "encoder.layers." + std::to_string(layer % 1000) + ".linear";
  };
  if (card) fake.segment(EventKind::kSegmentAlloc, std::int64_t{1} << 40);
  std::vector<std::int64_t> sizes;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    sizes.push_back(bytes());
    fake.named(Role::kParameter, name(layer) + ".weight", "[1, 2]", "fp32");
    alloc(sizes.back());
  }
  const auto temporaries = [&] {
    for (int i = 0; i < kTemporaries; ++i) fake.free(alloc(bytes()));
  };
  for (int step = 0; step < kSteps; ++step) {
    std::vector<FakeTrace::Allocation> activations, gradients(layers);
    fake.forward(step);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      fake.at(name(layer), "aten::addmm");
      activations.push_back(alloc(bytes()));
      temporaries();
    }
    fake.backward(step);
    for (auto layer = layers; layer-- > 0;) {
      fake.at(name(layer), "AddmmBackward0").named(Role::kGradient, name(layer) + ".weight");
      gradients[layer] = alloc(sizes[layer]);
      temporaries();
      fake.free(activations[layer]);
    }
    fake.optimizer_step(step);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      fake.at("", "aten::_foreach_sqrt");
      if (step == 0) {
        fake.named(Role::kOptimizerState, name(layer) + ".weight.exp_avg");
        alloc(sizes[layer]);
      }
      temporaries();
    }
    for (const auto gradient : gradients) fake.free(gradient);
  }
  return fake.trace();
}

}  // namespace peakbench::trace
