// `peakbench ab`: two builds timed in turn, and whether one is slower.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "cli/ab_arguments.h"
#include "cli/commands.h"
#include "devices/hook.h"
#include "errors/errors.h"
#include "files/file.h"
#include "files/own_file.h"
#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/pairs.h"
#include "launch/run_folder.h"
#include "reports/compare/ab.h"
#include "reports/render/format.h"
#include "result/axes.h"
#include "result/device.h"
#include "result/gate_policy.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResult = "ab.json";

constexpr const char* kFooter = R"(Examples:
  peakbench ab build/main build/change --model vit-b-16 --strategy baseline
  peakbench ab build build --model vit-b-16 --strategy baseline --pairs 40 --seed 7
  peakbench ab build build --model vit-b-16 --strategy baseline --new-strategy foreach-off
Each pair is a process of each build, one after the other, in random order; what is compared is the
ratio of their median steps (docs/compare.md). `unknown` says how many more pairs are needed.
Exit codes: 0 measured, whatever came out; 2 unusable input; 3 no case was measured; 4 with --gate: a
case is worse; 130 interrupted, what was measured is written.)";

struct Build {
  std::string folder;
  manifest::Found plugins;
  std::unique_ptr<launch::ProcessRunner> runner;
  plan::Plan plan;
};

std::string utc_now(const char* format) {
  return fmt::format(fmt::runtime(format), fmt::gmtime(std::time(nullptr)));
}

class AbCommand {
 public:
  AbCommand(World& world, const AbArguments& arguments, const std::vector<std::string>& typed)
      : world_(world), arguments_(arguments) {
    result::set_gate(policy_, "throughput", arguments.margin, "--margin");
    result::set_gate(policy_, "false_alarms", arguments.false_alarms, "--false-alarms");
    if (!policy_.throughput) throw ConfigError("--margin: expected a part of the step, like 2%");
    found_.command = typed;
  }

  int go() {
    check_device();
    const auto base = open(arguments_.base, true), now = open(arguments_.now, false);
    check_pairs(base.plan.cases, now.plan.cases);
    folder_ = arguments_.out.empty() ? utc_now("results/ab-{:%Y%m%dT%H%M%SZ}") : arguments_.out;
    make_folder();
    describe();
    const launch::InterruptScope interrupts;
    bool interrupted = false;
    for (std::size_t i = 0; i < base.plan.cases.size() && !interrupted; ++i)
      interrupted = measure(base, now, i);
    files::write_file_atomically((fs::path(folder_) / kResult).string(),
                                 files::marked(kResult, json_text() + "\n"));
    show();
    return interrupted ? kInterrupted : exit_code();
  }

 private:
  void check_device() const {
    if (!result::recorded_device(arguments_.device).has_times)
      throw ConfigError(fmt::format(
          "--device {}: an emulated card computes nothing and has no times; time on cpu or cuda:0",
          arguments_.device));
  }

  // Cases are paired by their places. A stack that is there twice is planned once, and the builds'
  // models may have other defaults.
  static void check_pairs(const std::vector<plan::PlannedCase>& base,
                          const std::vector<plan::PlannedCase>& now) {
    if (base.size() != now.size())
      throw ConfigError(fmt::format(
          "BASE has {} cases and NEW {}, so they cannot be compared one by one. Name each stack "
          "once.",
          base.size(), now.size()));
    for (std::size_t i = 0; i < base.size(); ++i)
      if (!same_but(base[i].spec, now[i].spec, result::Axis::kStrategy))
        throw ConfigError(fmt::format(
            "{} in BASE and {} in NEW differ in more than their strategies. Name what their "
            "defaults differ in, like the sequence length (--seq).",
            base[i].spec.id, now[i].spec.id));
  }

  void make_folder() const {
    files::refuse_strangers(folder_, {kResult});
    const fs::path root = folder_;
    const bool ours = files::is_there((root / kResult).string());
    for (const char* side : {"base", "new"})
      if (const auto path = (root / side).string(); !ours && !files::holds_nothing(path))
        throw ConfigError(
            fmt::format("{} is there, and {} holds no {} that it could belong to. Nothing was "
                        "touched; move it, or choose another folder with --out.",
                        path, folder_, kResult));
    launch::RunFolder{folder_};
  }

  Build open(const std::string& folder, bool is_base) {
    Build build;
    build.folder = folder;
    const fs::path root = folder;
    if (!files::is_there((root / "bin/peakbench-worker").string()))
      throw ConfigError(fmt::format(
          "{}: no bin/peakbench-worker there. Name the folder that Peakbench is installed in, or "
          "a build folder like build/release.",
          folder));
    build.runner =
        std::make_unique<launch::ProcessRunner>((root / "bin/peakbench-worker").string());
    std::vector<std::string> folders{(root / "lib/peakbench/plugins").string()};
    const auto& own = is_base ? arguments_.base_plugins : arguments_.new_plugins;
    folders.insert(folders.end(), arguments_.plugins.begin(), arguments_.plugins.end());
    folders.insert(folders.end(), own.begin(), own.end());
    build.plugins = manifest::discover(folders);
    for (const auto& problem : build.plugins.problems)
      world_.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
    build.plan =
        plan::make_plan(ab_request(arguments_, is_base), build.plugins, devices::device_hook(""));
    for (const auto& planned : build.plan.cases)
      if (planned.decided)
        throw ConfigError(fmt::format("{} in {}: {}", planned.spec.id, folder, planned.reason));
    return build;
  }

  void describe() {
    found_.base = arguments_.base;
    found_.now = arguments_.now;
    found_.created = utc_now("{:%Y-%m-%dT%H:%M:%SZ}");
    found_.environment = launch::host_environment();
    if (double load = 0; getloadavg(&load, 1) == 1) found_.environment["load_average"] = load;
    found_.pairs = arguments_.pairs;
    found_.seed = arguments_.seed;
    found_.steps = arguments_.steps;
    found_.warmup = arguments_.warmup;
    found_.threads = arguments_.threads;
    found_.margin = *policy_.throughput;
    found_.false_alarms = policy_.false_alarms;
  }

  launch::PairSide side(const Build& build, std::size_t index, const char* name) const {
    launch::PairSide side;
    side.order.planned = &build.plan.cases[index];
    side.order.request = &build.plan.request;
    side.order.run_directory = (fs::path(folder_) / name).string();
    side.runner = build.runner.get();
    return side;
  }

  // True: interrupted.
  bool measure(const Build& base, const Build& now, std::size_t index) {
    const launch::PairsOrder order{side(base, index, "base"), side(now, index, "new"),
                                   arguments_.pairs, arguments_.seed};
    std::int64_t count = 0;
    const auto end = launch::run_pairs(order, [&](const launch::Pair& pair) {
      if (arguments_.quiet) return;
      world_.err << fmt::format("[{}/{}] {} -> {} ms, {} first\n", ++count, arguments_.pairs,
                                reports::milliseconds(pair.base.step_ns.median),
                                reports::milliseconds(pair.now.step_ns.median),
                                pair.base_first ? "BASE" : "NEW");
    });
    compare::AbCase one{
        base.plan.cases[index].spec.id, now.plan.cases[index].spec.id, {}, end.problem, {}};
    for (const auto& pair : end.pairs)
      one.pairs.push_back({pair.base_first, pair.base.step_times_ns, pair.now.step_times_ns});
    one.verdict = compare::judge(one.pairs, found_.margin, found_.false_alarms);
    found_.cases.push_back(std::move(one));
    return end.interrupted;
  }

  std::string json_text() const {
    return compare::to_json(found_).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void show() {
    if (arguments_.json) {
      world_.out << json_text() << "\n";
      return;
    }
    world_.out << compare::to_text(found_, world_.out_width)
               << fmt::format("Result: {}/ab.json\n", folder_);
  }

  int exit_code() const {
    bool some = false, worse = false;
    for (const auto& one : found_.cases) {
      some = some || !one.pairs.empty();
      worse = worse || one.verdict.verdict == statistics::Verdict::kWorse;
    }
    if (!some) return kEveryCaseFailed;
    return worse && arguments_.gate ? kRegression : kDone;
  }

  World& world_;
  const AbArguments& arguments_;
  result::GatePolicy policy_;
  compare::AbResult found_;
  std::string folder_;
};

}  // namespace

Command add_ab(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command = app.add_subcommand("ab", "Is one build slower than another? Both timed in turn");
  command->footer(kFooter);
  const auto arguments = std::make_shared<AbArguments>();
  add_ab_options(*command, *arguments);
  return [&world, arguments, &typed] { return AbCommand(world, *arguments, typed).go(); };
}

}  // namespace peakbench::cli
