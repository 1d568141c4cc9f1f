#include "worker/step_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/card.h"
#include "core/ledger.h"
#include "trace/lifetimes.h"
#include "worker/own_ledger.h"

namespace peakbench::worker {
namespace {

using result::DeviceWork;

constexpr double kNanosecondsPerSecond = 1e9;

// Counters of the ledger, and where their growth goes.
struct Counter {
  std::uint64_t emulator::Ledger::*counted;
  std::int64_t DeviceWork::*grows;
};
constexpr std::array kCounters{
    Counter{&emulator::Ledger::kernel_launches, &DeviceWork::kernel_launches},
    Counter{&emulator::Ledger::copies_to_device, &DeviceWork::copies_to_device},
    Counter{&emulator::Ledger::copies_to_device_bytes, &DeviceWork::copies_to_device_bytes},
    Counter{&emulator::Ledger::copies_to_host, &DeviceWork::copies_to_host},
    Counter{&emulator::Ledger::copies_to_host_bytes, &DeviceWork::copies_to_host_bytes},
    Counter{&emulator::Ledger::copies_in_device, &DeviceWork::copies_in_device},
    Counter{&emulator::Ledger::copies_in_device_bytes, &DeviceWork::copies_in_device_bytes}};
static_assert(kCounters.size() <= record::DeviceCounts().size());

std::function<record::DeviceCounts()> reader_of_ledger() {
  const auto* ledger = own_ledger();
  if (ledger == nullptr) return {};
  return [ledger] {
    record::DeviceCounts counts{};
    for (std::size_t i = 0; i < kCounters.size(); ++i) counts[i] = ledger->*kCounters[i].counted;
    return counts;
  };
}

void add(const record::OperatorWork& one, bool in_recompute,
         const std::vector<std::string>& precisions, result::WorkCounts& counts) {
  if (!one.counts) return;
  ++counts.operators;
  counts.flops += one.flops;
  if (in_recompute) counts.recomputed_flops += one.flops;
  if (one.flops > 0)
    counts.flops_by_precision[precisions.at(static_cast<std::size_t>(one.precision))] += one.flops;
  counts.read_bytes += one.read_bytes;
  counts.written_bytes += one.written_bytes;
}

bool is_empty(const record::OperatorWork& before, const record::OperatorWork& one) {
  return !one.counts && before.device_counts == one.device_counts;
}

// What the device counted since the one before.
void add_growth(const record::DeviceCounts& before, const record::DeviceCounts& after,
                result::WorkCounts& counts) {
  if (!counts.device) counts.device.emplace();
  for (std::size_t i = 0; i < kCounters.size(); ++i)
    *counts.device.*kCounters[i].grows += static_cast<std::int64_t>(after[i] - before[i]);
}

struct Rates {
  result::StepBound bound;
  std::int64_t l2_cache_bytes = 0;
};

// nullopt where the card's vendor, as far as its file has it, publishes none.
std::optional<Rates> rates_of_card() {
  const char* text = std::getenv(emulator::kCardVariable);
  if (text == nullptr || own_ledger() == nullptr) return std::nullopt;
  const auto card = emulator::card_from_json(text);
  if (card.memory_bytes_per_second == 0) return std::nullopt;
  Rates rates;
  rates.l2_cache_bytes = static_cast<std::int64_t>(card.l2_cache_bytes);
  rates.bound.memory_bytes_per_second = static_cast<std::int64_t>(card.memory_bytes_per_second);
  const auto take = [&](const char* precision, std::uint64_t rate) {
    if (rate > 0) rates.bound.flops_per_second[precision] = static_cast<std::int64_t>(rate);
  };
  take("fp32", card.fp32_flops_per_second);
  // Cards before Ampere have no TF32, and compute in fp32 whatever they may do.
  constexpr int kFirstWithTf32 = 8;
  take("tf32",
       card.major < kFirstWithTf32 ? card.fp32_flops_per_second : card.tf32_flops_per_second);
  take("fp16", card.fp16_flops_per_second);
  take("bf16", card.bf16_flops_per_second);
  for (const char* fp8 : {"Float8_e4m3fn", "Float8_e5m2"}) take(fp8, card.fp8_flops_per_second);
  return rates;
}

// The cache may hold what an operator reads from before, and keep what it writes.
double beyond_cache(std::int64_t bytes, const Rates& rates) {
  return static_cast<double>(std::max<std::int64_t>(0, bytes - rates.l2_cache_bytes));
}

double least_seconds(const record::OperatorWork& one, const std::vector<std::string>& precisions,
                     const Rates& rates) {
  const double moving =
      (beyond_cache(one.sure_read_bytes, rates) + beyond_cache(one.sure_written_bytes, rates)) /
      static_cast<double>(rates.bound.memory_bytes_per_second);
  if (one.flops == 0) return moving;
  const auto& words = rates.bound.flops_per_second;
  const auto rate = words.find(precisions.at(static_cast<std::size_t>(one.precision)));
  if (rate == words.end()) return moving;
  return std::max(moving, static_cast<double>(one.flops) / static_cast<double>(rate->second));
}

std::optional<result::StepBound> bound_of(const record::CountedWork& counted) {
  auto rates = rates_of_card();
  if (!rates) return std::nullopt;
  double seconds = 0;
  for (const auto& one : counted.operators)
    if (one.counts) seconds += least_seconds(one, counted.precisions, *rates);
  rates->bound.least_step_ns =
      static_cast<std::int64_t>(std::floor(seconds * kNanosecondsPerSecond));
  return rates->bound;
}

}  // namespace

StepWorkCounter::StepWorkCounter(record::Recorder& recorder, c10::Device device, std::int64_t step)
    : step_(step), counter_(recorder, device, reader_of_ledger()) {}

std::optional<result::StepWork> StepWorkCounter::work(const trace::Trace& trace) const {
  if (!counted_) return std::nullopt;
  const auto& operators = counted_->operators;
  std::vector<trace::ScopePoint> points;
  points.reserve(operators.size());
  for (const auto& one : operators) points.push_back(one.place);
  const auto places = trace::phases_at(trace.scopes, points);
  result::StepWork work;
  work.step = step_;
  work.without_formula = counted_->without_formula;
  const bool device_counts = own_ledger() != nullptr;
  for (std::size_t i = 1; i < operators.size(); ++i) {  // the first says where counting began
    if (is_empty(operators[i - 1], operators[i])) continue;
    auto& phase = work.phases[trace::to_string(places[i].phase)];
    for (auto* counts : {&work.total, &phase}) {
      add(operators[i], places[i].in_recompute, counted_->precisions, *counts);
      if (device_counts)
        add_growth(operators[i - 1].device_counts, operators[i].device_counts, *counts);
    }
  }
  work.bound = bound_of(*counted_);
  return work;
}

}  // namespace peakbench::worker
