#include "reports/render/work_text.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "reports/render/format.h"

namespace peakbench::reports {
namespace {

constexpr double kWorthSaying = 0.0005;  // what is not 0.0% when rounded

std::int64_t forward_flops(const result::StepWork& work) {
  const auto forward = work.phases.find("forward");
  return forward == work.phases.end() ? 0 : forward->second.flops;
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void add_change(const char* what, std::int64_t ours, std::int64_t reference,
                std::vector<std::string>& words) {
  const double change = ratio(ours - reference, reference);
  if (std::abs(change) >= kWorthSaying)
    words.push_back(fmt::format("{} {}%", what, signed_percent(change)));
}

// Both ways as one where they are the same.
std::string copies_words(std::int64_t to_host, std::int64_t to_device) {
  if (to_host == to_device) return fmt::format("copies {} GiB to the host and back", gib(to_host));
  if (to_device <= 0) return fmt::format("copies {} GiB to the host", gib(to_host));
  if (to_host <= 0) return fmt::format("copies {} GiB to the device", gib(to_device));
  return fmt::format("copies {} GiB to the host and {} GiB to the device", gib(to_host),
                     gib(to_device));
}

}  // namespace

std::string flops_text(std::int64_t flops) {
  if (flops == 0) return "0";
  constexpr double kThousand = 1000;
  constexpr int kDigits = 4;
  constexpr std::array kUnits{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
  auto value = static_cast<double>(flops);
  std::size_t unit = 0;
  for (; value >= kThousand && unit + 1 < kUnits.size(); ++unit) value /= kThousand;
  return fmt::format("{} {}", decimal(value, kDigits), kUnits[unit]);
}

std::vector<std::string> work_costs(const result::StepWork& work,
                                    const result::StepWork* reference) {
  std::vector<std::string> words;
  const auto& ours = work.total;
  if (ours.recomputed_flops > 0)
    words.push_back(fmt::format("recomputes {}% of the forward's FLOPs",
                                percent(ratio(ours.recomputed_flops, forward_flops(work)))));
  if (reference != nullptr) {
    const auto& theirs = reference->total;
    add_change("FLOPs", ours.flops, theirs.flops, words);
    add_change("bytes read and written", ours.read_bytes + ours.written_bytes,
               theirs.read_bytes + theirs.written_bytes, words);
    if (ours.device && theirs.device)
      add_change("kernel launches", ours.device->kernel_launches, theirs.device->kernel_launches,
                 words);
  }
  if (!ours.device) return words;
  const auto* theirs =
      reference != nullptr && reference->total.device ? &*reference->total.device : nullptr;
  const auto to_host =
      ours.device->copies_to_host_bytes - (theirs ? theirs->copies_to_host_bytes : 0);
  const auto to_device =
      ours.device->copies_to_device_bytes - (theirs ? theirs->copies_to_device_bytes : 0);
  if (to_host > 0 || to_device > 0) words.push_back(copies_words(to_host, to_device));
  return words;
}

}  // namespace peakbench::reports
