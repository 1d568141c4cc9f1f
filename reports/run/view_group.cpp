#include "reports/run/view_group.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/numbers.h"
#include "records/axes.h"
#include "records/device.h"
#include "reports/analysis/environment.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::reports {
namespace {

using records::CaseResult;

std::vector<LegendView> legend(const Group& group, const Anatomies& anatomies) {
  std::set<std::string> present;
  for (const CaseResult* result : group.cases) {
    if (const auto found = anatomies.find(result); found != anatomies.end())
      for (const std::string& category : categories_of(found->second)) present.insert(category);
    if (!result->memory) continue;
    for (const auto& [category, bytes] : result->memory->at_peak) {
      if (bytes != 0) present.insert(category);
    }
  }
  std::vector<LegendView> list;
  for (const std::string& category :
       in_stacking_order(std::vector<std::string>(present.begin(), present.end()))) {
    list.push_back({.category = printable(category),
                    .label = printable(category_label(category)),
                    .colour = category_colour(category),
                    .column = std::to_string(list.size() % 5),
                    .line = std::to_string(list.size() / 5)});
  }
  return list;
}

// The real cards that the group's cases ran on, with their memory; one, unless a run was resumed
// elsewhere.
std::string cards_of(const Group& group) {
  std::string text;
  std::set<std::string> seen;
  for (const CaseResult* result : group.cases) {
    const std::string name = fact_of(*result, *group.run, "card");
    const bool real = records::recorded_device(result->spec.device).is_card &&
                      fact_of(*result, *group.run, "emulated") != "true";
    if (!real || name.empty() || !seen.insert(real_card_of(*result, *group.run)).second) continue;
    const auto& memory = device_facts(*result).value("card_memory_bytes", nlohmann::json());
    text += (text.empty() ? "" : "; ") + name;
    if (memory.is_number_integer()) text += ", " + gib(memory.get<std::int64_t>()) + " GiB";
  }
  return printable(text);
}

std::vector<RowView> rows_view(const Group& group, std::size_t index, const Anatomies& anatomies,
                               Sources& sources) {
  const CaseResult* lowest = lowest_of(group);
  std::vector<RowView> rows;
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    RowView row = row_view(*group.cases[i], group, sources);
    add_anatomy(*group.cases[i], group, anatomies, row);
    row.index = std::to_string(i);
    row.number = std::to_string(i + 1);
    row.anchor = "group-" + std::to_string(index + 1) + "-" + row.number;
    row.is_lowest = group.cases[i] == lowest;
    rows.push_back(std::move(row));
  }
  return rows;
}

// As they come in the timelines.
void add_phases(GroupView& view) {
  for (const auto& row : view.rows) {
    if (!row.timeline) continue;
    for (const auto& band : row.timeline->bands)
      if (std::ranges::find(view.phases, band.phase, &PhaseLegendView::phase) == view.phases.end())
        view.phases.push_back({band.phase, band.label});
  }
}

void add_flags(const Group& group, GroupView& view) {
  const auto some = [&](auto is) { return std::ranges::any_of(view.rows, is); };
  const auto some_case = [&](auto is) {
    return std::ranges::any_of(group.cases, [&](const CaseResult* result) { return is(*result); });
  };
  view.reference_out = group.reference_out != nullptr;
  view.emulated = some_case(records::is_emulated);
  view.has_throughput = some_case([](auto& result) { return result.throughput.has_value(); });
  view.has_tokens = some_case(
      [](auto& result) { return result.throughput && result.throughput->tokens_per_second; });
  view.has_published = some([](auto& row) { return !row.published_memory.empty(); });
  view.has_published_throughput = some([](auto& row) { return !row.published_throughput.empty(); });
  view.has_reserved = some([](auto& row) { return row.reserved.has_value(); });
  const auto is_ok = [](auto& row) { return row.ok; };
  view.has_verdicts = some([](auto& row) { return row.ok && row.verdict && !row.verdict->exact; });
  view.all_exact = some(is_ok) &&
                   !some([](auto& row) { return row.ok && (!row.verdict || !row.verdict->exact); });
  view.has_equivalence = some([](auto& row) { return row.equivalence.has_value(); });
  view.has_bars = some([](auto& row) { return !row.segments.empty(); });
  view.has_timelines = some([](auto& row) { return row.timeline.has_value(); });
  view.has_whys = some([](auto& row) { return !row.why.empty(); });
  view.has_data = some([](auto& row) { return !row.data.empty(); });
  view.has_lines = some([](auto& row) { return row.lines.has_value(); });
  add_phases(view);
}

// What the rows are: a program has no stack.
const char* row_heading(const Group& group) {
  const auto has_stack = [](const CaseResult* result) {
    return facts_of(result->spec.kind).has_stack;
  };
  if (std::ranges::all_of(group.cases, has_stack)) return "Strategy";
  return std::ranges::none_of(group.cases, has_stack) ? "Program" : "Case";
}

void add_heading(const Group& group, bool names_run, GroupView& view) {
  const records::CaseSpec& spec = group.cases.front()->spec;
  const bool programs = group.cases.size() > 1 && !facts_of(spec.kind).has_stack;
  view.model = programs ? "Programs" : printable(selection_text(spec.model));
  view.device = printable(spec.device);
  view.dtype = printable(spec.dtype);
  view.batch_size = grouped(spec.batch_size);
  view.settings = settings_view(records::plain_values(spec));
  if (programs)
    std::erase_if(view.settings, [](const SettingView& setting) {
      return setting.name == records::row_of(records::Axis::kKind).name;
    });
  if (names_run) view.run_title = printable(group.run->title);
  view.row_heading = row_heading(group);
  view.reference =
      printable(group.reference ? row_name(group.reference->spec) : group.run->reference);
  for (const CaseResult* result : group.cases)
    if (result->emulation) view.card = printable(result->emulation->card);
  view.cards = cards_of(group);
}

void add_charts(const Group& group, const Anatomies& anatomies, GroupView& view) {
  view.axis_gib = gib(widest_bar(group));
  view.bar_ticks = ticks_view(0, static_cast<double>(widest_bar(group)) / kGiB, 5);
  view.categories = legend(group, anatomies);
  view.pareto = pareto_view(group);
  view.work = work_view(group);
  view.ablation = ablation_view(group);
}

// One picture has the flame graphs of all rows, one below the other.
void place_flames(GroupView& view) {
  constexpr int kHeading = 2;
  int levels = 0;
  for (RowView& row : view.rows) {
    if (!row.lines) continue;
    row.lines->top = std::to_string(levels);
    levels += std::stoi(row.lines->levels) + kHeading;
  }
  view.flame_levels = std::to_string(levels);
}

// Pictures beside the Markdown: what each is called.
void name_pictures(const std::string& stem, GroupView& view) {
  if (view.has_bars) view.peak_picture = "peak-" + stem + ".svg";
  if (view.has_timelines) view.timeline_picture = "timeline-" + stem + ".svg";
  if (view.has_lines) view.flame_picture = "flame-" + stem + ".svg";
  if (view.pareto) view.pareto_picture = "pareto-" + stem + ".svg";
}

// A few counters on the host are no offload.
bool is_more_than_a_little(std::int64_t bytes, std::int64_t peak) {
  constexpr std::int64_t kMiB = 1 << 20;
  return bytes >= kMiB || (bytes > 0 && bytes >= peak / 100);
}

std::int64_t taken(const CaseResult& result, const std::string& space) {
  if (!result.memory) return 0;
  const auto found = result.memory->spaces.find(space);
  return found == result.memory->spaces.end() ? 0 : found->second.peak_allocated_bytes;
}

std::string column_of(const std::string& space) { return space == "cpu" ? "host" : space; }

std::string words_for(const std::string& space) {
  if (space == "pinned") return "pinned host memory";
  return space == "cpu" ? "host memory" : "on " + space;
}

// Cases whose figures are not what they seem to be: a training that fails, one that is not as
// promised, memory of which some has not been seen.
std::vector<NotFiniteView> not_finite_view(const Group& group) {
  std::vector<NotFiniteView> list;
  for (const CaseResult* result : group.cases) {
    const auto& losses = result->losses;
    const auto first =
        std::ranges::find_if(losses, [](double loss) { return !std::isfinite(loss); });
    if (first == losses.end()) continue;
    list.push_back({.strategy = printable(row_name(result->spec)),
                    .what = std::isnan(*first) ? "not a number" : "infinite",
                    .step = grouped(first - losses.begin() + 1)});
  }
  return list;
}

std::vector<BrokenPromiseView> broken_promises_view(const Group& group) {
  std::vector<BrokenPromiseView> list;
  for (const CaseResult* result : group.cases) {
    if (!ran(*result) || !breaks_promise(*result)) continue;
    const std::string& reason = result->equivalence->reason;
    list.push_back(
        {.strategy = printable(row_name(result->spec)),
         .reason = reason.empty() ? "it differs from the reference's" : printable(reason)});
  }
  return list;
}

std::vector<UnseenMemoryView> unseen_memory_view(const Group& group) {
  std::vector<UnseenMemoryView> list;
  for (const CaseResult* result : group.cases) {
    if (!result->memory || !result->memory->period) continue;
    const auto& [by, steps] = *result->memory->period;
    if (steps <= result->memory->steps) continue;
    list.push_back({.strategy = printable(row_name(result->spec)),
                    .by = printable(by),
                    .period = std::to_string(steps),
                    .steps = grouped(result->memory->steps)});
  }
  return list;
}

void add_beside(const Group& group, GroupView& view) {
  std::set<std::string> spaces;
  for (const CaseResult* result : group.cases) spaces.merge(spaces_beside(*result));
  for (const std::string& space : spaces) {
    const auto label = printable(column_of(space));
    view.beside.push_back({printable(space), label});
    for (std::size_t i = 0; i < group.cases.size(); ++i) {
      const auto bytes = taken(*group.cases[i], space);
      const bool known = group.cases[i]->memory.has_value();
      view.rows[i].beside.push_back({label, known ? gib(bytes) : "", known ? grouped(bytes) : ""});
    }
  }
}

}  // namespace

GroupView group_view(const Group& group, std::size_t index, bool names_run,
                     const Anatomies& anatomies, Sources& sources) {
  GroupView view;
  const auto number = std::to_string(index + 1);
  view.index = std::to_string(index);
  view.anchor = "group-" + number;
  view.rows = rows_view(group, index, anatomies, sources);
  view.row_count = std::to_string(group.cases.size());
  add_heading(group, names_run, view);
  add_flags(group, view);
  add_beside(group, view);
  constexpr std::size_t kPeakAndDifference = 2;
  view.outcome_columns =
      std::to_string(kPeakAndDifference + view.beside.size() + (view.has_reserved ? 1 : 0) +
                     (view.has_verdicts ? 1 : 0) + (view.has_bars ? 1 : 0));
  view.lowest = lowest_view(group);
  view.lowest_same = lowest_same_view(group);
  view.fastest = fastest_view(group);
  // Which of several programs is the smallest is nobody's question.
  if (!records::facts_of(group.cases.front()->spec.kind).has_stack) {
    view.lowest.reset();
    view.lowest_same.reset();
    for (auto& row : view.rows) row.is_lowest = row.is_lowest && group.cases.size() == 1;
  }
  view.left_out = left_out_view(group);
  view.not_finite = not_finite_view(group);
  view.verdict_notes = verdict_notes(group);
  view.broken_promises = broken_promises_view(group);
  view.unseen_memory = unseen_memory_view(group);
  view.more_ranks = more_ranks_view(group);
  view.ranks = ranks_view(group);
  add_timing(group, view);
  add_charts(group, anatomies, view);
  place_flames(view);
  name_pictures(number + "-" + file_stem(view.model), view);
  return view;
}

// Memory that a case takes beside its device's own: pinned host memory of an offload, the host's,
// another card's. Without it an offload would look free.

std::set<std::string> spaces_beside(const CaseResult& result) {
  std::set<std::string> spaces;
  if (!result.memory) return spaces;
  for (const auto& [space, memory] : result.memory->spaces)
    if (space != own_space(result) &&
        is_more_than_a_little(memory.peak_allocated_bytes, result.memory->peak_allocated_bytes))
      spaces.insert(space);
  return spaces;
}

std::string beside_text(const CaseResult& result) {
  std::string text;
  for (const std::string& space : spaces_beside(result))
    text += (text.empty() ? "" : " and ") + gib(taken(result, space)) + " GiB " + words_for(space);
  return printable(text);
}

}  // namespace peakbench::reports
