// `peakbench check`: what a plugin has to keep, tried on it.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/output_format.h"
#include "cli/plugin_check.h"
#include "cli/worker.h"
#include "errors/errors.h"
#include "files/file.h"
#include "launch/host.h"
#include "manifest/manifest.h"
#include "plan/catalogue.h"
#include "plan/stack.h"
#include "reports/render/text.h"
#include "result/device.h"
#include "result/run.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using manifest::Kind;

constexpr const char* kCheckFooter = R"(Examples:
  peakbench check build
  peakbench check build --model gpt2,layers=2 --out results/check
  peakbench check build --json

DIR is a folder of built plugins, as --plugins takes it. Each strategy is run alone, with every choice
of its options and stacked with every other strategy, on an emulated card and on the CPU; each model
with every strategy. Asked are: does it run, are the bytes the same twice and in a longer run, is
its promise kept, and with what does it stack. A stack is compared with the same stack without the
strategy. OUT has check.md, check.json, and the runs with their reports.
Exit codes: 0 passed; 2 unusable input; 5 something failed, or nothing ran; 130 interrupted.)";

constexpr const char* kSmallModels[] = {"vit-b-16,layers=2,width=48,mlp=64,image=32",
                                        "qwen2.5-0.5b,layers=2,width=28,mlp=32,vocabulary=64"};
// It draws random numbers. For strategies that promise the baseline's training: beside others,
// accumulation draws in another order than its reference.
constexpr const char* kModelWithDropout =
    "gpt2,layers=3,width=32,mlp=64,heads=2,positions=16,vocabulary=64";

struct CheckArguments {
  std::string folder, card = "h100-80gb", out;
  std::vector<std::string> models;
  std::optional<std::int64_t> jobs;
  std::int64_t timeout_s = 120;
  bool overwrite = false, quiet = false;
  OutputFormat format;
};

// A part of the check that is a run of its own.
struct Part {
  std::string name, device;
  std::vector<std::string> models, strategies;
  std::int64_t steps = 0;
};

std::string real_path(const std::string& path) { return fs::weakly_canonical(path).string(); }

class CheckCommand {
 public:
  CheckCommand(World& world, const CheckArguments& arguments)
      : world_(world), arguments_(arguments) {}

  int go() {
    look();
    out_ =
        arguments_.out.empty()
            ? make_folder_for("check-" + fs::path(real_path(arguments_.folder)).filename().string())
            : arguments_.out;
    CheckRuns runs;
    if (!checked_.empty()) {
      const std::vector<std::pair<Part, result::Run*>> parts{{card(), &runs.card},
                                                             {options(), &runs.options},
                                                             {again(), &runs.again},
                                                             {longer(), &runs.longer},
                                                             {cpu(), &runs.cpu}};
      for (const auto& [part, run] : parts) {
        if (part.models.empty()) continue;
        if (const int code = run_part(part); code != kDone && code != kEveryCaseFailed) return code;
        *run = result::read_run(folder_of(part));
      }
    }
    for (const auto& one : checked_) {
      findings_.push_back(built(one));
      const auto more = findings_of(one, runs);
      findings_.insert(findings_.end(), more.begin(), more.end());
    }
    tell(runs);
    return all_passed(findings_) ? kDone : kFailedCase;
  }

 private:
  void look() {
    const auto& worker = worker_of(world_);
    ours_ = manifest::discover({manifest::Folder(arguments_.folder, "check")}, worker.stamp);
    // Beside those that come with the program: an id that one of them has is a problem, too.
    std::ostringstream ignored;
    World silent = with_streams(ignored, ignored);
    all_ = find_plugins(silent, {arguments_.folder});
    std::vector<std::string> problems = ours_.problems;
    for (const auto& problem : all_.problems)
      if (problem.find(arguments_.folder) != std::string::npos &&
          std::ranges::count(problems, problem) == 0)
        problems.push_back(problem);
    for (const auto& problem : problems) {
      Finding finding;
      finding.id = arguments_.folder;
      finding.question = "build";
      finding.answer = Answer::kFailed;
      finding.text = problem;
      findings_.push_back(finding);
    }
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
  }

  bool has(Kind kind) const {
    return std::ranges::any_of(checked_, [&](const Checked& one) { return one.kind == kind; });
  }
  std::vector<std::string> ids(Kind kind) const {
    std::vector<std::string> found;
    for (const auto& one : checked_)
      if (one.kind == kind) found.push_back(one.entry->id);
    return found;
  }

  // --- What is run -----------------------------------------------------------------------------

  std::vector<std::string> models() const {
    if (!arguments_.models.empty()) return arguments_.models;
    auto models = ids(Kind::kModel);
    if (has(Kind::kStrategy))
      models.insert(models.end(), std::begin(kSmallModels), std::end(kSmallModels));
    if (std::ranges::any_of(checked_, is_promised)) models.emplace_back(kModelWithDropout);
    return models;
  }

  std::vector<std::string> alone() const {
    std::vector<std::string> stacks{"baseline"};
    const auto strategies = ids(Kind::kStrategy);
    stacks.insert(stacks.end(), strategies.begin(), strategies.end());
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
  bool is_reference(const manifest::Entry& other) const {
    return std::ranges::any_of(checked_, [&](const Checked& one) {
      return is_promised(one) && plan::conflict_between(*one.entry, other).empty();
    });
  }

  // Until every strategy's memory was seen whole.
  std::int64_t steps() const {
    std::int64_t steps = 3;
    for (const auto& one : checked_)
      if (one.entry->period)  // only of strategies
        steps =
            std::max(steps, manifest::period_of(*one.entry, plan::default_options(*one.entry)) + 1);
    return steps;
  }

  std::string emulated() const { return result::emulated_device(arguments_.card); }

  Part card() const { return {"card", emulated(), models(), stacked(), steps()}; }
  Part again() const { return {"again", emulated(), models(), alone(), steps()}; }
  Part longer() const { return {"longer", emulated(), models(), alone(), 2 * steps()}; }
  Part cpu() const {
    Part part{"cpu", "cpu", models(), stacked(), steps()};
    std::ranges::move(variants(Kind::kStrategy), std::back_inserter(part.strategies));
    return part;
  }
  Part options() const {
    const auto of_models = model_variants();
    const auto of_strategies = variants(Kind::kStrategy);
    Part part{"options", emulated(), {}, {"baseline"}, steps()};
    part.strategies.insert(part.strategies.end(), of_strategies.begin(), of_strategies.end());
    part.models = of_models;
    if (!of_strategies.empty()) std::ranges::move(models(), std::back_inserter(part.models));
    return part;
  }

  std::string folder_of(const Part& part) const { return (fs::path(out_) / part.name).string(); }

  World with_streams(std::ostream& out, std::ostream& err) {
    return {out,           err,
            world_.screen, world_.out_width,
            world_.places, world_.make_runner,
            world_.torch,  world_.chosen};
  }

  bool has_sequences(const Part& part) const {
    return std::ranges::any_of(part.models, [&](const std::string& text) {
      const auto id = text.substr(0, text.find(','));
      return std::ranges::any_of(all_.plugins, [&](const manifest::Plugin& plugin) {
        return plugin.kind == Kind::kModel &&
               std::ranges::any_of(plugin.entries, [&](const manifest::Entry& entry) {
                 return entry.id == id && entry.has_sequence;
               });
      });
    });
  }

  int run_part(const Part& part) {
    std::vector<std::string> typed{"run",
                                   "--plugins",
                                   arguments_.folder,
                                   "--device",
                                   part.device,
                                   "--batch",
                                   "2",
                                   "--steps",
                                   std::to_string(part.steps),
                                   "--timeout",
                                   std::to_string(arguments_.timeout_s),
                                   "--repetitions",
                                   "0",
                                   "--no-ablation",
                                   "--out",
                                   folder_of(part)};
    const auto add = [&](const std::string& option, const std::vector<std::string>& values) {
      for (const auto& value : values) typed.insert(typed.end(), {option, value});
    };
    add("--model", part.models);
    add("--strategy", part.strategies);
    for (const auto& one : checked_)
      if (is_promised(one)) add("--check-promise", {one.entry->id});
    if (has_sequences(part)) add("--seq", {"16"});
    // One case's sums do not depend on the others' then.
    if (part.device == "cpu") add("--threads", {"1"});
    if (arguments_.jobs) add("--jobs", {std::to_string(*arguments_.jobs)});
    if (!world_.torch.empty()) add("--torch", {world_.torch});
    const bool is_read = part.name == "card" || part.name == "cpu";
    if (!is_read) typed.push_back("--no-report");
    if (arguments_.overwrite) typed.push_back("--overwrite");
    if (arguments_.quiet)
      typed.push_back("--quiet");
    else
      world_.err << fmt::format(
          "{}: {} of {} on {}\n", part.name,
          part.strategies.size() == 1 ? "1 stack"
                                      : fmt::format("{} stacks", part.strategies.size()),
          part.models.size() == 1 ? "1 model" : fmt::format("{} models", part.models.size()),
          part.device);
    std::ostringstream table, said;
    World inner = with_streams(table, arguments_.quiet ? said : world_.err);
    const int code = run_program(typed, inner);
    if (code != kDone && code != kEveryCaseFailed) world_.err << said.str();
    return code;
  }

  // --- What is told ----------------------------------------------------------------------------

  Finding built(const Checked& one) const {
    Finding finding;
    finding.id = one.entry->id;
    finding.question = "build";
    finding.text = fmt::format("manifest valid; built for LibTorch {} and SDK revision {}",
                               worker_of(world_).stamp.libtorch_version, manifest::kSdkRevision);
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
        reports::escape_markdown(fs::path(real_path(arguments_.folder)).filename().string()),
        launch::peakbench_version(), arguments_.card, fmt::gmtime(std::time(nullptr)),
        fmt::join(models(), "`, `"), findings_markdown(findings_));
  }

  void tell(const CheckRuns& runs) {
    const auto json = as_json(runs);
    const auto page = (fs::path(out_) / "check.md").string();
    files::make_folder(out_);
    files::write_json_file((fs::path(out_) / "check.json").string(), json);
    files::write_file_atomically(page, as_markdown());
    if (arguments_.format.is_text())
      world_.out << findings_text(findings_, world_.out_width)
                 << fmt::format("To publish: {}; the runs, with their reports, are beside it.\n",
                                printable(page));
    else
      world_.out << arguments_.format.of(arguments_.format.name == "csv" ? json["findings"] : json);
    world_.out << std::flush;
  }

  World& world_;
  const CheckArguments& arguments_;
  manifest::Found ours_, all_;
  std::vector<Checked> checked_;                // points into all_
  std::vector<const manifest::Entry*> others_;  // strategies that are not checked
  std::vector<Finding> findings_;
  std::string out_;
};

}  // namespace

Command add_check(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("check", "Try on a plugin what every plugin has to keep");
  command->footer(kCheckFooter);
  const auto arguments = std::make_shared<CheckArguments>();
  command->add_option("folder", arguments->folder, "Folder of built plugins")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--model", arguments->models,
                   "Model to try strategies with (default: a small vision transformer and a small "
                   "decoder, and one with dropout for strategies with a promise; of a model's "
                   "plugin each of its models). "
                   "May be given several times")
      ->type_name("NAME");
  command->add_option("--card", arguments->card, "The emulated card")
      ->type_name("CARD")
      ->capture_default_str();
  command->add_option("--timeout", arguments->timeout_s, "Seconds that a case may take")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--jobs", arguments->jobs, "Cases at a time (default: the processors)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1024}));
  command
      ->add_option("-o,--out", arguments->out,
                   "Folder of what is found (default: results/check-DIR-TIME)")
      ->type_name("DIR");
  command->add_flag("--overwrite", arguments->overwrite, "Replace an earlier check in that folder");
  command->add_flag("-q,--quiet", arguments->quiet, "Print what was found alone, and errors");
  add_output_format(*command, arguments->format);
  add_torch(*command, world);
  return [&world, arguments] { return CheckCommand(world, *arguments).go(); };
}

}  // namespace peakbench::cli
