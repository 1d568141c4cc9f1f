#include "search/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/numbers.h"
#include "emulator/host/card.h"
#include "launch/case.h"
#include "launch/equivalence_check.h"
#include "launch/thread_pool.h"
#include "launch/worker_environment.h"
#include "planning/selection.h"
#include "records/axes.h"
#include "records/case_json.h"
#include "records/device.h"
#include "records/run_files.h"
#include "records/setting.h"

namespace peakbench::search {
namespace {

namespace fs = std::filesystem;

// A card this much smaller than what was allocated elsewhere is not tried: workspaces differ
// between cards, and nothing else does.
constexpr double kSurelyTooSmall = 0.9;

// The case runs with the context set aside: its device says so.
void take_card(const planning::PlannedCase& planned, Cell& cell) {
  cell.card = records::card_text(records::device_from(planned.spec.device));
  const auto card = emulator::parse_card(cell.card, launch::installation_for(worker_of(planned)));
  cell.card_bytes = static_cast<std::int64_t>(card.facts.total_memory_bytes);
  cell.context = emulator::context_taken(card);
  if (cell.usable_bytes() <= 0)
    throw ConfigError(
        fmt::format("{}: a CUDA context takes {}, which leaves nothing of the card's memory: "
                    "{},context=0 sets none aside",
                    cell.card, size_text(cell.context.bytes), cell.card));
  const bool is_said = cell.context.source == emulator::ContextSource::asked;
  cell.planned =
      is_said ? planned : with_context(planned, static_cast<std::int64_t>(cell.context.bytes));
}

void check_emulated(const std::string& device) {
  if (records::device_from(device).kind != records::DeviceKind::kEmulated)
    throw ConfigError(fmt::format(
        "{}: `fit` searches on emulated cards, whose memory can be set: give --card, like "
        "a100-40gb, or --budget",
        device));
}

class CellsAtWork {
 public:
  CellsAtWork(const std::vector<Cell>& cells, const Lanes& lanes, const FitOptions& options,
              const TrialRunner& trials, FitListener& listener)
      : cells_(cells),
        lanes_(lanes),
        options_(options),
        trials_(trials),
        listener_(listener),
        answers_(cells.size()) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      answers_[i].reason = "interrupted";
      answers_[i].first = cells[i].limits.first;
    }
  }

  std::vector<CellAnswer> go() {
    launch::Callbacks callbacks;
    callbacks.started = [this](std::size_t i) { listener_.cell_started(i); };
    callbacks.warning = [this](const std::string& text) { listener_.warning(text); };
    callbacks.ended = [this](std::size_t i) {
      tell_trials();
      listener_.cell_ended(i, answers_[i]);
    };
    callbacks.tick = [this] {
      tell_trials();
      listener_.tick();
    };
    launch::run_in_lanes(
        lanes_, options_.jobs,
        [this](std::size_t i, const launch::Listener& listener) { search(i, listener); },
        callbacks);
    return std::move(answers_);
  }

 private:
  void search(std::size_t i, const launch::Listener& listener) {
    // Of what only says how one run goes nothing is shown.
    const launch::Listener quiet{[](const records::Progress&) {}, listener.tick, listener.warn};
    if (const auto why = why_not_run(i); !why.empty()) {
      answers_[i].reason = why;
    } else {
      answers_[i] = search_cell(
          cells_[i], options_for(i),
          [&](const planning::PlannedCase& planned) { return trials_.run(planned, quiet); },
          [this, i](const Trial& trial) { put(i, trial); });
    }
  }

  const std::vector<std::size_t>& lane_with(std::size_t i) const {
    return *std::ranges::find_if(
        lanes_, [i](const auto& lane) { return std::ranges::find(lane, i) != lane.end(); });
  }

  // Cells of a lane are searched one after another, so that those before are known.
  std::string why_not_run(std::size_t i) const {
    if (!options_.until_one_fits) return "";
    for (const auto before : lane_with(i)) {
      if (before == i) break;
      const auto& answer = answers_[before];
      if (answer.state == State::kFits)
        return fmt::format("a smaller card does: {}", cells_[before].card);
      if (answer.state != State::kDoesNotFit || !answer.found) continue;
      const auto allocated = answer.found->memory->peak_allocated_bytes;
      if (static_cast<double>(cells_[i].usable_bytes()) <
          kSurelyTooSmall * static_cast<double>(allocated))
        return fmt::format("it is smaller than the {} allocated on {} without a limit",
                           gib_text(allocated), cells_[before].card);
    }
    return "";
  }

  CellOptions options_for(std::size_t i) const {
    auto options = options_.cell;
    // What the first of many cards would need, it would on the others, too.
    options.only_what_fits = options_.until_one_fits && lane_with(i).front() != i;
    return options;
  }

  void put(std::size_t i, const Trial& trial) {
    const std::lock_guard lock(mutex_);
    heard_.emplace_back(i, trial);
  }
  void tell_trials() {
    std::vector<std::pair<std::size_t, Trial>> heard;
    {
      const std::lock_guard lock(mutex_);
      heard.swap(heard_);
    }
    for (const auto& [i, trial] : heard) listener_.trial_ended(i, trial);
  }

  const std::vector<Cell>& cells_;
  const Lanes& lanes_;
  const FitOptions& options_;
  const TrialRunner& trials_;
  FitListener& listener_;
  std::vector<CellAnswer> answers_;  // each written by the thread of its lane
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, Trial>> heard_;
};

}  // namespace

TrialRunner::TrialRunner(const planning::Request& request, launch::Runner& runner, fs::path scratch)
    : request_(request), runner_(runner), scratch_(std::move(scratch)) {}

std::optional<records::CaseResult> TrialRunner::run(const planning::PlannedCase& planned,
                                                    const launch::Listener& listener,
                                                    std::optional<std::int64_t> timeout_s) const {
  auto request = request_;
  request.timeout_s = timeout_s.value_or(request_.timeout_s);
  launch::CaseOrder order;
  order.planned = &planned;
  order.request = &request;
  order.run_directory = scratch_.string();
  auto result = launch::try_memory(order, runner_, listener);
  std::error_code ignored;
  fs::remove_all(scratch_ / records::case_folder(planned.spec.slug), ignored);
  return result;
}

std::vector<Cell> cells_of(const planning::Plan& plan, Along along,
                           const planning::Found& plugins) {
  std::vector<Cell> cells;
  std::string why;
  const auto& programs = plan.request.programs;
  const auto python = programs.empty() ? std::nullopt : std::optional(programs.front());
  for (const auto& planned : plan.cases) {
    check_emulated(planned.spec.device);
    auto& cell = cells.emplace_back();
    take_card(planned, cell);
    cell.along = along;
    cell.label = label_of(along);
    if (planned.decided)
      cell.not_run = planned.reason;
    else if (const auto limits = limits_of(planned, along, plugins, cell.not_run))
      cell.limits = *limits;
    if (!planned.decided && !cell.not_run.empty()) why = cell.not_run;
    cell.with_value = [on_card = cell.planned, along, &plugins, python,
                       steps = plan.request.steps](std::int64_t value) {
      auto sized = with_value(on_card, along, value, plugins);
      if (python)
        sized.program->arguments = planning::command_of(*python, sized.spec, steps).arguments;
      return sized;
    };
  }
  const bool none =
      std::ranges::none_of(cells, [](const Cell& one) { return one.not_run.empty(); });
  if (none && !why.empty()) throw ConfigError(fmt::format("--largest {}: {}", word_of(along), why));
  return cells;
}

std::vector<Cell> cells_of(const planning::Program& program, const std::string& axis, Limits limits,
                           const planning::Plan& plan) {
  std::vector<Cell> cells;
  for (const auto& planned : plan.cases) {
    check_emulated(planned.spec.device);
    auto& cell = cells.emplace_back();
    take_card(planned, cell);
    cell.along = axis.empty() ? Along::kNothing : Along::kProgram;
    cell.label = axis;
    cell.limits = limits;
    cell.with_value = [on_card = cell.planned, program, axis](std::int64_t value) {
      auto sized = on_card;
      auto filled = program;
      if (!axis.empty()) filled.axes = {{axis, {{value, std::to_string(value)}}}};
      const auto one = planning::cases_of(filled).front();
      sized.spec.model = one.selection;
      sized.program = one.command;
      sized.spec.id = planning::case_id(sized.spec);
      sized.spec.slug = planning::slug(sized.spec.id);
      return sized;
    };
  }
  return cells;
}

std::string why_broken(records::CaseResult& found, const records::CaseResult* reference) {
  if (reference != nullptr) launch::compare_gradients(found, *reference);
  const auto& promise = found.equivalence;
  if (!promise || promise->verdict != "broken") return "";
  return "it does not train as it promises: " + promise->reason;
}

void take_back_broken(const std::vector<Cell>& cells, std::vector<CellAnswer>& answers,
                      const RunReference& run_reference) {
  std::map<std::string, std::optional<records::CaseResult>> references;  // by id
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (answers[i].found) references[cells[i].planned.spec.id] = answers[i].found;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto& planned = cells[i].planned;
    auto& found = answers[i].found;
    auto spec = planned.spec;
    spec.strategies = planned.reference;
    const auto id = planning::case_id(spec);
    const bool promises = spec.kind == records::CaseKind::kStrategy &&
                          planned.promise.promise != "different_problem" && id != planned.spec.id;
    if (!found || !found->equivalence || !promises) continue;
    const auto [reference, is_new] = references.try_emplace(id);
    if (is_new) reference->second = run_reference(*found, records::stack_text(planned.reference));
    const auto why = why_broken(*found, reference->second ? &*reference->second : nullptr);
    if (why.empty()) continue;
    answers[i].state = State::kUnknown;
    answers[i].reason = why;
    answers[i].value.reset();
    found.reset();
  }
}

Lanes lane_each(std::size_t cells) {
  Lanes lanes;
  for (std::size_t i = 0; i < cells; ++i) lanes.push_back({i});
  return lanes;
}

Lanes lanes_by_card(const std::vector<Cell>& cells) {
  std::map<std::string, std::size_t> lane_of;
  Lanes lanes;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto others = records::all_but(cells[i].planned.spec, records::Axis::kDevice).dump();
    const auto [found, is_new] = lane_of.try_emplace(others, lanes.size());
    if (is_new) lanes.emplace_back();
    lanes[found->second].push_back(i);
  }
  for (auto& lane : lanes)
    std::ranges::stable_sort(lane, {}, [&](std::size_t i) { return cells[i].card_bytes; });
  return lanes;
}

std::vector<CellAnswer> search_cells(const std::vector<Cell>& cells, const Lanes& lanes,
                                     const FitOptions& options, const TrialRunner& trials,
                                     FitListener& listener) {
  return CellsAtWork(cells, lanes, options, trials, listener).go();
}

namespace {

using nlohmann::ordered_json;
using records::optional_to_json;

ordered_json to_json(const Trial& trial) {
  return {{"value", trial.value},
          {"card_memory_bytes", optional_to_json(trial.memory_bytes)},
          {"status", records::to_string(trial.status)},
          {"peak_allocated_bytes", optional_to_json(trial.allocated_bytes)},
          {"peak_reserved_bytes", optional_to_json(trial.reserved_bytes)},
          {"wall_ns", trial.wall_ns}};
}

ordered_json memory_json(const Cell& cell, const CellAnswer& answer) {
  if (!answer.found || !answer.found->memory) return nullptr;
  const auto& memory = *answer.found->memory;
  const auto room = room_of(cell, answer);
  return {{"peak_allocated_bytes", memory.peak_allocated_bytes},
          {"least_memory_bytes", optional_to_json(answer.least.bytes)},
          {"least_memory_note", answer.least.note},
          {"peak_reserved_bytes", optional_to_json(memory.peak_reserved_bytes)},
          {"peak_phase", memory.peak_phase},
          {"left_bytes", optional_to_json(room.left_bytes)}};
}

ordered_json failure_json(const CellAnswer& answer) {
  if (!answer.failed || !answer.failed_value) return nullptr;
  return {{"value", *answer.failed_value},
          {"reason", answer.failed->reason},
          {"out_of_memory", optional_to_json(answer.failed->out_of_memory)}};
}

}  // namespace

Room room_of(const Cell& cell, const CellAnswer& answer) {
  Room room;
  if (!answer.found || !answer.found->memory) return room;
  const auto& memory = *answer.found->memory;
  room.takes_bytes = answer.least.bytes ? answer.least.bytes : memory.peak_reserved_bytes;
  if (!room.takes_bytes) room.takes_bytes = memory.peak_allocated_bytes;
  room.left_bytes = cell.usable_bytes() - *room.takes_bytes;
  return room;
}

ordered_json to_json(const Cell& cell, const CellAnswer& answer) {
  const auto value = answer.value.value_or(answer.first);
  const auto planned = cell.not_run.empty() ? cell.with_value(value) : cell.planned;
  ordered_json json{
      {"id", planned.spec.id},
      {"state", to_string(answer.state)},
      {"reason", answer.reason},
      {"largest", optional_to_json(answer.is_smallest ? std::nullopt : answer.value)},
      {"smallest", optional_to_json(answer.is_smallest ? answer.value : std::nullopt)},
      {"at_limit", answer.at_limit},
      {"limit_reason", answer.limit_reason}};
  records::append_json(json, planned.spec);
  json["promise"] = planned.promise.promise;
  json["card_memory_bytes"] = cell.card_bytes;
  json["context_bytes"] = cell.context.bytes;
  json["context_source"] = emulator::word_of(cell.context.source);
  json["memory"] = memory_json(cell, answer);
  json["work"] = answer.found ? optional_to_json(answer.found->work) : ordered_json(nullptr);
  json["verdict"] = answer.found && answer.found->emulation && answer.found->emulation->verdict
                        ? records::to_json(*answer.found->emulation)["verdict"]
                        : ordered_json(nullptr);
  json["fails"] = failure_json(answer);
  json["against"] = answer.against;
  auto& trials = json["trials"] = ordered_json::array();
  for (const auto& trial : answer.trials) trials.push_back(to_json(trial));
  return json;
}

}  // namespace peakbench::search
