// `peakbench advise`: what to try next against a case's peak, each measured on the spot.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/errors.h"
#include "base/printable.h"
#include "cli/advise_text.h"
#include "cli/builds.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/named_case.h"
#include "cli/option_values.h"
#include "cli/python_program.h"
#include "cli/trials.h"
#include "cli/worker.h"
#include "launch/interrupt.h"
#include "records/device.h"
#include "records/run.h"
#include "reports/analysis/strategies_against.h"
#include "search/advise.h"

namespace peakbench::cli {
namespace {

using records::CaseResult;

constexpr const char* kAdviseFooter = R"(Examples:
  peakbench advise results/vit
  peakbench advise results/llama llama-3.2-1b/baseline/emulated:h100-80gb/fp32/b8/s1024
  peakbench advise results/cpu-run foreach-off --card rtx-4090-24gb

Runs the case again on its emulated card with enough memory, then once with each strategy that may lower
its peak added to its stack. Candidates are the strategies for the largest parts of the peak and all
strategies of your plugins. CASE is an id, a slug or, if unambiguous, a stack of strategies.
Exit codes: 0 done; 2 no such case, or a case that cannot be run this way; 3 the case does not run; 130
interrupted.)";

struct AdviseArguments {
  std::string run, wanted, card;
  std::vector<std::string> plugins;
  std::optional<std::int64_t> jobs;
  bool quiet = false;
  OutputFormat format;
};

bool is_python(const CaseResult& result) { return result.spec.kind == records::CaseKind::kPython; }

bool can_be_advised(const CaseResult& result) {
  return result.spec.kind != records::CaseKind::kProgram &&
         (result.status == records::Status::kOk || result.status == records::Status::kOutOfMemory);
}

const CaseResult& case_of(const records::Run& run, const AdviseArguments& arguments) {
  const auto& result = named_case(
      run, {.run = arguments.run,
            .name = arguments.wanted,
            .serves = can_be_advised,
            .no_case = "no case of this run was measured with a stack of strategies; for a "
                       "program of yours, `peakbench train.py` names one thing to try"});
  if (result.spec.kind == records::CaseKind::kProgram)
    throw ConfigError(
        fmt::format("{} is a program of yours: strategies are added to Peakbench's own models. "
                    "`peakbench train.py` names one thing to try for a program",
                    result.spec.id));
  if (is_python(result) && result.spec.model.id.find(':') == std::string::npos)
    throw ConfigError(
        fmt::format("{} is a function of yours, and the run does not say where it is; try "
                    "strategies with `peakbench run --program FILE.py:{} --strategy NAME`",
                    result.spec.id, result.spec.model.id));
  if (!can_be_advised(result))
    throw ConfigError(
        fmt::format("{} ended {}: {}", result.spec.id, to_string(result.status), result.reason));
  return result;
}

std::string device_of(const CaseResult& result, const AdviseArguments& arguments) {
  if (!arguments.card.empty()) return records::emulated_device(arguments.card);
  if (records::device_from(result.spec.device).kind != records::DeviceKind::kEmulated)
    throw ConfigError(
        fmt::format("{} was measured on {}: strategies run on an emulated card; name one, like "
                    "--card h100-80gb",
                    result.spec.id, result.spec.device));
  return "";
}

// Some compute on the host what a card computes, for minutes.
std::int64_t longest_s(const CaseResult& now) {
  constexpr std::int64_t kLeast = 60, kTimes = 5, kNsPerSecond = 1'000'000'000;
  return std::max(kLeast, kTimes * now.wall_ns / kNsPerSecond);
}

// Strategies that do not come with the program.
std::vector<std::string> of_others(const planning::Build& build) {
  std::vector<std::string> ids;
  for (const auto& plugin : build.plugins.plugins) {
    const bool is_own = plugin.path.starts_with(build.worker->plugins + "/");
    if (is_own || plugin.kind != planning::Kind::kStrategy) continue;
    for (const auto& entry : plugin.entries) ids.push_back(entry.id);
  }
  return ids;
}

class AdviseCommand {
 public:
  AdviseCommand(World& world, const AdviseArguments& arguments)
      : world_(world), arguments_(arguments) {}

  int go() {
    const auto run = records::read_run(arguments_.run);
    const auto& measured = case_of(run, arguments_);
    auto request = search::request_of(measured, run, device_of(measured, arguments_));
    const auto build =
        builds_for(world_, request, {.plugins = arguments_.plugins, .devices = any_card}).front();
    ask_python(world_, request);
    // What is wrong is said before anything runs.
    const auto plan = planning::make_plan(request, {&build, 1});
    const auto stack = records::stack_text(plan.cases.front().spec.strategies);
    const auto runner = world_.make_runner(plan);
    const auto scratch = scratch_folder(std::filesystem::temp_directory_path());
    const launch::InterruptScope interrupts;
    ProposalProgress progress(world_.err, world_.screen, arguments_.quiet,
                              "trying the strategies that are meant for its peak");
    const auto attempt = [&](const std::vector<std::string>& strategies) {
      const search::TrialRunner trials(request, *runner, scratch.path());
      const auto plan_with = [&](const std::string& other) {
        if (other == stack) return plan.cases.front();
        auto changed = request;
        if (is_python(measured))
          changed.programs.front() = with_stack(request, other);
        else
          changed.lists[records::Axis::kStrategy] = {other};
        ask_python(world_, changed);
        return planning::make_plan(changed, {&build, 1}).cases.front();
      };
      return search::try_each(stack, strategies, plan_with, trials, jobs_of(arguments_.jobs),
                              [&](const std::string& text) { progress.say(text); });
    };
    Advice advice;
    advice.id = measured.spec.id;
    advice.ran_out = measured.status == records::Status::kOutOfMemory && arguments_.card.empty();
    advice.card =
        records::card_text(records::device_from(request.lists.at(records::Axis::kDevice).front()));
    advice.now = attempt({""}).front();
    if (!advice.now.found && launch::interrupted()) return kInterrupted;
    if (!advice.now.found) {
      world_.err << fmt::format("peakbench: {} fails even on a card without a memory limit: {}\n",
                                printable(measured.spec.id), printable(advice.now.why_not));
      return kEveryCaseFailed;
    }
    request.timeout_s = longest_s(*advice.now.found);
    auto strategies = analysis::strategies_to_try(*advice.now.found, of_others(build));
    if (is_python(measured)) {
      const auto& offered = request.programs.front().python->offered;
      std::erase_if(strategies, [&](const std::string& id) {
        return std::ranges::find(offered, id) == offered.end();
      });
    }
    advice.tried = attempt(strategies);
    search::leave_out_broken(advice.tried, advice.now);
    world_.out << (arguments_.format.is_text() ? advice_text(advice, world_.out_width)
                                               : arguments_.format.of(to_json(advice), "tried"))
               << std::flush;
    return launch::interrupted() ? kInterrupted : kDone;
  }

 private:
  static planning::Program with_stack(const planning::Request& request, const std::string& stack) {
    auto program = request.programs.front();
    program.python->cases.clear();
    program.python->strategies = {stack};
    return program;
  }

  World& world_;
  const AdviseArguments& arguments_;
};

}  // namespace

Command add_advise(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "advise", "Try strategies that may lower a case's peak, and show what each saves",
      kAdviseFooter);
  const auto arguments = std::make_shared<AdviseArguments>();
  add_value(*command, "run", arguments->run, "Run folder, or its run.json", "RUN")->required();
  add_value(*command, "case", arguments->wanted, "Case; optional if the run has only one", "CASE");
  add_value(*command, "--card", arguments->card,
            "Emulated card to run on (default: the case's own)", "CARD");
  add_value(*command, "--plugins", arguments->plugins, "Folder with more plugins (can be repeated)",
            "DIR");
  add_jobs(*command, arguments->jobs, "Strategies to run at a time");
  command->add_flag("-q,--quiet", arguments->quiet, "Print only the advice and errors");
  add_output_format(*command, arguments->format);
  add_torch(*command, world);
  return [&world, arguments] { return AdviseCommand(world, *arguments).go(); };
}

}  // namespace peakbench::cli
