#include "worker/ledger.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/card.h"
#include "recording/cpu_allocator.h"
#include "trace/lifetimes.h"
#include "verdict/judge.h"

namespace peakbench::worker {
namespace {

using records::DeviceWork;

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
static_assert(kCounters.size() <= recording::DeviceCounts().size());

std::function<recording::DeviceCounts()> reader_of_ledger() {
  const auto* ledger = own_ledger();
  if (ledger == nullptr) return {};
  return [ledger] {
    recording::DeviceCounts counts{};
    for (std::size_t i = 0; i < kCounters.size(); ++i) counts[i] = ledger->*kCounters[i].counted;
    return counts;
  };
}

void add(const recording::OperatorWork& one, bool in_recompute,
         const std::vector<std::string>& precisions, records::WorkCounts& counts) {
  if (!one.counts) return;
  ++counts.operators;
  counts.flops += one.flops;
  if (in_recompute) counts.recomputed_flops += one.flops;
  if (one.flops > 0)
    counts.flops_by_precision[precisions.at(static_cast<std::size_t>(one.precision))] += one.flops;
  counts.read_bytes += one.read_bytes;
  counts.written_bytes += one.written_bytes;
}

bool is_empty(const recording::OperatorWork& before, const recording::OperatorWork& one) {
  return !one.counts && before.device_counts == one.device_counts;
}

// What the device counted since the one before.
void add_growth(const recording::DeviceCounts& before, const recording::DeviceCounts& after,
                records::WorkCounts& counts) {
  if (!counts.device) counts.device.emplace();
  for (std::size_t i = 0; i < kCounters.size(); ++i)
    *counts.device.*kCounters[i].grows += static_cast<std::int64_t>(after[i] - before[i]);
}

struct Rates {
  records::StepBound bound;
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

double least_seconds(const recording::OperatorWork& one, const std::vector<std::string>& precisions,
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

std::optional<records::StepBound> bound_of(const recording::CountedWork& counted) {
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

StepWorkCounter::StepWorkCounter(recording::Recorder& recorder, c10::Device device,
                                 std::int64_t step)
    : step_(step), counter_(recorder, device, reader_of_ledger()) {}

std::optional<records::StepWork> StepWorkCounter::work(const trace::Trace& trace) const {
  if (!counted_) return std::nullopt;
  const auto& operators = counted_->operators;
  std::vector<trace::ScopePoint> points;
  points.reserve(operators.size());
  for (const auto& one : operators) points.push_back(one.place);
  const auto places = trace::phases_at(trace.scopes, points);
  records::StepWork work;
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

namespace {

// Exported by the stand-ins, which are there before the process's first library or not at all.
template <typename Function>
Function of_stand_ins(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

const emulator::Ledger* own_ledger() {
  const auto ask = of_stand_ins<const void* (*)()>("peakbench_emulator_ledger");
  const auto* ledger = ask ? static_cast<const emulator::Ledger*>(ask()) : nullptr;
  const bool is_ours = ledger != nullptr && ledger->magic == emulator::kLedgerMagic &&
                       ledger->bytes == sizeof(emulator::Ledger);
  return is_ours ? ledger : nullptr;
}

std::optional<records::Verdict> verdict(const records::Job& job, std::int64_t peak_allocated_bytes,
                                        Ended ended) {
  const auto* ledger = own_ledger();
  if (ledger == nullptr) return std::nullopt;
  emulator::VerdictRequest request;
  request.assume = job.assume;
  request.of_case = true;
  request.wait_status = ended == Ended::kWell ? 0 : W_EXITCODE(EXIT_FAILURE, 0);
  request.peak_allocated_bytes = static_cast<std::uint64_t>(peak_allocated_bytes);
  if (const char* text = std::getenv(emulator::kCardVariable)) {
    const auto card = emulator::card_from_json(text);
    request.streams = emulator::streams_of(card);
    request.context_bytes = card.context_bytes;
  }
  return emulator::judge({ledger}, request);
}

std::string doubt_of_failure(const records::Verdict& verdict) {
  if (verdict.kind != records::VerdictKind::unreliable || verdict.reasons.empty()) return "";
  return "; a real card may continue, because values read here are unknown: " +
         verdict.reasons.front();
}

void leave_out_own_work_of_values() {
  if (const auto is_own = of_stand_ins<int (*)()>("peakbench_emulator_is_own_work"))
    recording::leave_out_of_cpu_trace(is_own);
}

}  // namespace peakbench::worker
