// One row: a case, its figures against the reference, the published ones beside them.
#include <algorithm>
#include <cmath>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/report/view.h"
#include "result/run_paths.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using result::CaseResult;

template <typename Value>
void add_if(json& view, const char* name, const std::optional<Value>& bytes) {
  if (bytes) view[name] = bytes_view(*bytes);
}

json segments_view(const result::Memory& memory, std::int64_t widest) {
  std::vector<std::string> categories;
  for (const auto& [category, bytes] : memory.at_peak) {
    if (bytes > 0) categories.push_back(category);
  }
  json segments = json::array();
  std::int64_t start = 0;
  for (const std::string& category : in_stacking_order(categories)) {
    const std::int64_t bytes = memory.at_peak.at(category);
    const auto of = [bytes](std::int64_t whole) {
      return whole ? static_cast<double>(bytes) / static_cast<double>(whole) : 0;
    };
    segments.push_back(
        {{"category", printable(category)},
         {"label", printable(category_label(category))},
         {"colour", category_colour(category)},
         {"gib", gib(bytes)},
         {"bytes", grouped(bytes)},
         {"percent", percent(of(memory.peak_allocated_bytes))},
         {"start", fraction(static_cast<double>(start) / static_cast<double>(widest))},
         {"width", fraction(of(widest))}});
    start += bytes;
  }
  return segments;
}

json phases_view(const result::Memory& memory) {
  std::vector<std::string> names;
  std::int64_t largest = 1;
  for (const auto& [name, phase] : memory.phases) {
    names.push_back(name);
    largest = std::max(largest, phase.peak_allocated_bytes);
  }
  json phases = json::array();
  for (const std::string& name : in_phase_order(names)) {
    const std::int64_t bytes = memory.phases.at(name).peak_allocated_bytes;
    phases.push_back(
        {{"phase", printable(name)},
         {"label", printable(phase_label(name))},
         {"gib", gib(bytes)},
         {"bytes", grouped(bytes)},
         {"width", fraction(static_cast<double>(bytes) / static_cast<double>(largest))},
         {"is_peak", name == memory.peak_phase}});
  }
  return phases;
}

json spaces_view(const result::Memory& memory) {
  json spaces = json::array();
  for (const auto& [name, space] : memory.spaces) {
    json view{{"space", printable(name)},
              {"gib", gib(space.peak_allocated_bytes)},
              {"bytes", grouped(space.peak_allocated_bytes)},
              {"requested_gib", gib(space.peak_requested_bytes)},
              {"requested_bytes", grouped(space.peak_requested_bytes)}};
    if (space.peak_reserved_bytes) {
      view["reserved_gib"] = gib(*space.peak_reserved_bytes);
      view["reserved_bytes"] = grouped(*space.peak_reserved_bytes);
    }
    spaces.push_back(std::move(view));
  }
  return spaces;
}

void add_memory(const CaseResult& result, const Group& group, json& row) {
  const result::Memory& memory = *result.memory;
  row["peak"] = bytes_view(memory.peak_allocated_bytes);
  row["requested"] = bytes_view(memory.peak_requested_bytes);
  add_if(row, "reserved", memory.peak_reserved_bytes);
  if (memory.worker_peak_rss_bytes > 0) row["rss"] = bytes_view(memory.worker_peak_rss_bytes);
  const std::int64_t widest = widest_bar(group);
  row["bar"] =
      fraction(static_cast<double>(memory.peak_allocated_bytes) / static_cast<double>(widest));
  row["peak_phase"] = printable(phase_label(memory.peak_phase));
  row["peak_step"] = grouped(memory.peak_step + 1);
  row["steps"] = grouped(memory.steps);
  row["segments"] = segments_view(memory, widest);
  row["phases"] = phases_view(memory);
  row["spaces"] = spaces_view(memory);
  if (group.reference && group.reference != &result && group.reference->memory) {
    row["delta"] =
        delta_view(memory.peak_allocated_bytes, group.reference->memory->peak_allocated_bytes);
  }
}

std::string difference_text(const result::Equivalence& equivalence) {
  if (!equivalence.max_abs_difference) return "";
  const double difference = *equivalence.max_abs_difference;
  return std::isnan(difference) ? "not a number" : scientific(difference);
}

// Also of a case that was added and has no row.
std::string stack_of(const std::string& case_id, const result::Run& run) {
  for (const CaseResult& result : run.cases)
    if (result.spec.id == case_id) return stack_text(result.spec);
  return "";
}

json equivalence_view(const result::Equivalence& equivalence, const CaseResult& result,
                      const result::Run& run) {
  const auto is = [&](const char* verdict) { return equivalence.verdict == verdict; };
  const bool nothing_to_hold = equivalence.promise == "different_problem";
  const std::string held_to = stack_of(equivalence.reference_case, run);
  return {{"label", printable(equivalence_label(equivalence, result.spec.id, held_to))},
          {"promise", printable(equivalence.promise)},
          {"verdict", printable(equivalence.verdict)},
          {"different", trains_differently(equivalence)},
          {"held", is("held") && !nothing_to_hold},
          {"broken", is("broken")},
          {"not_checked", is_claimed(equivalence, result.spec.id)},
          {"max_abs_difference", difference_text(equivalence)},
          {"tolerance", tolerance_text(equivalence)},
          {"reference_case", printable(equivalence.reference_case)},
          {"reason", printable(equivalence.reason)}};
}

json out_of_memory_view(const result::OutOfMemory& facts) {
  nlohmann::ordered_json object{{"asked_for_bytes", facts.requested_bytes},
                                {"already_allocated_bytes", facts.allocated_bytes},
                                {"limit_bytes", facts.limit_bytes}};
  const auto add = [&object](const char* name, const auto& value) {
    if (value) object[name] = *value;
  };
  add("reserved_bytes", facts.reserved_bytes);
  add("largest_free_block_bytes", facts.largest_free_block_bytes);
  add("retries", facts.retries);
  add("needed without a limit (reserved)_bytes", facts.needed_bytes);
  if (!facts.phase.empty())
    object["phase"] = phase_label(facts.phase) + ", step " + std::to_string(facts.step + 1);
  if (!facts.module.empty()) object["module"] = facts.module;
  if (!facts.op.empty()) object["operator"] = facts.op;
  return facts_view(object);
}

json emulation_view(const result::Emulation& emulation) {
  json object = json::object();
  if (!emulation.unmodelled.empty()) object["not_modelled_calls"] = emulation.unmodelled;
  for (const std::string& call : emulation.refused_calls) object["refused"][call] = "refused";
  json facts = facts_view(object);
  for (const json& read_back : emulation.read_backs) {
    facts.push_back(
        {{"name", "read back from the card"},
         {"value", printable(read_back.dump(-1, ' ', false, json::error_handler_t::replace))}});
  }
  return facts;
}

// Of this model (its id, or with the case's options), for this stack, dtype, batch and sequence or
// any.
bool is_about(const result::Published& published, const result::CaseSpec& spec) {
  const bool model =
      published.model == spec.model.id || published.model == selection_text(spec.model);
  return model && (published.strategy.empty() || published.strategy == stack_text(spec)) &&
         (published.dtype.empty() || published.dtype == spec.dtype) &&
         (!published.batch_size || published.batch_size == spec.batch_size) &&
         (!published.sequence_length || published.sequence_length == spec.sequence_length);
}

std::string off(double ours, double theirs) {
  return theirs > 0 ? signed_percent(ours / theirs - 1) : "";
}

std::string off_rate(const result::Throughput& ours, const PublishedRate& theirs) {
  switch (theirs.rate) {
    case Rate::kSamplesPerSecond:
      return off(ours.samples_per_second, theirs.value);
    case Rate::kTokensPerSecond:
      return ours.tokens_per_second ? off(*ours.tokens_per_second, theirs.value) : "";
    case Rate::kSecondsPerStep:
      return off(static_cast<double>(ours.step_ns.median) / 1e9, theirs.value);
  }
  return "";
}

json published_view(const result::Published& published, Sources& sources) {
  return {{"original", plain_number(published.value) + " " + printable(published.unit)},
          {"value", plain_number(published.value)},
          {"unit", printable(published.unit)},
          {"source", printable(published.source)},
          {"url", web_address(published.url)},
          {"note", printable(published.note)},
          {"number", sources.number(published)}};
}

void add_published(const CaseResult& result, const Group& group, Sources& sources, json& row) {
  json memory = json::array(), throughput = json::array();
  for (const result::Published& published : group.run->published) {
    if (!is_about(published, result.spec)) continue;
    json view = published_view(published, sources);
    if (published.metric == "peak_memory") {
      const auto bytes = bytes_of(published.value, published.unit);
      if (bytes) view["gib"] = gib(static_cast<std::int64_t>(*bytes));
      if (bytes && result.memory)
        view["off_percent"] = off(static_cast<double>(result.memory->peak_allocated_bytes), *bytes);
      memory.push_back(std::move(view));
    } else {
      const auto rate = rate_of(published.value, published.unit);
      if (rate && result.throughput) view["off_percent"] = off_rate(*result.throughput, *rate);
      throughput.push_back(std::move(view));
    }
  }
  row["published_memory"] = std::move(memory);
  row["published_throughput"] = std::move(throughput);
}

json parts_view(const result::CaseSpec& spec) {
  json parts = json::array();
  for (const result::Selection& strategy : spec.strategies) {
    const std::string name = selection_text(strategy);
    parts.push_back({{"name", printable(name)},
                     {"base", printable(strategy.id)},
                     {"options", printable(name.substr(strategy.id.size()))},
                     {"first", parts.empty()}});
  }
  return parts;
}

}  // namespace

nlohmann::json bytes_view(std::int64_t bytes) {
  return {{"gib", gib(bytes)}, {"bytes", grouped(bytes)}, {"raw", std::to_string(bytes)}};
}

nlohmann::json delta_view(std::int64_t ours, std::int64_t reference) {
  const std::int64_t bytes = ours - reference;
  const std::string sign = bytes > 0 ? "+" : "";
  return {{"gib", signed_gib(bytes)},
          {"bytes", sign + grouped(bytes)},
          {"percent",
           reference ? signed_percent(static_cast<double>(bytes) / static_cast<double>(reference))
                     : ""},
          {"less", bytes < 0},
          {"more", bytes > 0}};
}

nlohmann::json row_view(const CaseResult& result, const Group& group, Sources& sources) {
  const bool ok = result.status == result::Status::kOk;
  json row{{"id", printable(result.spec.id)},
           {"strategy", printable(stack_text(result.spec))},
           {"short", fit(printable(stack_text(result.spec)), 30)},
           {"parts", parts_view(result.spec)},
           {"is_reference", &result == group.reference},
           {"ok", ok},
           {"failed", !ok},
           {"status", result::to_string(result.status)},
           {"status_label", status_label(result.status)},
           {"reason", printable(result.reason)},
           {"throughput_reason", printable(result.throughput_reason)},
           {"settings", facts_view(result.settings)}};
  if (result.memory) add_memory(result, group, row);
  add_throughput(result, group, row);
  if (result.equivalence && &result != group.reference)
    row["equivalence"] = equivalence_view(*result.equivalence, result, *group.run);
  if (result.out_of_memory) {
    row["oom_facts"] = out_of_memory_view(*result.out_of_memory);
    add_if(row, "needed", result.out_of_memory->needed_bytes);
  }
  if (result.emulation) row["emulation"] = emulation_view(*result.emulation);
  if (result.wall_ns > 0) row["wall"] = duration(result.wall_ns);
  json losses = json::array();
  for (const double loss : result.losses) losses.push_back(decimal(loss, 7));
  row["losses"] = std::move(losses);
  if (!result.ranks.empty()) row["trace"] = printable(result::first_rank(result).trace);
  add_published(result, group, sources, row);
  row["has_phases"] = result.memory && !result.memory->phases.empty();
  row["several_spaces"] = result.memory && result.memory->spaces.size() > 1;
  row["has_losses"] = !result.losses.empty();
  row["has_facts"] = row.contains("equivalence") || row.contains("wall") ||
                     !row["settings"].empty() || !result.losses.empty() ||
                     row.contains("oom_facts") || row.contains("emulation");
  return row;
}

}  // namespace peakbench::reports
