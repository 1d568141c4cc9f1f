// `peakbench check`: what a plugin has to keep, tried on it.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/errors.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/check_findings.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/option_values.h"
#include "cli/plugin_check.h"
#include "cli/worker.h"
#include "launch/machine.h"
#include "planning/catalogue.h"
#include "planning/manifest.h"
#include "planning/stack.h"
#include "records/device.h"
#include "records/run.h"
#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using planning::Kind;

constexpr const char* kCheckFooter = R"(Examples:
  peakbench check build
  peakbench check build --model gpt2,layers=2 --out results/check
  peakbench check build --json
  peakbench check build/sgd.so --expect sgd.expected.json --accept
  peakbench check build/sgd.so --promise -- --strategy my-sgd+lora --batch 8

DIR is a folder with built plugins, as for --plugins, or one library. Each strategy runs alone, with every
choice of its options and stacked with every other strategy, on an emulated card and on the CPU. Each model
runs with every strategy. Checked are: that the case runs, that its bytes are the same when repeated and in
a longer run, that its promise holds, and what the strategy stacks with. A stack is compared with the same
stack without the strategy. The folder of the results has check.md, check.json, and the runs with their
reports.

--expect and --promise are quicker: one run, of each strategy alone, or of a model with
fused-in-backward and checkpointing. peakbench_test_plugin adds both to CTest. The options behind
the word -- replace those that `check` gives to `peakbench run`.

Exit codes: 0 passed; 2 unusable input; 5 a test failed, or nothing ran; 130 interrupted.)";

constexpr const char* kSmallModels[] = {"vit-b-16,layers=2,width=48,mlp=64,image=32",
                                        "qwen2.5-0.5b,layers=2,width=28,mlp=32,vocabulary=64"};
// It draws random numbers. For strategies that promise the baseline's training: beside others,
// accumulation draws in another order than its reference.
constexpr const char* kModelWithDropout =
    "gpt2,layers=3,width=32,mlp=64,heads=2,positions=16,vocabulary=64";

constexpr const char* kHowToAccept =
    "to accept what is measured, run this again with --accept or PEAKBENCH_ACCEPT=1";

struct CheckArguments {
  std::string plugins, card = "h100-80gb", out, expect;
  std::vector<std::string> models, run_options;
  std::optional<std::int64_t> jobs;
  std::int64_t timeout_s = 120;
  bool overwrite = false, quiet = false, accept = false, promise = false;
  OutputFormat format;
  bool is_quick() const { return promise || !expect.empty(); }
};

// A part of the check that is a run of its own.
struct Part {
  std::string name, device;
  std::vector<std::string> models, strategies;
  std::int64_t steps = 0;  // 0: as `peakbench run`
};

std::string real_path(const std::string& path) { return fs::weakly_canonical(path).string(); }

class CheckCommand {
 public:
  CheckCommand(World& world, const CheckArguments& arguments)
      : world_(world), arguments_(arguments), plugins_(arguments.plugins), folder_(plugins_) {
    if (!fs::is_regular_file(plugins_)) return;
    if (!fs::path(plugins_).has_parent_path()) plugins_ = "./" + plugins_;
    folder_ = fs::path(plugins_).parent_path().string();
  }

  int go() {
    read_accepted();
    look();
    out_ = arguments_.out.empty() ? make_folder_for("check-" + name()) : arguments_.out;
    if (arguments_.is_quick()) return quick();
    CheckRuns runs;
    if (!checked_.empty()) {
      const std::vector<std::pair<Part, records::Run*>> parts{{card(), &runs.card},
                                                              {options(), &runs.options},
                                                              {again(), &runs.again},
                                                              {longer(), &runs.longer},
                                                              {cpu(), &runs.cpu}};
      for (const auto& [part, run] : parts) {
        if (part.models.empty()) continue;
        if (const int code = run_part(part); code != kDone && code != kEveryCaseFailed) return code;
        *run = records::read_run(folder_of(part));
      }
    }
    for (const auto& one : checked_) {
      findings_.push_back(
          {one.entry->id, "build", Answer::kPassed,
           fmt::format("manifest valid; built for LibTorch {} and SDK revision {}",
                       worker_of(world_).stamp.libtorch_version, planning::kSdkRevision)});
      std::ranges::move(findings_of(one, runs), std::back_inserter(findings_));
    }
    return publish(runs);
  }

 private:
  std::string name() const { return fs::path(real_path(arguments_.plugins)).filename().string(); }

  bool accepts() const {  // CTest hands the variable on
    return arguments_.accept || std::getenv("PEAKBENCH_ACCEPT") != nullptr;
  }

  void read_accepted() {
    const auto& path = arguments_.expect;
    if (path.empty() || accepts()) return;
    if (!files::is_there(path))
      throw ConfigError(fmt::format("{}: no figures were accepted yet; {}", path, kHowToAccept));
    accepted_ = files::read_json_file(path);
    if (!accepted_.is_object() || !accepted_.value("cases", nlohmann::json()).is_object())
      throw ConfigError(fmt::format("{}: has no object \"cases\"; {}", path, kHowToAccept));
  }

  void look() {
    const auto& worker = worker_of(world_);
    ours_ = planning::discover({planning::Folder(folder_, "check")}, worker.stamp);
    if (plugins_ != folder_) {
      std::erase_if(ours_.plugins, [&](const auto& one) { return one.path != plugins_; });
      std::erase_if(ours_.problems, [&](const auto& one) { return !one.starts_with(plugins_); });
    }
    // Beside those that come with the program: an id that one of them has is a problem, too.
    std::ostringstream ignored;
    World silent = world_.with_streams(ignored, ignored);
    all_ = find_plugins(silent, worker, {folder_});
    std::vector<std::string> problems = ours_.problems;
    for (const auto& problem : all_.problems)
      if (problem.find(plugins_) != std::string::npos && std::ranges::count(problems, problem) == 0)
        problems.push_back(problem);
    for (const auto& problem : problems)
      findings_.push_back({plugins_, "build", Answer::kFailed, problem});
    for (const auto& plugin : all_.plugins) {
      const bool is_ours = std::ranges::any_of(ours_.plugins, [&](const auto& one) {
        return real_path(one.path) == real_path(plugin.path);
      });
      for (const auto& entry : plugin.entries) {
        if (is_ours && entry.id != "baseline")
          checked_.push_back({plugin.kind, &entry});
        else if (plugin.kind == Kind::kStrategy && entry.id != "baseline")
          others_.push_back(&entry);
      }
    }
    if (checked_.empty() && findings_.empty())
      throw ConfigError(plugins_ + ": holds no strategy or model to check");
  }

  std::vector<std::string> ids(Kind kind) const {
    std::vector<std::string> found;
    for (const auto& one : checked_)
      if (one.kind == kind) found.push_back(one.entry->id);
    return found;
  }
  bool has(Kind kind) const { return !ids(kind).empty(); }

  std::vector<std::string> models() const {
    if (!arguments_.models.empty()) return arguments_.models;
    auto models = ids(Kind::kModel);
    if (has(Kind::kStrategy))
      models.insert(models.end(), std::begin(kSmallModels), std::end(kSmallModels));
    if (!arguments_.is_quick() && std::ranges::any_of(checked_, is_promised))
      models.emplace_back(kModelWithDropout);
    return models;
  }

  std::vector<std::string> alone() const {
    auto stacks = ids(Kind::kStrategy);
    stacks.insert(stacks.begin(), "baseline");
    return stacks;
  }

  std::vector<std::string> variants(Kind kind) const {
    std::vector<std::string> found;
    for (const auto& one : checked_)
      if (one.kind == kind)
        std::ranges::move(option_variants(*one.entry), std::back_inserter(found));
    return found;
  }

  // Of the models that are checked as they were typed: an option more each.
  std::vector<std::string> model_variants() const {
    if (arguments_.models.empty()) return variants(Kind::kModel);
    std::vector<std::string> found;
    for (const auto& variant : variants(Kind::kModel)) {
      const auto comma = variant.find(',');
      const auto option = variant.substr(comma, variant.find('=') + 1 - comma);  // ",layers="
      for (const auto& typed : arguments_.models)
        if (typed.substr(0, typed.find(',')) == variant.substr(0, comma) &&
            typed.find(option) == std::string::npos)
          found.push_back(typed + variant.substr(comma));
    }
    return found;
  }

  // Each with each other, and the other alone where the stack is compared with it.
  std::vector<std::string> stacked() const {
    auto stacks = alone();
    for (const auto& own : ids(Kind::kStrategy))
      for (const auto* other : others_) stacks.push_back(own + "+" + other->id);
    for (const auto* other : others_)
      if (has(Kind::kModel) || is_reference(*other)) stacks.push_back(other->id);
    return stacks;
  }

  static bool is_promised(const Checked& one) {
    return one.kind == Kind::kStrategy && one.entry->promise != "different_problem";
  }
  bool is_reference(const planning::Entry& other) const {
    return std::ranges::any_of(checked_, [&](const Checked& one) {
      return is_promised(one) && planning::conflict_between(*one.entry, other).empty();
    });
  }

  // Until every strategy's memory was seen whole.
  std::int64_t steps() const {
    std::int64_t steps = 3;
    for (const auto& one : checked_)
      if (one.entry->period)  // only of strategies
        steps = std::max(
            steps, planning::period_of(*one.entry, planning::default_options(*one.entry)) + 1);
    return steps;
  }

  std::string emulated() const { return records::emulated_device(arguments_.card); }

  Part card() const { return {"card", emulated(), models(), stacked(), steps()}; }
  Part again() const { return {"again", emulated(), models(), alone(), steps()}; }
  Part longer() const { return {"longer", emulated(), models(), alone(), 2 * steps()}; }
  Part cpu() const {
    Part part{"cpu", "cpu", models(), stacked(), steps()};
    std::ranges::move(variants(Kind::kStrategy), std::back_inserter(part.strategies));
    return part;
  }
  Part options() const {
    Part part{"options", emulated(), model_variants(), variants(Kind::kStrategy), steps()};
    if (!part.strategies.empty()) std::ranges::move(models(), std::back_inserter(part.models));
    part.strategies.insert(part.strategies.begin(), "baseline");
    return part;
  }

  std::string folder_of(const Part& part) const { return (fs::path(out_) / part.name).string(); }

  bool has_sequences(const Part& part) const {
    return std::ranges::any_of(part.models, [&](const std::string& text) {
      const auto id = text.substr(0, text.find(','));
      return std::ranges::any_of(all_.plugins, [&](const planning::Plugin& plugin) {
        return plugin.kind == Kind::kModel &&
               std::ranges::any_of(plugin.entries, [&](const planning::Entry& entry) {
                 return entry.id == id && entry.has_sequence;
               });
      });
    });
  }

  int run_part(const Part& part) {
    std::vector<std::string> typed{"run",      "--plugins",     folder_, "--strategy",
                                   "baseline", "--no-ablation", "--out", folder_of(part)};
    const auto& more = arguments_.run_options;
    const auto add = [&](const std::string& option, const std::vector<std::string>& values) {
      if (std::ranges::any_of(more, [&](const std::string& word) {
            return word == option || word.starts_with(option + "=");
          }))
        return;
      for (const auto& value : values) typed.insert(typed.end(), {option, value});
    };
    add("--device", {part.device});
    add("--batch", {"2"});
    add("--repetitions", {"0"});
    add("--timeout", {std::to_string(arguments_.timeout_s)});
    add("--model", part.models);
    add("--strategy", part.strategies);
    if (part.steps != 0) add("--steps", {std::to_string(part.steps)});
    for (const auto& one : checked_)
      if (is_promised(one) && !arguments_.is_quick()) add("--check-promise", {one.entry->id});
    if (has_sequences(part)) add("--seq", {"16"});
    // One case's sums do not depend on the others' then.
    if (part.device == "cpu" || arguments_.is_quick()) add("--threads", {"1"});
    if (arguments_.jobs) add("--jobs", {std::to_string(*arguments_.jobs)});
    if (!world_.torch.empty()) add("--torch", {world_.torch});
    const bool is_read = part.name == "card" || part.name == "cpu";
    if (!is_read) typed.push_back("--no-report");
    if (arguments_.overwrite) typed.push_back("--overwrite");
    if (arguments_.quiet)
      typed.push_back("--quiet");
    else
      world_.err << fmt::format("{}: {} of {} on {}\n", part.name,
                                reports::count_of(part.strategies.size(), "stack"),
                                reports::count_of(part.models.size(), "model"), part.device);
    typed.insert(typed.end(), more.begin(), more.end());
    std::ostringstream table, said;
    World inner = world_.with_streams(table, arguments_.quiet ? said : world_.err);
    const int code = run_program(typed, inner);
    if (code != kDone && code != kEveryCaseFailed) world_.err << said.str();
    return code;
  }

  // The tests of a plugin's repository: one run.
  int quick() {
    Part part{"bytes", emulated(), models(), alone()};
    if (arguments_.promise) part = {"promise", "cpu", models(), alone()};
    if (has(Kind::kModel))
      part.strategies.insert(part.strategies.end(), {"fused-in-backward", "checkpointing"});
    if (findings_.empty()) {
      if (const int code = run_part(part); code != kDone && code != kEveryCaseFailed) return code;
      const auto run = records::read_run(folder_of(part));
      findings_.push_back(finding_of_test(name(), run, arguments_.promise));
      if (!arguments_.promise && all_passed(findings_)) findings_.push_back(accepted_bytes(run));
    }
    return tell({{"passed", all_passed(findings_)}, {"findings", findings_json(findings_)}},
                "The run: " + folder_of(part));
  }

  Finding accepted_bytes(const records::Run& run) const {
    Finding finding{name(), "bytes", Answer::kPassed, "as accepted in " + arguments_.expect};
    if (accepts()) {
      files::write_json_file(arguments_.expect, figures_of(run));
      finding.text = "accepted in " + arguments_.expect;
    } else if (finding.failures = differences(accepted_, run); !finding.failures.empty()) {
      finding.answer = Answer::kFailed;
      finding.text = fmt::format("not as accepted with LibTorch {} in {}; {}",
                                 printable(accepted_.value("libtorch", nlohmann::json()).dump()),
                                 arguments_.expect, kHowToAccept);
    }
    return finding;
  }

  nlohmann::ordered_json as_json(const CheckRuns& runs) const {
    nlohmann::ordered_json json{{"passed", all_passed(findings_)},
                                {"peakbench", launch::peakbench_version()},
                                {"card", arguments_.card},
                                {"models", models()}};
    auto& builds = json["plugins"] = nlohmann::ordered_json::object();
    for (const auto& result : runs.card.cases)
      for (const auto& build : result.plugins)
        for (const auto& one : checked_)
          if (build.id == one.entry->id)
            builds[build.id] = {{"file", build.file}, {"sha256", build.sha256}};
    json["findings"] = findings_json(findings_);
    return json;
  }

  std::string as_markdown() const {
    return fmt::format(
        "# peakbench check: {}\n\nPeakbench {}, emulated card {}, {:%Y-%m-%d}. Models: `{}`.\n\n{}",
        reports::escape_markdown(name()), launch::peakbench_version(), arguments_.card,
        fmt::gmtime(std::time(nullptr)), fmt::join(models(), "`, `"), findings_markdown(findings_));
  }

  int publish(const CheckRuns& runs) {
    const auto json = as_json(runs);
    const auto page = (fs::path(out_) / "check.md").string();
    files::make_folder(out_);
    files::write_json_file((fs::path(out_) / "check.json").string(), json);
    files::write_file_atomically(page, as_markdown());
    return tell(json, "To publish: " + page + "; the runs and their reports are next to it.");
  }

  int tell(const nlohmann::ordered_json& json, const std::string& last) {
    if (arguments_.format.is_text())
      world_.out << findings_text(findings_, world_.line_width) << printable(last) << "\n";
    else
      world_.out << arguments_.format.of(json, "findings");
    world_.out << std::flush;
    return all_passed(findings_) ? kDone : kFailedCase;
  }

  World& world_;
  const CheckArguments& arguments_;
  // What is checked, and the folder that has it.
  std::string plugins_, folder_;
  nlohmann::json accepted_;
  planning::Found ours_, all_;
  std::vector<Checked> checked_;                // points into all_
  std::vector<const planning::Entry*> others_;  // strategies that are not checked
  std::vector<Finding> findings_;
  std::string out_;
};

}  // namespace

Command add_check(CLI::App& app, World& world) {
  auto* command = subcommand(app, "check", "Run conformance tests on plugins", kCheckFooter);
  const auto arguments = std::make_shared<CheckArguments>();
  add_value(*command, "folder", arguments->plugins, "Folder with built plugins, or one library",
            "DIR")
      ->required();
  add_value(*command, "options", arguments->run_options, "Options of `peakbench run`, behind --",
            "OPTION");
  auto* expect = add_value(*command, "--expect", arguments->expect,
                           "Only compare the peaks with the accepted figures in FILE", "FILE");
  command
      ->add_flag("--accept", arguments->accept,
                 "Write what is measured to FILE, as with PEAKBENCH_ACCEPT=1")
      ->needs(expect);
  command
      ->add_flag("--promise", arguments->promise,
                 "Only check on the CPU that all cases train as promised")
      ->excludes(expect);
  add_value(*command, "--model", arguments->models,
            "Model to test strategies with; can be repeated (default: a small vision transformer, "
            "a small decoder, and one with dropout for strategies with a promise; for a model "
            "plugin, each of its models)",
            "NAME");
  add_value(*command, "--card", arguments->card, "Emulated card", "CARD")->capture_default_str();
  add_number(*command, "--timeout", arguments->timeout_s, "Time limit of a case, in seconds", 1,
             std::int64_t{1} << 32)
      ->capture_default_str();
  add_jobs(*command, arguments->jobs, "Cases to run at a time");
  add_value(*command, "-o,--out", arguments->out,
            "Folder of the results (default: results/check-DIR-TIME)", "DIR");
  command->add_flag("--overwrite", arguments->overwrite,
                    "Replace the results of an earlier check in that folder");
  command->add_flag("-q,--quiet", arguments->quiet, "Print only the findings and errors");
  add_output_format(*command, arguments->format);
  add_torch(*command, world);
  return [&world, arguments] { return CheckCommand(world, *arguments).go(); };
}

}  // namespace peakbench::cli
