#include "reports/report/view.h"

#include <algorithm>
#include <set>

#include "reports/render/fields.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/report/settings.h"
#include "result/axes.h"
#include "result/device.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using result::CaseResult;
using result::Run;

bool ran(const CaseResult& result) { return result.status == result::Status::kOk; }

template <typename Members, typename Predicate>
bool any(const Members& members, Predicate predicate) {
  return std::any_of(members.begin(), members.end(), predicate);
}

json group_key(const CaseResult& result) {
  return result::all_but(result.spec, result::Axis::kStrategy);
}

json legend(const Group& group, const Anatomies& anatomies) {
  std::set<std::string> present;
  for (const CaseResult* result : group.cases) {
    if (const auto found = anatomies.find(result); found != anatomies.end())
      for (const std::string& category : categories_of(found->second)) present.insert(category);
    if (!result->memory) continue;
    for (const auto& [category, bytes] : result->memory->at_peak) {
      if (bytes != 0) present.insert(category);
    }
  }
  json list = json::array();
  for (const std::string& category : in_stacking_order({present.begin(), present.end()})) {
    list.push_back({{"category", printable(category)},
                    {"label", printable(category_label(category))},
                    {"colour", category_colour(category)},
                    {"column", std::to_string(list.size() % 5)},
                    {"line", std::to_string(list.size() / 5)}});
  }
  return list;
}

std::string against(double ours, double reference) {
  return reference == 0 ? "" : signed_percent(ours / reference - 1);
}

// What does not train as it promised is no answer, however little it needs.
template <typename Figure>
const CaseResult* least(const Group& group, Figure figure) {
  const CaseResult* best = nullptr;
  for (const CaseResult* result : group.cases) {
    if (!ran(*result) || breaks_promise(*result) || !figure(*result)) continue;
    if (!best || *figure(*result) < *figure(*best)) best = result;
  }
  return best;
}

std::optional<std::int64_t> peak_of(const CaseResult& result) {
  return result.memory ? std::optional(result.memory->peak_allocated_bytes) : std::nullopt;
}

std::optional<std::int64_t> step_of(const CaseResult& result) {
  return result.throughput ? std::optional(result.throughput->step_ns.median) : std::nullopt;
}

// Of rounds too few for an interval noise may be all there is: then none is called the fastest.
const CaseResult* fastest_of(const Group& group) {
  const CaseResult* best = least(group, step_of);
  return best && has_intervals(*best, group) ? best : nullptr;
}

std::optional<std::int64_t> peak_of_same_training(const CaseResult& result) {
  return trains_differently(result) ? std::nullopt : peak_of(result);
}

json lowest_view(const CaseResult* lowest, const Group& group) {
  if (!lowest) return false;
  const std::int64_t bytes = *peak_of(*lowest);
  json view = best_view(*lowest, group);
  view["gib"] = gib(bytes);
  view["bytes"] = grouped(bytes);
  if (const auto reserved = lowest->memory->peak_reserved_bytes) view["reserved"] = gib(*reserved);
  if (lowest != group.reference && group.reference && group.reference->memory) {
    view["percent"] =
        against(static_cast<double>(bytes), static_cast<double>(*peak_of(*group.reference)));
    view["time"] = time_view(*lowest, group);
    if (view["time"].is_object()) view["step_percent"] = view["time"]["percent"];
  }
  return view;
}

json left_out_view(const Group& group) {
  json list = json::array();
  for (const CaseResult* result : group.cases)
    if (ran(*result) && breaks_promise(*result))
      list.push_back({{"strategy", printable(stack_text(result->spec))}, {"first", list.empty()}});
  return list;
}

// Where the reference itself trains another problem, nothing is said of who trains as it does.
json lowest_same_view(const CaseResult* lowest, const Group& group) {
  const CaseResult* same = least(group, peak_of_same_training);
  const bool known = !group.reference || !trains_differently(*group.reference);
  return known && same != lowest && same != group.reference ? lowest_view(same, group)
                                                            : json(false);
}

// The real cards that the group's cases ran on, with their memory; one, unless a run was resumed
// elsewhere.
std::string cards_of(const Group& group) {
  std::string text;
  std::set<std::string> seen;
  for (const CaseResult* result : group.cases) {
    const std::string name = fact_of(*result, *group.run, "card");
    const bool real = result::recorded_device(result->spec.device).is_card &&
                      fact_of(*result, *group.run, "emulated") != "true";
    if (!real || name.empty() || !seen.insert(real_card_of(*result, *group.run)).second) continue;
    const auto& memory = device_facts(*result).value("card_memory_bytes", json());
    text += (text.empty() ? "" : "; ") + name;
    if (memory.is_number_integer()) text += ", " + gib(memory.get<std::int64_t>()) + " GiB";
  }
  return printable(text);
}

json rows_view(const Group& group, std::size_t index, const Anatomies& anatomies,
               Sources& sources) {
  const CaseResult* lowest = least(group, peak_of);
  const CaseResult* fastest = fastest_of(group);
  json rows = json::array();
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    json row = row_view(*group.cases[i], group, sources);
    add_anatomy(*group.cases[i], group, anatomies, row);
    row["index"] = std::to_string(i);
    row["number"] = std::to_string(i + 1);
    row["anchor"] = "group-" + std::to_string(index + 1) + "-" + std::to_string(i + 1);
    row["is_lowest"] = group.cases[i] == lowest;
    row["is_fastest"] = group.cases[i] == fastest;
    rows.push_back(std::move(row));
  }
  return rows;
}

json group_flags(const Group& group, const json& rows) {
  const auto some = [&](const char* field) {
    return any(rows,
               [field](const json& row) { return row.contains(field) && !row[field].empty(); });
  };
  return {
      {"has_reference", group.reference != nullptr},
      {"emulated", any(group.cases, [](const CaseResult* c) { return result::is_emulated(*c); })},
      {"has_throughput",
       any(group.cases, [](const CaseResult* c) { return c->throughput.has_value(); })},
      {"has_tokens",
       any(group.cases,
           [](const CaseResult* c) { return c->throughput && c->throughput->tokens_per_second; })},
      {"has_published", some("published_memory")},
      {"has_published_throughput", some("published_throughput")},
      {"has_reserved", some("reserved")},
      {"has_equivalence", some("equivalence")},
      {"has_bars", some("segments")},
      {"has_timelines", any(rows,
                            [](const json& row) {
                              return row.contains("timeline") && row["timeline"].is_object();
                            })},
      {"has_whys", some("why")},
      {"has_data", some("data")},
      {"has_spaces", any(group.cases, [](const CaseResult* c) {
         return c->memory && c->memory->spaces.size() > 1;
       })}};
}

json group_view(const Group& group, std::size_t index, bool several_runs,
                const Anatomies& anatomies, Sources& sources) {
  const result::CaseSpec& spec = group.cases.front()->spec;
  json rows = rows_view(group, index, anatomies, sources);
  json view = group_flags(group, rows);
  const auto number = std::to_string(index + 1);
  const std::string stem = number + "-" + file_stem(selection_text(spec.model));
  view["index"] = std::to_string(index);
  view["anchor"] = "group-" + number;
  view["model"] = printable(selection_text(spec.model));
  view["device"] = printable(spec.device);
  view["dtype"] = printable(spec.dtype);
  view["batch_size"] = grouped(spec.batch_size);
  if (spec.sequence_length) view["sequence_length"] = grouped(*spec.sequence_length);
  view["settings"] = settings_view(result::plain_values(spec));
  if (several_runs) view["run_title"] = printable(group.run->title);
  view["reference"] = printable(group.run->reference);
  for (const CaseResult* result : group.cases) {
    if (result->emulation) view["card"] = printable(result->emulation->card);
  }
  view["cards"] = cards_of(group);
  add_beside(group, rows, view);
  constexpr std::size_t kPeakAndDifference = 2;
  view["outcome_columns"] = std::to_string(kPeakAndDifference + view["beside"].size() +
                                           (view["has_reserved"].get<bool>() ? 1 : 0) +
                                           (view["has_bars"].get<bool>() ? 1 : 0));
  view["row_count"] = std::to_string(group.cases.size());
  const CaseResult* lowest = least(group, peak_of);
  view["lowest"] = lowest_view(lowest, group);
  view["lowest_same"] = lowest_same_view(lowest, group);
  view["left_out"] = left_out_view(group);
  view["has_left_out"] = !view["left_out"].empty();
  view["fastest"] = fastest_view(fastest_of(group), group);
  view["not_finite"] = not_finite_view(group);
  const auto axis = static_cast<double>(widest_bar(group)) / (1024.0 * 1024 * 1024);
  view["axis_gib"] = gib(widest_bar(group));
  view["bar_ticks"] = ticks_view(0, axis, 5);
  view["categories"] = legend(group, anatomies);
  view["has_legend"] = !view["categories"].empty();
  view["pareto"] = pareto_view(group);
  if (view["has_bars"].get<bool>()) view["peak_picture"] = "peak-" + stem + ".svg";
  if (view["has_timelines"].get<bool>()) view["timeline_picture"] = "timeline-" + stem + ".svg";
  if (view["pareto"].is_object()) view["pareto_picture"] = "pareto-" + stem + ".svg";
  view.update(timing_view(group, rows));
  view["ablation"] = ablation_view(group);
  view["has_ablation"] = !view["ablation"].empty();
  view["rows"] = std::move(rows);
  return view;
}

// Of those that were asked for.
template <typename Predicate>
std::size_t count_cases(const std::vector<Run>& runs, Predicate predicate) {
  std::size_t count = 0;
  for (const Run& run : runs)
    for (const CaseResult& result : run.cases)
      if (result.added_for.empty() && predicate(result)) ++count;
  return count;
}

std::string unless_zero(std::size_t count) {
  return count ? grouped(static_cast<std::int64_t>(count)) : "";
}

void add_counts(const std::vector<Run>& runs, json& view) {
  const std::size_t all = count_cases(runs, [](const CaseResult&) { return true; });
  const std::size_t ok = count_cases(runs, ran);
  const std::size_t emulated = count_cases(runs, result::is_emulated);
  json pending = json::array();
  for (const Run& run : runs) {
    for (const std::string& id : run.pending) pending.push_back(printable(id));
  }
  view["one_case"] = all == 1;
  view["case_count"] = grouped(static_cast<std::int64_t>(all));
  view["ok_count"] = grouped(static_cast<std::int64_t>(ok));
  view["failed_count"] = unless_zero(all - ok);
  view["pending_count"] = unless_zero(pending.size());
  view["pending"] = std::move(pending);
  view["has_emulated"] = emulated > 0;
  view["has_measured"] = emulated < all;
  view["mixed"] = emulated > 0 && emulated < all;
}

}  // namespace

nlohmann::json best_view(const CaseResult& best, const Group& group) {
  return {{"strategy", printable(stack_text(best.spec))},
          {"is_reference", &best == group.reference},
          {"different", trains_differently(best)},
          {"claimed", only_claims_training(best)},
          {"beside", beside_text(best)}};
}

bool breaks_promise(const CaseResult& result) {
  return result.equivalence && result.equivalence->verdict == "broken";
}

bool trains_differently(const CaseResult& result) {
  return result.equivalence && trains_differently(*result.equivalence);
}

bool only_claims_training(const CaseResult& result) {
  return result.equivalence && !trains_differently(result) &&
         is_claimed(*result.equivalence, result.spec.id);
}

std::string mark_of(const CaseResult& result) {
  if (breaks_promise(result)) return "not as promised";
  if (trains_differently(result)) return "trains differently";
  return only_claims_training(result) ? "claimed" : "";
}

std::int64_t widest_bar(const Group& group) {
  std::int64_t widest = 1;
  for (const CaseResult* result : group.cases)
    widest = std::max(widest, peak_of(*result).value_or(0));
  return widest;
}

std::vector<Group> group_cases(const std::vector<Run>& runs) {
  std::vector<Group> groups;
  for (const Run& run : runs) {
    std::map<json, std::size_t> places;
    for (const CaseResult& result : run.cases) {
      if (!result.added_for.empty()) continue;
      const auto [found, is_new] = places.try_emplace(group_key(result), groups.size());
      if (is_new) groups.push_back({&run, {}, {}, nullptr});
      Group& group = groups[found->second];
      group.cases.push_back(&result);
      if (ran(result) && stack_text(result.spec) == run.reference) group.reference = &result;
    }
    for (const CaseResult& result : run.cases) {
      const auto found = places.find(group_key(result));
      if (!result.added_for.empty() && found != places.end())
        groups[found->second].added.push_back(&result);
    }
  }
  return groups;
}

std::string Sources::number(const result::Published& published) {
  const std::string source = printable(published.source), url = web_address(published.url);
  for (const json& known : list_) {
    if (known["source"] == source && known["url"] == url) return known["number"];
  }
  const std::string number = std::to_string(list_.size() + 1);
  list_.push_back(
      {{"number", number}, {"anchor", "source-" + number}, {"source", source}, {"url", url}});
  return number;
}

nlohmann::json make_view(const std::vector<Run>& runs, const Anatomies& anatomies) {
  json view = json::object();
  const bool several = runs.size() > 1;
  Sources sources;
  json groups = json::array();
  for (const Group& group : group_cases(runs))
    groups.push_back(group_view(group, groups.size(), several, anatomies, sources));
  json run_views = json::array();
  for (const Run& run : runs) run_views.push_back(run_view(run));
  view["title"] = runs.empty() ? "" : printable(runs.front().title);
  view["created"] = runs.empty() ? "" : printable(date_for_people(runs.front().created));
  view["created_iso"] = runs.empty() ? "" : printable(runs.front().created);
  view["interrupted"] = any(runs, [](const Run& run) { return run.status != "complete"; });
  view["several_runs"] = several;
  add_counts(runs, view);
  view["groups"] = std::move(groups);
  view["sources"] = sources.view();
  view["has_sources"] = !view["sources"].empty();
  view["runs"] = std::move(run_views);
  view["not_measured"] = not_measured_view(runs, anatomies);
  view["has_not_measured"] = !view["not_measured"].empty();
  return complete(view, published_fields());
}

}  // namespace peakbench::reports
