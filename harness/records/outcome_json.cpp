#include <fmt/format.h>

#include <algorithm>

#include "records/case_json.h"

namespace peakbench::records {

using nlohmann::ordered_json;

namespace {

constexpr Range<double> kTolerance{.least = 0};
// What was asked of an allocator may be more than anything has.
constexpr Range<std::int64_t> kCount{.least = 0};

ordered_json optional_number(const std::optional<double>& value) {
  return value ? ordered_json(finite_or_name(*value)) : ordered_json(nullptr);
}

std::optional<double> maybe_measured(const Fields& fields, const std::string& key) {
  const auto* value = fields.find(key);
  return value ? std::optional<double>(read_measured(*value, fields.pointer(key))) : std::nullopt;
}

// Empty where there is no such list.
std::vector<std::int64_t> read_times(const Fields& fields) {
  constexpr const char* kKey = "step_times_ns";
  auto times = fields.get_or<std::vector<std::int64_t>>(kKey, {});
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (kMeasured.holds(times[i])) continue;
    throw FieldError(fmt::format("{}/{}", fields.pointer(kKey), i),
                     fmt::format("expected {}, got {}", words_of(kMeasured), times[i]));
  }
  return times;
}

ordered_json to_json(const TimingRound& round) {
  return {{"round", round.round},
          {"place", round.place},
          {"step_times_ns", ordered_json(round.step_times_ns)},
          {"other_busy_cores", optional_number(round.other_busy_cores)}};
}

TimingRound read_timing_round(const Fields& fields) {
  fields.require("step_times_ns");
  return {.round = fields.get("round", kMeasured),
          .place = fields.get("place", kMeasured),
          .step_times_ns = read_times(fields),
          .other_busy_cores = fields.maybe("other_busy_cores", kMeasuredRate)};
}

}  // namespace

ordered_json to_json(const Throughput& throughput) {
  const StepTimes& step = throughput.step_ns;
  auto rounds = ordered_json::array();
  for (const TimingRound& round : throughput.rounds) rounds.push_back(to_json(round));
  return {{"step_ns",
           {{"min", step.min}, {"median", step.median}, {"p90", step.p90}, {"count", step.count}}},
          {"samples_per_second", ordered_json(finite_or_name(throughput.samples_per_second))},
          {"tokens_per_second", optional_number(throughput.tokens_per_second)},
          {"clock", throughput.clock},
          {"threads", throughput.threads},
          {"step_times_ns", ordered_json(throughput.step_times_ns)},
          {"rounds", std::move(rounds)}};
}

Throughput read_throughput(const Fields& fields) {
  const Fields step = fields.child("step_ns");
  std::vector<TimingRound> rounds;
  fields.each("rounds", [&](const Fields& item) { rounds.push_back(read_timing_round(item)); });
  return {.step_ns = {.min = step.get("min", kMeasured),
                      .median = step.get("median", kMeasured),
                      .p90 = step.get("p90", kMeasured),
                      .count = step.get("count", kMeasured)},
          .step_times_ns = read_times(fields),
          .rounds = std::move(rounds),
          .samples_per_second = fields.get("samples_per_second", kMeasuredRate),
          .tokens_per_second = fields.maybe("tokens_per_second", kMeasuredRate),
          .clock = fields.get_or<std::string>("clock", ""),
          .threads = fields.get_or<std::int64_t>("threads", 0, kMeasured)};
}

ordered_json to_json(const Equivalence& equivalence) {
  ordered_json json{{"promise", equivalence.promise},
                    {"different_problem", equivalence.different_problem},
                    {"reference_case", equivalence.reference_case},
                    {"verdict", equivalence.verdict},
                    {"max_abs_difference", optional_number(equivalence.max_abs_difference)},
                    {"tolerance", optional_number(equivalence.tolerance)},
                    {"relative_tolerance", optional_number(equivalence.relative_tolerance)},
                    {"reason", equivalence.reason}};
  if (!equivalence.without_gradient.empty())
    json["without_gradient"] = equivalence.without_gradient;
  return json;
}

Equivalence read_equivalence(const Fields& fields) {
  const auto promise = fields.get<std::string>("promise");
  return {
      .promise = promise,
      .different_problem = fields.get_or<bool>("different_problem", promise == "different_problem"),
      .reference_case = fields.get_or<std::string>("reference_case", ""),
      .verdict = fields.get<std::string>("verdict"),
      .max_abs_difference = maybe_measured(fields, "max_abs_difference"),
      .tolerance = fields.maybe("tolerance", kTolerance),
      .relative_tolerance = fields.maybe("relative_tolerance", kTolerance),
      .reason = fields.get_or<std::string>("reason", ""),
      .without_gradient = fields.get_or<std::vector<std::string>>("without_gradient", {})};
}

ordered_json to_json(const OutOfMemory& facts) {
  ordered_json json{{"requested_bytes", facts.requested_bytes},
                    {"allocated_bytes", facts.allocated_bytes},
                    {"limit_bytes", facts.limit_bytes},
                    {"reserved_bytes", optional_to_json(facts.reserved_bytes)},
                    {"largest_free_block_bytes", optional_to_json(facts.largest_free_block_bytes)},
                    {"retries", optional_to_json(facts.retries)},
                    {"phase", facts.phase},
                    {"step", facts.step},
                    {"module", facts.module},
                    {"op", facts.op},
                    {"needed_bytes", optional_to_json(facts.needed_bytes)},
                    {"needed_allocated_bytes", optional_to_json(facts.needed_allocated_bytes)},
                    {"needed_note", facts.needed_note}};
  if (facts.least_memory_bytes) json["least_memory_bytes"] = *facts.least_memory_bytes;
  return json;
}

OutOfMemory read_out_of_memory(const Fields& fields) {
  OutOfMemory facts;
  facts.requested_bytes = fields.get_or<std::int64_t>("requested_bytes", 0, kCount);
  facts.allocated_bytes = fields.get_or<std::int64_t>("allocated_bytes", 0, kCount);
  facts.limit_bytes = fields.get_or<std::int64_t>("limit_bytes", 0, kCount);
  facts.reserved_bytes = fields.maybe("reserved_bytes", kCount);
  facts.largest_free_block_bytes = fields.maybe("largest_free_block_bytes", kCount);
  facts.retries = fields.maybe("retries", kCount);
  facts.phase = fields.get_or<std::string>("phase", "");
  // Before the first step there is none; files of schema 1.1 and older say -1 then.
  facts.step = std::max<std::int64_t>(
      0, fields.get_or<std::int64_t>("step", 0, Range<std::int64_t>{.least = -1}));
  facts.module = fields.get_or<std::string>("module", "");
  facts.op = fields.get_or<std::string>("op", "");
  facts.needed_bytes = fields.maybe("needed_bytes", kCount);
  facts.needed_allocated_bytes = fields.maybe("needed_allocated_bytes", kCount);
  facts.needed_note = fields.get_or<std::string>("needed_note", "");
  facts.least_memory_bytes = fields.maybe("least_memory_bytes", kCount);
  return facts;
}

ordered_json to_json(const Emulation& emulation) {
  return {{"card", emulation.card},
          {"refused_calls", ordered_json(emulation.refused_calls)},
          {"unmodelled", ordered_json(emulation.unmodelled)},
          {"read_backs", ordered_json(emulation.read_backs)},
          {"verdict", optional_to_json(emulation.verdict)}};
}

Emulation read_emulation(const Fields& fields) {
  Emulation emulation;
  emulation.card = fields.get<std::string>("card");
  emulation.refused_calls = fields.get_or<std::vector<std::string>>("refused_calls", {});
  if (const auto calls = fields.maybe_child("unmodelled")) {
    for (const auto& name : calls->keys()) emulation.unmodelled[name] = calls->get(name, kCount);
  }
  fields.each("read_backs", [](const Fields&) {});  // a list of objects
  if (const auto* list = fields.find("read_backs")) emulation.read_backs = *list;
  emulation.verdict = read_optional(fields, "verdict", read_verdict);
  return emulation;
}

std::vector<double> read_losses(const Fields& fields) {
  std::vector<double> losses;
  const auto* list = fields.find("losses");
  if (!list) return losses;
  const auto pointer = fields.pointer("losses");
  if (!list->is_array()) throw FieldError(pointer, "expected a list, got " + describe(*list));
  for (const auto& loss : *list)
    losses.push_back(read_measured(loss, fmt::format("{}/{}", pointer, losses.size())));
  return losses;
}

nlohmann::json losses_to_json(const std::vector<double>& losses) {
  auto list = nlohmann::json::array();
  for (const double loss : losses) list.push_back(finite_or_name(loss));
  return list;
}

}  // namespace peakbench::records
