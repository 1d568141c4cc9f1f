// `peakbench fit`: the largest that fits, and the least memory, found by running.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/errors.h"
#include "base/file.h"
#include "cli/builds.h"
#include "cli/commands.h"
#include "cli/fit_arguments.h"
#include "cli/fit_text.h"
#include "cli/measure.h"
#include "cli/plugins.h"
#include "cli/program_words.h"
#include "cli/progress.h"
#include "cli/python_program.h"
#include "cli/trials.h"
#include "cli/worker.h"
#include "launch/interrupt.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "planning/programs.h"
#include "records/run.h"
#include "reports/run/report.h"
#include "search/advise.h"
#include "search/fit.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using records::Axis;
using search::Along;
using search::State;

constexpr const char* kFitFooter = R"(Examples:
  peakbench fit --model llama-3.1-8b --dtype bf16 --seq 4096 --card a100-40gb,rtx-4090-24gb
  peakbench fit --model qwen2.5-0.5b --strategy baseline --strategy lora --budget 8GiB
  peakbench fit --model gpt2 --strategy baseline --card t4-16gb --batch 4 --largest seq
  peakbench fit --model vit-l-16 --strategy baseline --batch 16 --card all
  peakbench fit --program hf:qwen2.5-7b --dtype bf16 --strategy lora+checkpointing --card rtx-4090-24gb
  peakbench fit --card rtx-4090-24gb --vary batch=1..64 -- python3 train.py --batch {batch}

The largest value is found by running cases on emulated cards: the value shown ran, and the next one did
not. Nothing is extrapolated. If a larger {NAME} of a program takes less memory, the smallest value that
runs is found. --least finds the memory of the smallest card that each case runs in, to 2 MiB. With --batch
and without --largest, the command checks whether that batch fits. Memory for a CUDA context is set aside,
as much as was measured on that card, else on any card; --card CARD,context=0 sets none aside (docs/how-to/fit.md).
Exit codes: 0 something fits; 2 unusable input; 3 nothing fits; 130 interrupted.)";

class FitCommand {
 public:
  FitCommand(World& world, const FitArguments& arguments) : world_(world), arguments_(arguments) {}

  int go() {
    found_.smallest_card = asks_for_smallest_card(arguments_);
    if (arguments_.command.empty())
      ask_of_model();
    else
      ask_of_program();
    const auto title = "fit-" + plan_.request.title;
    if (!arguments_.no_report)
      reports::check_report(
          own_report(world_, arguments_.out.empty() ? folder_for(title) : arguments_.out));
    const auto runner = world_.make_runner(plan_);
    const auto place = arguments_.out.empty() ? make_folder_for(title) : arguments_.out;
    const launch::RunFolder folder(place);
    // Refuses and clears as a run does; the record itself is made with the cases found.
    launch::OpenOptions options;
    options.overwrite = arguments_.overwrite;
    options.is_resumable = false;
    if (!arguments_.overwrite && !folder.holds_run() &&
        files::is_there((fs::path(folder.path()) / records::kFitFile).string()))
      throw ConfigError(
          fmt::format("{} contains the results of an earlier fit. Choose another folder with "
                      "--out, or delete it with --overwrite.",
                      folder.path()));
    launch::open_run(plan_, folder, options);
    const launch::InterruptScope interrupts;
    if (is_to_propose_) propose(*runner, folder);
    search(*runner, folder);
    const bool interrupted = launch::interrupted();
    if (!interrupted) keep(*runner, folder);
    if (!has_run_) write_answer(folder);
    tell(folder, interrupted);
    if (!no_report_.empty())
      throw report_not_written(no_report_, fmt::format("What was found is in {}", folder.path()),
                               folder.path());
    return exit_code(interrupted);
  }

 private:
  void ask_of_model() {
    found_.along = along_of(arguments_);
    auto request = fit_request(arguments_, found_.along);
    found_.title = request.title;
    builds_ = builds_for(world_, request, {.plugins = arguments_.plugins, .devices = any_card});
    ask_python(world_, request);
    auto& stacks = request.lists[Axis::kStrategy];
    is_to_propose_ = request.programs.empty() && stacks.empty();
    // Whatever is wrong is said before anything runs.
    if (is_to_propose_) stacks = {"baseline"};
    plan_cells(request);
  }

  void plan_cells(const planning::Request& request) {
    plan_ = planning::make_plan(request, builds_);
    if (!is_to_propose_ || found_.along != Along::kRank)
      found_.cells = search::cells_of(plan_, found_.along, plugins());
  }

  void propose(launch::Runner& runner, const launch::RunFolder& folder) {
    const auto scratch = scratch_folder(folder.path());
    const search::TrialRunner trials(plan_.request, runner, scratch.path());
    ProposalProgress progress(world_.err, world_.screen, arguments_.quiet,
                              "no --strategy: measuring which stacks are worth a search");
    found_.proposal = search::propose_for(plan_.request, found_.along, builds_.front(), trials,
                                          jobs_of(arguments_.jobs),
                                          [&](const std::string& text) { progress.say(text); });
    is_to_propose_ = false;
    auto request = plan_.request;
    request.lists[Axis::kStrategy] = found_.proposal->stacks;
    plan_cells(request);
  }

  const planning::Found& plugins() const { return builds_.front().plugins; }

  void ask_of_program() {
    const auto vary = vary_of(arguments_);
    arguments_.command = runnable(arguments_.command);
    planning::Request request;
    request.programs = {fit_program(arguments_, vary)};
    const auto& program = request.programs.front();
    planning::check_is_there(program, planning::cases_of(program).front());
    request.title = program.name;
    request.repetitions = 0;
    request.assume = arguments_.assume;
    request.second_guesses = arguments_.second_guesses;
    if (arguments_.timeout_s) request.timeout_s = *arguments_.timeout_s;
    builds_ = builds_for(world_, request, {.devices = any_card});
    plan_ = planning::make_plan(request, builds_);
    found_.along = vary ? Along::kProgram : Along::kNothing;
    found_.axis = vary ? vary->axis : "";
    found_.cells =
        search::cells_of(program, found_.axis, vary ? vary->limits : search::Limits{}, plan_);
    found_.title = program.name;
  }

  void search(launch::Runner& runner, const launch::RunFolder& folder) {
    const auto scratch = scratch_folder(folder.path());
    const search::TrialRunner trials(plan_.request, runner, scratch.path());
    search::FitOptions options;
    options.cell.beside = static_cast<int>(arguments_.check);
    options.cell.least_memory = arguments_.least;
    options.jobs = jobs_of(arguments_.jobs);
    options.until_one_fits = found_.smallest_card;
    const auto lanes = found_.smallest_card ? search::lanes_by_card(found_.cells)
                                            : search::lane_each(found_.cells.size());
    const auto progress = make_fit_progress(world_.err, world_.screen, arguments_.quiet, found_);
    found_.answers = search::search_cells(found_.cells, lanes, options, trials, *progress);
    search::take_back_broken(found_.cells, found_.answers,
                             [&](const records::CaseResult& found, const std::string& stack) {
                               return run_with(trials, found, stack);
                             });
  }

  // Without a limit on the card's memory.
  std::optional<records::CaseResult> run_with(const search::TrialRunner& trials,
                                              const records::CaseResult& found,
                                              const std::string& stack) const {
    auto request = search::request_of(found, {}, "");
    request.lists[Axis::kStrategy] = {stack};
    request.steps = plan_.request.steps;
    const auto plan = planning::make_plan(request, builds_);
    return trials.run(search::with_memory(plan.cases.front(), search::kNoLimitBytes), {});
  }

  // The cases that were found, once more and traced: a run like any other.
  void keep(launch::Runner& runner, const launch::RunFolder& folder) {
    auto kept = plan_;
    kept.cases.clear();
    for (std::size_t i = 0; i < found_.cells.size(); ++i)
      if (const auto value = kept_value(i)) {
        auto planned = found_.cells[i].with_value(*value);
        if (std::ranges::none_of(kept.cases, [&](const planning::PlannedCase& one) {
              return one.spec.id == planned.spec.id;
            }))
          kept.cases.push_back(std::move(planned));
      }
    if (kept.cases.empty()) return;
    has_run_ = true;
    launch::SessionOptions options;
    options.command = without_environment(world_.typed);
    complete(options, plugins(), arguments_.jobs);
    const auto progress = make_progress(world_.err, world_.err, world_.screen, true);
    auto run = launch::run_plan(kept, folder, options, runner, *progress);
    for (std::size_t i = 0; i < found_.cells.size(); ++i) add_least_memory(i, run);
    records::write_run(run, folder.path());
    run_created_ = run.created;
    write_answer(folder);  // the report shows it
    if (arguments_.no_report || run.status != "complete") return;
    try {
      reports::write_reports({folder.path()}, own_report(world_, folder.path()));
    } catch (const ConfigError& error) {
      no_report_ = error.what();  // the answer is said first
    }
  }

  std::optional<std::int64_t> kept_value(std::size_t i) const {
    const auto& answer = found_.answers[i];
    if (answer.value) return answer.value;
    if (answer.state != State::kDoesNotFit || found_.smallest_card) return std::nullopt;
    return answer.first;
  }

  void add_least_memory(std::size_t i, records::Run& run) const {
    const auto value = kept_value(i);
    if (!value) return;
    const auto id = found_.cells[i].with_value(*value).spec.id;
    for (auto& one : run.cases) {
      if (one.spec.id != id) continue;
      if (one.memory) one.memory->least_memory_bytes = found_.answers[i].least.bytes;
      if (one.out_of_memory) one.out_of_memory->least_memory_bytes = found_.answers[i].least.bytes;
    }
  }

  nlohmann::ordered_json as_json() const {
    nlohmann::ordered_json json{
        {"title", found_.title},
        {"largest", found_.along == Along::kProgram ? found_.axis : search::word_of(found_.along)},
        {"label", axis_label(found_)},
        {"run_created", run_created_},
        {"answer", fit_answer(found_)}};
    auto& cells = json["cells"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < found_.cells.size(); ++i) {
      auto& cell = cells.emplace_back(search::to_json(found_.cells[i], found_.answers[i]));
      cell["row"] = row_of_cell(found_, found_.cells[i]);
      cell["card"] = found_.cells[i].card;
    }
    auto& left_out = json["left_out"] = nlohmann::ordered_json::array();
    if (!found_.proposal) return json;
    json["proposed_at"] = found_.proposal->measured_at;
    for (const auto& one : found_.proposal->left_out)
      left_out.push_back({{"stack", one.stack}, {"reason", one.reason}});
    return json;
  }

  void write_answer(const launch::RunFolder& folder) const {
    files::write_json_file((fs::path(folder.path()) / records::kFitFile).string(), as_json());
  }

  void tell(const launch::RunFolder& folder, bool interrupted) {
    if (!arguments_.format.is_text()) {
      auto json = as_json();
      if (arguments_.format.name == "csv")
        for (auto& cell : json["cells"]) cell.erase("trials");
      world_.out << arguments_.format.of(json, "cells");
    } else if (arguments_.quiet) {
      world_.out << fit_answer(found_, world_.line_width);
    } else {
      world_.out << fit_text(found_, world_.out_width, world_.line_width)
                 << fmt::format("\nResults: {}/fit.json{}\n", folder.path(),
                                has_run_ ? ", run.json" : "");
      if (has_run_ && !arguments_.no_report && no_report_.empty() && !interrupted)
        world_.out << fmt::format("Report:  {}/report/index.html\n", folder.path());
    }
    world_.out << std::flush;
  }

  int exit_code(bool interrupted) const {
    if (interrupted) return kInterrupted;
    const auto is_decided = [](const search::Cell& cell) { return !cell.not_run.empty(); };
    if (std::ranges::all_of(found_.cells, is_decided)) return kUnusableInput;
    const bool any = std::ranges::any_of(
        found_.answers, [](const search::CellAnswer& one) { return one.value.has_value(); });
    return any ? kDone : kEveryCaseFailed;
  }

  World& world_;
  FitArguments arguments_;
  std::vector<planning::Build> builds_;
  planning::Plan plan_;
  FitFound found_;
  bool is_to_propose_ = false;  // no stack was named
  bool has_run_ = false;        // there were cases to keep
  std::string run_created_ = {};
  std::string no_report_ = {};  // why there is none though there should be
};

}  // namespace

Command add_fit(CLI::App& app, World& world) {
  auto* command = subcommand(app, "fit", "Find the largest batch that fits a card", kFitFooter);
  const auto arguments = std::make_shared<FitArguments>();
  add_fit_options(*command, *arguments);
  return [&world, arguments] { return FitCommand(world, *arguments).go(); };
}

}  // namespace peakbench::cli
