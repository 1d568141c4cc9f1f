#include "reports/run/view_row.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "records/case.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/explain.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using records::CaseResult;

std::vector<SegmentView> segments_view(const records::Memory& memory, std::int64_t widest) {
  std::vector<std::string> categories;
  for (const auto& [category, bytes] : memory.at_peak) {
    if (bytes > 0) categories.push_back(category);
  }
  std::vector<SegmentView> segments;
  std::int64_t start = 0;
  for (const std::string& category : in_stacking_order(categories)) {
    const std::int64_t bytes = memory.at_peak.at(category);
    segments.push_back({.category = printable(category),
                        .label = printable(category_label(category)),
                        .colour = category_colour(category),
                        .gib = gib(bytes),
                        .bytes = grouped(bytes),
                        .percent = percent(ratio_of(bytes, memory.peak_allocated_bytes)),
                        .start = fraction(ratio_of(start, widest)),
                        .width = fraction(ratio_of(bytes, widest))});
    start += bytes;
  }
  return segments;
}

std::vector<PhaseView> phases_view(const records::Memory& memory) {
  std::vector<std::string> names;
  std::int64_t largest = 1;
  for (const auto& [name, phase] : memory.phases) {
    names.push_back(name);
    largest = std::max(largest, phase.peak_allocated_bytes);
  }
  std::vector<PhaseView> phases;
  for (const std::string& name : in_phase_order(names)) {
    const std::int64_t bytes = memory.phases.at(name).peak_allocated_bytes;
    phases.push_back({.phase = printable(name),
                      .label = printable(phase_label(name)),
                      .gib = gib(bytes),
                      .bytes = grouped(bytes),
                      .width = fraction(ratio_of(bytes, largest)),
                      .is_peak = name == memory.peak_phase});
  }
  return phases;
}

std::vector<SpaceView> spaces_view(const records::Memory& memory) {
  std::vector<SpaceView> spaces;
  for (const auto& [name, space] : memory.spaces) {
    spaces.push_back({.space = printable(name),
                      .gib = gib(space.peak_allocated_bytes),
                      .bytes = grouped(space.peak_allocated_bytes)});
  }
  return spaces;
}

void add_memory(const CaseResult& result, const Group& group, RowView& row) {
  const records::Memory& memory = *result.memory;
  row.peak = bytes_view(memory.peak_allocated_bytes);
  row.requested = bytes_view(memory.peak_requested_bytes);
  row.reserved = bytes_view(memory.peak_reserved_bytes);
  row.least = bytes_view(memory.least_memory_bytes);
  if (memory.worker_peak_rss_bytes > 0) row.rss = bytes_view(memory.worker_peak_rss_bytes);
  const std::int64_t widest = widest_bar(group);
  row.bar = fraction(ratio_of(memory.peak_allocated_bytes, widest));
  row.peak_phase = printable(phase_label(memory.peak_phase));
  row.peak_step = grouped(memory.peak_step + 1);
  row.steps = grouped(memory.steps);
  row.segments = segments_view(memory, widest);
  row.phases = phases_view(memory);
  row.spaces = spaces_view(memory);
  const auto reference = reference_peak(group);
  if (reference && group.reference != &result && !replays_steps(result))
    row.delta = delta_view(memory.peak_allocated_bytes, *reference);
}

std::string difference_text(const records::Equivalence& equivalence) {
  if (!equivalence.max_abs_difference) return "";
  const double difference = *equivalence.max_abs_difference;
  return std::isnan(difference) ? "not a number" : scientific(difference);
}

// Also of a case that was added and has no row.
std::string stack_of(const std::string& case_id, const records::Run& run) {
  for (const CaseResult& result : run.cases)
    if (result.spec.id == case_id) return stack_text(result.spec);
  return "";
}

EquivalenceView equivalence_view(const records::Equivalence& equivalence, const CaseResult& result,
                                 const records::Run& run) {
  const auto is = [&](const char* verdict) { return equivalence.verdict == verdict; };
  const bool nothing_to_hold = equivalence.promise == "different_problem";
  const std::string held_to = stack_of(equivalence.reference_case, run);
  return {.label = printable(equivalence_label(equivalence, result.spec.id, held_to)),
          .verdict = printable(equivalence.verdict),
          .held = is("held") && !nothing_to_hold,
          .broken = is("broken"),
          .not_checked = is_claimed(equivalence, result.spec.id),
          .different = trains_differently(equivalence),
          .max_abs_difference = difference_text(equivalence),
          .tolerance = tolerance_text(equivalence),
          .reason = printable(equivalence.reason)};
}

std::vector<FactView> out_of_memory_view(const records::OutOfMemory& facts) {
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
  add("needed without a limit (allocated)_bytes", facts.needed_allocated_bytes);
  if (!facts.phase.empty())
    object["phase"] = phase_label(facts.phase) + ", step " + std::to_string(facts.step + 1);
  if (!facts.module.empty()) object["module"] = facts.module;
  if (!facts.op.empty()) object["operator"] = facts.op;
  return facts_view(object);
}

std::vector<FactView> emulation_view(const records::Emulation& emulation) {
  json object = json::object();
  if (!emulation.unmodelled.empty()) object["not_modelled_calls"] = emulation.unmodelled;
  for (const std::string& call : emulation.refused_calls) object["refused"][call] = "refused";
  std::vector<FactView> facts = facts_view(object);
  for (const json& read_back : emulation.read_backs)
    facts.push_back({"read back from the card", printable(json_line(read_back)), ""});
  return facts;
}

std::string off(double ours, double theirs) {
  return theirs > 0 ? signed_percent(ours / theirs - 1) : "";
}

std::string off_rate(const records::Throughput& ours, const PublishedRate& theirs) {
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

PublishedView published_view(const records::Published& published, Sources& sources) {
  PublishedView view;
  view.original = plain_number(published.value) + " " + printable(published.unit);
  view.value = plain_number(published.value);
  view.unit = printable(published.unit);
  view.source = printable(published.source);
  view.url = web_address(published.url);
  view.note = printable(published.note);
  view.number = sources.number(published);
  return view;
}

void add_published(const CaseResult& result, const Group& group, Sources& sources, RowView& row) {
  for (const records::Published& published : group.run->published) {
    if (!is_about(published, result.spec)) continue;
    PublishedView view = published_view(published, sources);
    if (is_of_memory(published)) {
      const auto bytes = bytes_of(published.value, published.unit);
      const auto ours =
          result.memory ? bytes_of_kind(*result.memory, published.metric) : std::nullopt;
      if (bytes) view.gib = gib(static_cast<std::int64_t>(*bytes));
      if (bytes && ours) view.off_percent = off(static_cast<double>(*ours), *bytes);
      row.published_memory.push_back(std::move(view));
    } else {
      const auto rate = rate_of(published.value, published.unit);
      if (rate && result.throughput) view.off_percent = off_rate(*result.throughput, *rate);
      row.published_throughput.push_back(std::move(view));
    }
  }
}

std::vector<StackPartView> parts_view(const records::CaseSpec& spec) {
  std::vector<StackPartView> parts;
  for (const records::Selection& strategy : spec.strategies) {
    const std::string name = selection_text(strategy);
    parts.push_back({.name = printable(name),
                     .base = printable(strategy.id),
                     .options = printable(name.substr(strategy.id.size())),
                     .first = parts.empty()});
  }
  return parts;
}

}  // namespace

RowView row_view(const CaseResult& result, const Group& group, Sources& sources) {
  RowView row;
  row.id = printable(result.spec.id);
  row.strategy = printable(row_name(result.spec));
  row.short_name = fit_middle(row.strategy, 30);
  row.name = printable(name_alone(result.spec));
  row.parts = parts_view(result.spec);
  row.build = printable(build_text(result.spec));
  if (row.parts.empty())
    row.parts = {{.name = row.name, .base = row.name, .options = "", .first = true}};
  row.is_reference = &result == group.reference || &result == group.reference_out;
  row.ok = ran(result);
  row.status = records::to_string(result.status);
  row.status_label = status_label(result.status, result.spec.kind);
  row.reason = printable(result.reason);
  row.throughput_reason = printable(result.throughput_reason);
  row.settings = facts_view(result.settings);
  if (result.memory) add_memory(result, group, row);
  add_throughput(result, group, row);
  if (result.equivalence && stack_text(result.spec) != group.run->reference)
    row.equivalence = equivalence_view(*result.equivalence, result, *group.run);
  if (result.out_of_memory) {
    row.oom_facts = out_of_memory_view(*result.out_of_memory);
    row.needed = bytes_view(result.out_of_memory->needed_bytes);
    row.needed_allocated = bytes_view(result.out_of_memory->needed_allocated_bytes);
    row.least = bytes_view(result.out_of_memory->least_memory_bytes);
  }
  if (result.emulation) {
    row.emulation = emulation_view(*result.emulation);
    if (result.emulation->verdict) row.verdict = verdict_view(*result.emulation->verdict);
  }
  if (result.wall_ns > 0) row.wall = duration(result.wall_ns);
  for (const double loss : result.losses) row.losses.push_back(decimal(loss, 7));
  if (!result.ranks.empty()) row.trace = printable(records::headline_rank(result).trace);
  add_published(result, group, sources, row);
  row.has_facts = row.equivalence || !row.wall.empty() || !row.settings.empty() ||
                  !row.losses.empty() || result.out_of_memory || result.emulation;
  return row;
}

// What a row says from traces: its timeline, what was alive, and against the reference why and by
// what the peak moved.

namespace {

const CaseAnatomy* find(const Anatomies& anatomies, const CaseResult* result) {
  const auto found = anatomies.find(result);
  return found != anatomies.end() && found->second.known() ? &found->second : nullptr;
}

// The top of the table's small pictures: a case that ran out of memory has no bar, and may have
// climbed above all of them.
std::int64_t highest_of(const Group& group, const Anatomies& anatomies) {
  std::int64_t highest = widest_bar(group);
  for (const CaseResult* result : group.cases)
    if (const CaseAnatomy* known = find(anatomies, result))
      highest = std::max(highest, known->anatomy.peak.allocated_bytes);
  return highest;
}

// In the phase of the reference's peak.
Causes causes_in_its_phase(const CaseAnatomy& reference, const CaseAnatomy& own) {
  const auto before = reference.folds.find(reference.anatomy.peak.phase),
             after = own.folds.find(reference.anatomy.peak.phase);
  if (before == reference.folds.end() || after == own.folds.end()) return {};
  return after->second.against(before->second);
}

}  // namespace

void add_anatomy(const CaseResult& result, const Group& group, const Anatomies& anatomies,
                 RowView& row) {
  const auto entry = anatomies.find(&result);
  if (entry != anatomies.end()) row.trace_note = printable(entry->second.note);
  const CaseAnatomy* own = find(anatomies, &result);
  if (!own) return;
  row.timeline = timeline_view(*own, highest_of(group, anatomies));
  row.alive = own->alive;
  row.lines = own->lines;
  row.data = own->data;
  const CaseAnatomy* reference = find(anatomies, group.reference);
  if (reference == own && !own->lines) row.why = printable(tell_peak(own->anatomy));
  if (!reference || reference == own || !ran(result)) return;
  if (replays_steps(result)) {
    row.why =
        "Its steps replay a captured graph, whose memory counts as reserved, not as allocated. "
        "Compare reserved peaks.";
    return;
  }
  row.waterfall = waterfall_view(*reference, *own);
  const auto* before = build_before(group, result);
  const CaseAnatomy* from = before ? find(anatomies, before) : nullptr;
  if (!from) from = reference, before = group.reference;
  row.why = printable(explain(from->anatomy, own->anatomy, row_name(before->spec),
                              row_name(result.spec), causes_in_its_phase(*from, *own)));
}

}  // namespace peakbench::reports
