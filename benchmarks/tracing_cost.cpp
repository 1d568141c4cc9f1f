// What one traced operator costs: the smallest additions there are, before tracing and under it, in
// one process.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "recording/device.h"
#include "recording/operator_labels.h"
#include "recording/recorder.h"

namespace {

constexpr int kOperators = 20'000;
constexpr int kRounds = 15;

double fastest_ns_per_operator(const at::Tensor& a, const at::Tensor& b) {
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kOperators; ++i) (void)at::add(a, b);  // one allocation, one free
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kOperators);
  }
  return best;
}

}  // namespace

int main() {
  at::set_num_threads(1);
  const at::Tensor a = at::ones({1}), b = at::ones({1});
  const double untraced = fastest_ns_per_operator(a, b);
  peakbench::recording::DeviceRequest request;
  request.device = peakbench::records::device_from("cpu");
  auto device = peakbench::recording::make_device(request);
  auto* recorder =
      new peakbench::recording::Recorder("cpu", "cpu", false);  // lives as long as the process
  device->trace(*recorder);
  peakbench::recording::install_operator_labels(*recorder);
  recorder->set_phase(peakbench::trace::Phase::kForward, 0);
  const double traced = fastest_ns_per_operator(a, b);
  std::printf(
      "%.0f ns an operator untraced, %.0f ns traced: %.0f ns for its label and two events\n",
      untraced, traced, traced - untraced);
}
