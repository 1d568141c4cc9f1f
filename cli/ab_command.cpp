// `peakbench ab`: two builds timed in turn, and whether one is slower.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ab/measure.h"
#include "cli/ab_arguments.h"
#include "cli/commands.h"
#include "cli/plugin_folders.h"
#include "errors/errors.h"
#include "json/json_text.h"
#include "launch/interrupt.h"
#include "reports/ab/ab.h"
#include "reports/render/format.h"
#include "result/gate_policy.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

constexpr const char* kAbFooter = R"(Examples:
  peakbench ab build/main build/change --model vit-b-16 --strategy baseline
  peakbench ab build build --model vit-b-16 --strategy baseline --pairs 40 --seed 7
  peakbench ab build build --model vit-b-16 --strategy baseline --new-strategy foreach-off
Each pair is a process of each build, one after the other, in random order; what is compared is the
ratio of their median steps (docs/compare.md). `unknown` says how many more pairs are needed.
Exit codes: 0 measured, whatever came out; 2 unusable input; 3 no case was measured; 4 with --gate: a
case is worse; 130 interrupted, what was measured is written.)";

result::GatePolicy policy_of(const AbArguments& arguments) {
  result::GatePolicy policy;
  result::set_gate(policy, "throughput", arguments.margin, "--margin");
  result::set_gate(policy, "false_alarms", arguments.false_alarms, "--false-alarms");
  if (!policy.throughput) throw ConfigError("--margin: expected a part of the step, like 2%");
  return policy;
}

int exit_code(const ab::Judged& judged, bool gate) {
  const auto& cases = judged.run.cases;
  if (std::ranges::all_of(cases, [](const auto& one) { return one.pairs.empty(); }))
    return kEveryCaseFailed;
  const bool worse = std::ranges::any_of(judged.differences, [](const auto& one) {
    return one.direction == statistics::Direction::kWorse;
  });
  return worse && gate ? kRegression : kDone;
}

class AbCommand {
 public:
  AbCommand(World& world, const AbArguments& arguments) : world_(world), arguments_(arguments) {}

  int go(const std::vector<std::string>& typed) {
    const auto policy = policy_of(arguments_);
    const auto order = ab_order(arguments_, without_environment(typed));
    const auto builds = ab::open_builds(order, [this](const std::string& problem) {
      world_.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
    });
    const launch::InterruptScope interrupts;
    const auto found =
        ab::measure(order, builds, [this](std::int64_t number, const ab::Pair& pair) {
          if (!arguments_.quiet) show(number, pair);
        });
    const auto judged = ab::judge(found.run, *policy.throughput, policy.false_alarms);
    ab::write(judged, order.folder);
    show(judged, order.folder);
    return found.interrupted ? kInterrupted : exit_code(judged, arguments_.gate);
  }

 private:
  void show(std::int64_t number, const ab::Pair& pair) {
    world_.err << fmt::format("[{}/{}] {} -> {} ms, {} first\n", number, arguments_.pairs,
                              reports::milliseconds(pair.base.step_ns.median),
                              reports::milliseconds(pair.now.step_ns.median),
                              pair.base_first ? "BASE" : "NEW");
  }

  void show(const ab::Judged& judged, const std::string& folder) {
    if (arguments_.json)
      world_.out << json_text(to_json(judged));
    else
      world_.out << to_text(judged, world_.out_width)
                 << fmt::format("Result: {}/{}\n", folder, result::kAbFile);
  }

  World& world_;
  const AbArguments& arguments_;
};

}  // namespace

Command add_ab(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command = app.add_subcommand("ab", "Is one build slower than another? Both timed in turn");
  command->footer(kAbFooter);
  const auto arguments = std::make_shared<AbArguments>();
  add_ab_options(*command, *arguments);
  return [&world, arguments, &typed] { return AbCommand(world, *arguments).go(typed); };
}

}  // namespace peakbench::cli
