#include "fake_trace.h"

#include <map>
#include <random>

namespace peakbench::golden {
namespace {

using trace::EventKind;
using trace::Phase;
using trace::Role;

class Recorder {
 public:
  explicit Recorder(const FakeTraining& training) : training_(training) {
    trace_.device = training.emulated ? "emulated:h100-80gb" : "cpu";
    trace_.emulated = training.emulated;
    trace_.spaces = {training.emulated ? "cuda:0" : "cpu"};
    trace_.operators = {"aten::empty", "aten::linear", "aten::mm", "aten::_foreach_sqrt",
                        "aten::gelu"};
  }

  void enter(Phase phase, std::int32_t step) {
    phase_ = phase;
    step_ = step;
  }
  void in_module(const std::string& name) {
    const auto [found, is_new] =
        modules_.try_emplace(name, static_cast<std::int32_t>(trace_.modules.size()));
    if (is_new) trace_.modules.push_back(name);
    module_ = found->second;
  }

  std::uint64_t alloc(std::int64_t bytes, std::int32_t op) {
    const std::uint64_t address = next_address_;
    const std::int64_t block = training_.emulated ? (bytes + 511) / 512 * 512 : bytes;
    next_address_ += static_cast<std::uint64_t>(block);
    record(EventKind::kAlloc, address, bytes, block, op);
    return address;
  }
  void free(std::uint64_t address) {
    const trace::Event made = blocks_.at(address);
    record(EventKind::kFree, address, made.requested_bytes, made.block_bytes, made.op);
    blocks_.erase(address);
  }
  void segment(std::int64_t bytes) {
    record(EventKind::kSegmentAlloc, 1U << 30U, bytes, bytes, trace::kNone);
  }
  void name_last(Role role, const std::string& name, const std::string& shape) {
    trace_.names.push_back({trace_.events.size() - 1, role, name, shape, "fp32"});
  }

  trace::Trace take() && { return std::move(trace_); }

 private:
  void record(EventKind kind, std::uint64_t address, std::int64_t bytes, std::int64_t block,
              std::int32_t op) {
    trace::Event event;
    event.kind = kind;
    event.phase = phase_;
    event.step = step_;
    event.module = module_;
    event.op = op;
    event.address = address;
    event.requested_bytes = bytes;
    event.block_bytes = block;
    event.time_ns = training_.emulated ? -1
                                       : static_cast<std::int64_t>(trace_.events.size()) *
                                             (phase_ == Phase::kBackward ? 90000 : 45000);
    if (!trace_.events.empty() && !training_.emulated)
      event.time_ns = trace_.events.back().time_ns + (phase_ == Phase::kBackward ? 90000 : 45000);
    if (kind == EventKind::kAlloc) blocks_[address] = event;
    trace_.events.push_back(event);
  }

  FakeTraining training_;
  trace::Trace trace_;
  std::map<std::string, std::int32_t> modules_;
  std::map<std::uint64_t, trace::Event> blocks_;
  std::uint64_t next_address_ = 4096;
  Phase phase_ = Phase::kBuild;
  std::int32_t step_ = trace::kNone, module_ = trace::kNone;
};

std::string module_of(int layer) { return "encoder.layers." + std::to_string(layer) + ".mlp"; }
std::string shape_of(std::int64_t bytes) { return "[" + std::to_string(bytes / 4096) + ", 1024]"; }

void irregular_temporaries(Recorder& recorder, const FakeTraining& training,
                           std::minstd_rand& random) {
  std::vector<std::uint64_t> alive;
  for (int i = 0; i < training.temporaries; ++i) {
    const auto bytes = static_cast<std::int64_t>(
        512 + random() % static_cast<std::uint64_t>(training.activation_bytes / 8));
    alive.push_back(recorder.alloc(bytes, static_cast<std::int32_t>(random() % 5)));
    if (alive.size() < 8) continue;
    const auto which = alive.begin() + static_cast<std::ptrdiff_t>(random() % alive.size());
    recorder.free(*which);
    alive.erase(which);
  }
  for (const std::uint64_t address : alive) recorder.free(address);
}

void temporaries(Recorder& recorder, const FakeTraining& training) {
  static std::minstd_rand random(1);  // the same in every run of the program
  if (training.irregular) return irregular_temporaries(recorder, training, random);
  for (int i = 0; i < training.temporaries; ++i) {
    recorder.free(recorder.alloc(training.activation_bytes / 3 + i * 4096, 4));
  }
}

void state(Recorder& recorder, const FakeTraining& training, int layer) {
  for (const char* which : {".exp_avg", ".exp_avg_sq"}) {
    recorder.alloc(training.layer_bytes, 0);
    recorder.name_last(Role::kOptimizerState, module_of(layer) + ".weight" + which,
                       shape_of(training.layer_bytes));
  }
}

// The optimizer's step: its first makes the state; with foreach, temporaries as large as all
// parameters.
void update(Recorder& recorder, const FakeTraining& training, std::vector<std::uint64_t>& gradients,
            int step) {
  recorder.enter(Phase::kOptimizerStep, step);
  recorder.in_module("");
  if (step == 0) {
    for (int layer = 0; layer < training.layers; ++layer) state(recorder, training, layer);
  }
  std::vector<std::uint64_t> temporary;
  for (int layer = 0; layer < training.layers; ++layer) {
    temporary.push_back(recorder.alloc(training.layer_bytes, 3));
    if (!training.foreach) recorder.free(temporary.back());
  }
  if (training.foreach) {
    for (const std::uint64_t address : temporary) recorder.free(address);
  }
  for (const std::uint64_t address : gradients) recorder.free(address);
  gradients.clear();
}

void backward(Recorder& recorder, const FakeTraining& training,
              std::vector<std::uint64_t>& activations, std::vector<std::uint64_t>& gradients,
              int step) {
  recorder.enter(Phase::kBackward, step);
  for (int layer = training.layers - 1; layer >= 0; --layer) {
    recorder.in_module(module_of(layer));
    temporaries(recorder, training);
    const std::uint64_t gradient = recorder.alloc(training.layer_bytes, 2);
    recorder.name_last(Role::kGradient, module_of(layer) + ".weight.grad",
                       shape_of(training.layer_bytes));
    recorder.free(activations.back());
    activations.pop_back();
    if (training.fused_in_backward) {
      if (step == 0) state(recorder, training, layer);
      recorder.free(gradient);
    } else {
      gradients.push_back(gradient);
    }
  }
}

}  // namespace

trace::Trace fake_trace(const FakeTraining& training) {
  Recorder recorder(training);
  if (training.emulated) recorder.segment(training.layer_bytes * training.layers * 6);
  for (int layer = 0; layer < training.layers; ++layer) {
    recorder.in_module(module_of(layer));
    recorder.alloc(training.layer_bytes - 100, 0);
    recorder.name_last(Role::kParameter, module_of(layer) + ".weight",
                       shape_of(training.layer_bytes));
  }
  recorder.in_module("");
  recorder.alloc(602112, 0);
  recorder.name_last(Role::kInput, "images", "[1, 3, 224, 224]");
  std::vector<std::uint64_t> activations, gradients;
  for (int step = 0; step < training.steps; ++step) {
    recorder.enter(Phase::kForward, step);
    for (int layer = 0; layer < training.layers; ++layer) {
      recorder.in_module(module_of(layer));
      temporaries(recorder, training);
      activations.push_back(recorder.alloc(training.activation_bytes, 1));
    }
    backward(recorder, training, activations, gradients, step);
    if (!training.fused_in_backward) update(recorder, training, gradients, step);
  }
  return std::move(recorder).take();
}

}  // namespace peakbench::golden
