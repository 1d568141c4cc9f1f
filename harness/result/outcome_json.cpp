#include "result/case_json.h"

namespace peakbench::result {

using nlohmann::ordered_json;

namespace {

ordered_json optional_number(const std::optional<double>& value) {
  return value ? ordered_json(finite_or_name(*value)) : ordered_json(nullptr);
}

ordered_json to_json(const TimingRound& round) {
  return {{"round", round.round},
          {"place", round.place},
          {"step_times_ns", ordered_json(round.step_times_ns)},
          {"other_busy_cores", optional_number(round.other_busy_cores)}};
}

TimingRound read_timing_round(const Fields& fields) {
  return {.round = fields.get<std::int64_t>("round"),
          .place = fields.get<std::int64_t>("place"),
          .step_times_ns = fields.get<std::vector<std::int64_t>>("step_times_ns"),
          .other_busy_cores = fields.maybe<double>("other_busy_cores")};
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
  return {.step_ns = {.min = step.get<std::int64_t>("min"),
                      .median = step.get<std::int64_t>("median"),
                      .p90 = step.get<std::int64_t>("p90"),
                      .count = step.get<std::int64_t>("count")},
          .step_times_ns = fields.get_or<std::vector<std::int64_t>>("step_times_ns", {}),
          .rounds = std::move(rounds),
          .samples_per_second = fields.get<double>("samples_per_second"),
          .tokens_per_second = fields.maybe<double>("tokens_per_second"),
          .clock = fields.get_or<std::string>("clock", ""),
          .threads = fields.get_or<std::int64_t>("threads", 0)};
}

ordered_json to_json(const Equivalence& equivalence) {
  return {{"promise", equivalence.promise},
          {"different_problem", equivalence.different_problem},
          {"reference_case", equivalence.reference_case},
          {"verdict", equivalence.verdict},
          {"max_abs_difference", optional_number(equivalence.max_abs_difference)},
          {"tolerance", optional_number(equivalence.tolerance)},
          {"relative_tolerance", optional_number(equivalence.relative_tolerance)},
          {"reason", equivalence.reason}};
}

Equivalence read_equivalence(const Fields& fields) {
  const auto promise = fields.get<std::string>("promise");
  return {
      .promise = promise,
      .different_problem = fields.get_or<bool>("different_problem", promise == "different_problem"),
      .reference_case = fields.get_or<std::string>("reference_case", ""),
      .verdict = fields.get<std::string>("verdict"),
      .max_abs_difference = fields.maybe<double>("max_abs_difference"),
      .tolerance = fields.maybe<double>("tolerance"),
      .relative_tolerance = fields.maybe<double>("relative_tolerance"),
      .reason = fields.get_or<std::string>("reason", "")};
}

ordered_json to_json(const OutOfMemory& facts) {
  return {{"requested_bytes", facts.requested_bytes},
          {"allocated_bytes", facts.allocated_bytes},
          {"limit_bytes", facts.limit_bytes},
          {"reserved_bytes", optional_to_json(facts.reserved_bytes)},
          {"largest_free_block_bytes", optional_to_json(facts.largest_free_block_bytes)},
          {"retries", optional_to_json(facts.retries)},
          {"phase", facts.phase},
          {"step", facts.step},
          {"module", facts.module},
          {"op", facts.op},
          {"needed_bytes", optional_to_json(facts.needed_bytes)}};
}

OutOfMemory read_out_of_memory(const Fields& fields) {
  OutOfMemory facts;
  facts.requested_bytes = fields.get_or<std::int64_t>("requested_bytes", 0);
  facts.allocated_bytes = fields.get_or<std::int64_t>("allocated_bytes", 0);
  facts.limit_bytes = fields.get_or<std::int64_t>("limit_bytes", 0);
  facts.reserved_bytes = fields.maybe<std::int64_t>("reserved_bytes");
  facts.largest_free_block_bytes = fields.maybe<std::int64_t>("largest_free_block_bytes");
  facts.retries = fields.maybe<std::int64_t>("retries");
  facts.phase = fields.get_or<std::string>("phase", "");
  facts.step = fields.get_or<std::int64_t>("step", 0);
  facts.module = fields.get_or<std::string>("module", "");
  facts.op = fields.get_or<std::string>("op", "");
  facts.needed_bytes = fields.maybe<std::int64_t>("needed_bytes");
  return facts;
}

ordered_json to_json(const Emulation& emulation) {
  return {{"card", emulation.card},
          {"refused_calls", ordered_json(emulation.refused_calls)},
          {"unmodelled", ordered_json(emulation.unmodelled)},
          {"read_backs", ordered_json(emulation.read_backs)}};
}

Emulation read_emulation(const Fields& fields) {
  Emulation emulation;
  emulation.card = fields.get<std::string>("card");
  emulation.refused_calls = fields.get_or<std::vector<std::string>>("refused_calls", {});
  emulation.unmodelled = fields.get_or<std::map<std::string, std::int64_t>>("unmodelled", {});
  fields.each("read_backs", [](const Fields&) {});  // a list of objects
  if (const auto* list = fields.find("read_backs")) emulation.read_backs = *list;
  return emulation;
}

nlohmann::json losses_to_json(const std::vector<double>& losses) {
  auto list = nlohmann::json::array();
  for (const double loss : losses) list.push_back(finite_or_name(loss));
  return list;
}

}  // namespace peakbench::result
