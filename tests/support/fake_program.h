// A program's training as a trace: a model, its optimizer and steps with call stacks, clean unless
// it is told to make one of the mistakes that people make.
#pragma once

#include <functional>
#include <vector>

#include "support/fake_trace.h"

namespace peakbench::trace {

class FakeProgram {
 public:
  static constexpr std::int64_t kMiB = 1 << 20;

  int steps = 5;
  // What else happens, where it is given: after the update of each step, and before its forward.
  std::function<void(FakeProgram&, int step)> after, before;
  std::function<std::int64_t(int step)> input_bytes = [](int) { return 2 * kMiB; };
  bool runs_out = false;                           // in the last step's forward
  bool keeps_inputs = false;                       // of all steps, to the end
  bool keeps_graphs = false;                       // as an output with its graph does
  std::vector<FakeTrace::Allocation> free_at_end;  // of the step

  FakeTrace fake{"cuda:0"};

  StackFrame main(std::int32_t line) { return fake.frame("/home/me/vit/train.py", "main", line); }
  StackFrame model(std::int32_t line) {
    return fake.frame("/home/me/vit/lib/model.py", "forward", line);
  }
  StackFrame torch(const char* function) {
    return fake.frame("/env/lib/python3.12/site-packages/torch/nn/functional.py", function, 2100);
  }

  StackFrame call() {
    return fake.frame("/env/lib/python3.12/site-packages/torch/nn/modules/module.py", "_call_impl",
                      1790);
  }

  // As a program's journal says it, in front of the events that are to come.
  void says(Phase phase, int step) {
    fake.trace().scopes.push_back(
        {.event = fake.trace().events.size(), .phase = phase, .step = step});
  }
  FakeTrace& evaluate(int step, bool with_gradients) {
    says(Phase::kEvaluation, step);
    if (with_gradients)
      fake.trace().scopes.push_back(
          {.event = fake.trace().events.size(), .kind = ScopeKind::kModule});
    return fake.evaluation(step);
  }

  Trace run() {
    fake.trace().counts_build = true;
    fake.build().from({main(10), torch("empty")});
    fake.named(Role::kParameter, "weight", "[64, 64]", "fp32").alloc(16 * kMiB);
    for (int step = 0; step < steps; ++step) one_step(step);
    return fake.trace();
  }

 private:
  void one_step(int step) {
    fake.data(step).from({main(22)});
    const auto images = fake.named(Role::kInput, "images").alloc(input_bytes(step));
    if (before) before(*this, step);
    fake.forward(step).from({main(24), model(12), torch("linear")});
    const auto hidden = fake.alloc(40 * kMiB);
    fake.from({main(24), model(14), torch("gelu")});
    const auto out = fake.alloc(8 * kMiB + input_bytes(step));
    if (runs_out && step == steps - 1) {
      fake.from({main(24), model(15), torch("softmax")}).out_of_memory(64 * kMiB);
      fake.trace().events.back().address = 10 * kMiB;
      return;
    }
    fake.backward(step).from({main(25)});
    const auto gradient = fake.named(Role::kGradient, "weight.grad").alloc(16 * kMiB);
    if (!keeps_graphs) fake.free(out).free(hidden);
    fake.optimizer_step(step).from({main(26), torch("adam")});
    if (step == 0) fake.named(Role::kOptimizerState, "weight.exp_avg").alloc(32 * kMiB);
    fake.free(gradient);
    if (!keeps_inputs) fake.free(images);
    for (const auto allocation : free_at_end) fake.free(allocation);
    free_at_end.clear();
    if (after) after(*this, step);
  }
};

}  // namespace peakbench::trace
