// `peakbench trace`: any PyTorch program, with what fills its memory told by line, module and
// cause.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/own_report.h"
#include "cli/screen.h"
#include "cli/whole_number.h"
#include "errors/errors.h"
#include "files/file.h"
#include "host/card_use.h"
#include "host/installation.h"
#include "host/program_signals.h"
#include "host/run_emulated.h"
#include "host/run_program.h"
#include "process/exit_code.h"
#include "process/find_program.h"
#include "program/needed.h"
#include "program/traced.h"
#include "program/untraced.h"
#include "pytorch/torch_in_use.h"
#include "reports/analysis/peak_text.h"
#include "reports/report/report.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraceFooter = R"(Examples:
  peakbench trace --card rtx-4090-24gb -- python3 train.py
  peakbench trace --card h100-80gb,memory=24GiB --out results/oom -- python3 train.py --batch 8
  peakbench trace --card h100-80gb,count=2 -- torchrun --nproc-per-node 2 train.py
  peakbench trace --card h100-80gb --steps 2..4 -- python3 train.py
  peakbench trace -- python3 train.py
The program is not changed. With --card it runs on an emulated card (`peakbench list devices`), which needs no
GPU; without, on what the machine has: a CUDA card if the program uses one, and the CPU. When it has ended, the
peak is told by cause and by line of your code; the run folder has the trace and a report of it, which `report`,
`compare`, `gate`, `history` and `export` read like any other (docs/programs.md).
Exit code: the program's; 128 + N when signal N ended it; 2 when there was nothing to run.)";

struct TraceArguments {
  std::string card, out;
  std::optional<std::string> steps;
  std::vector<std::string> command;
  bool overwrite = false, needed = true;
  std::int64_t needed_timeout_s = 600;
  std::optional<program::StepRange> step_range;  // of `steps`
  emulator::ValuesRequest values;
};

// What is known of a program that has ended.
struct Ended {
  std::string device;
  program::HowItEnded how;
  std::optional<result::Emulation> emulation;
  std::vector<program::Untraced> users;  // of the card
};

// A folder for what the processes record, in the run's own: it may be large.
class JournalFolder {
 public:
  // `is_new`: the run's folder was not there before; it goes again where nothing comes of it.
  JournalFolder(const fs::path& run, bool is_new) : made_(is_new ? run : fs::path()) {
    std::error_code error;
    fs::create_directories(run, error);
    std::string pattern = (run / ".trace.XXXXXX").string();
    if (error || mkdtemp(pattern.data()) == nullptr)
      throw ConfigError(fmt::format("--out {}: cannot be written: {}", run.string(),
                                    error ? error.message() : std::strerror(errno)));
    path_ = fs::absolute(pattern);
  }
  JournalFolder(const JournalFolder&) = delete;
  JournalFolder& operator=(const JournalFolder&) = delete;
  ~JournalFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    if (!made_.empty()) fs::remove(made_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_, made_;
};

std::string traced_folder(const TraceArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  const auto name = program::safe_name(program::name_of(arguments.command));
  return "results/" + name;
}

class Traced {
 public:
  Traced(World& world, const TraceArguments& arguments)
      : world_(world), arguments_(arguments), folder_(traced_folder(arguments)) {
    const bool is_new = !files::is_there(folder_);
    program::check_folder(
        folder_, arguments.overwrite ? program::Folder::kOverwritten : program::Folder::kNew);
    journals_ = std::make_unique<JournalFolder>(folder_, is_new);
  }

  int run() { return arguments_.card.empty() ? run_here() : run_on_emulated_card(); }

 private:
  process::Environment environment(const std::optional<pytorch::TorchInUse>& torch, bool emulated,
                                   const std::function<bool()>& cancelled) {
    const auto tracer = program::tracer_for(
        torch, program::tracer_places(emulator::find_installation()), cancelled);
    if (torch) torch_version_ = torch->version;
    tracer_ = tracer.library.path;
    return program::tracing_environment(
        tracer, {.journals = journals_->path(), .cpu = !emulated, .times = !emulated});
  }

  int run_on_emulated_card() {
    emulator::EmulateRequest request;
    request.card = arguments_.card;
    request.command = arguments_.command;
    request.values = arguments_.values;
    request.look.colours = screen_of(STDERR_FILENO).live;
    request.look.width = [] { return table_width(STDERR_FILENO); };
    request.more_environment = [this](const emulator::BeforeProgram& before) {
      return environment(before.torch, true, before.cancelled);
    };
    std::optional<Ended> ended;
    request.afterwards = [&ended](const emulator::EmulatedProgram& program, const fs::path&,
                                  nlohmann::json&) {
      ended = Ended{.device = "emulated:" + program.card.spec,
                    .how = {process::exit_code(program.wait_status), program.interrupted},
                    .emulation = result::Emulation{},
                    .users = uses_of(program)};
      ended->emulation->card = program.card.spec;
      ended->emulation->verdict = program.verdict;
    };
    const int code = emulator::run_emulated(request);
    if (ended) finish(*ended);
    return code;
  }

  // By process: what the card gave it.
  static std::vector<program::Untraced> uses_of(const emulator::EmulatedProgram& program) {
    std::vector<program::Untraced> uses;
    for (const auto& use : emulator::card_uses(program.ledgers))
      if (const auto most = use.figures().peak_used_bytes; most > 0)
        uses.push_back({use.process->pid, static_cast<std::int64_t>(most)});
    return uses;
  }

  int run_here() {
    const auto& command = arguments_.command;
    if (!process::find_program(command[0]))
      throw ConfigError(fmt::format("{}: no such program", command[0]));
    const emulator::ProgramSignals signals;
    const auto cancelled = [&] { return signals.noted() != 0; };
    const auto torch = pytorch::torch_of_command(command, cancelled);
    process::Environment more;
    try {
      more = environment(torch, false, cancelled);
    } catch (const ConfigError&) {
      if (!cancelled()) throw;
    }
    if (cancelled()) return emulator::ended_before_the_program(signals.noted());
    const program::UntracedWatch watch(tracer_);
    const int code = process::exit_code(emulator::run_program(command, more, signals));
    auto users = watch.found(journals_->path());
    std::ranges::copy(program::forked_untraced(journals_->path()), std::back_inserter(users));
    finish({.device = "",
            .how = {code, signals.came_for_program()},
            .emulation = std::nullopt,
            .users = users});
    return code;
  }

  void finish(const Ended& ended) {
    auto journals =
        program::read_journals(journals_->path(), {.device = ended.device,
                                                   .emulated = ended.emulation.has_value(),
                                                   .has_times = !ended.emulation,
                                                   .failed = ended.how.exit_code != 0});
    program::complain(journals);
    const bool is_part =
        arguments_.step_range && program::keep_steps_of(journals, *arguments_.step_range);
    auto users = ended.users;
    std::erase_if(users, [&](const program::Untraced& user) {
      return std::ranges::any_of(
          journals, [&](const program::Journal& journal) { return journal.pid == user.pid; });
    });
    auto run = program::run_of(std::move(journals), arguments_.command, ended.device, ended.how);
    run.emulation = ended.emulation;
    if (is_part) run.part = program::name_of(*arguments_.step_range);
    if (!torch_version_.empty()) run.environment["libtorch"] = torch_version_;
    const auto untraced = program::add_untraced(run, users);
    const auto* const fullest = program::fullest(run);
    const auto told = fullest ? analysis::peak_text(fullest->trace, ended_of_it(run, *fullest))
                              : run.reason + "\n";
    std::fprintf(stderr, "\n%s", escaped_controls(told).c_str());
    for (const auto& sentence : untraced)
      std::fprintf(stderr, "\nLower bound: %s.\n", sentence.c_str());
    if (run.processes.empty()) return;
    if (arguments_.needed) find_needed(run);
    program::write_program_run(
        run, folder_, arguments_.overwrite ? program::Folder::kOverwritten : program::Folder::kNew);
    auto options = own_report(world_, folder_);
    options.formats = {"html", "markdown"};
    reports::write_reports({folder_}, options);
    std::fprintf(stderr, "\nReport: %s\n", (fs::path(folder_) / "report/index.html").c_str());
  }

  void find_needed(program::ProgramRun& run) {
    const auto folder = journals_->path() / "again";
    fs::create_directory(folder);
    program::find_needed(run, {.card = arguments_.card,
                               .command = arguments_.command,
                               .values = arguments_.values,
                               .folder = folder,
                               .limit = std::chrono::seconds(arguments_.needed_timeout_s)});
    std::fputs(escaped_controls(program::needed_text(run)).c_str(), stderr);
  }

  World& world_;
  const TraceArguments& arguments_;
  const std::string folder_;
  std::unique_ptr<JournalFolder> journals_;
  std::string torch_version_;  // empty: not known
  fs::path tracer_;
};

}  // namespace

Command add_trace(CLI::App& app, World& world) {
  auto* command = app.add_subcommand(
      "trace", "Run any PyTorch program and tell what fills its memory, by line and cause");
  command->footer(kTraceFooter);
  const auto arguments = std::make_shared<TraceArguments>();
  command
      ->add_option("--card", arguments->card,
                   "Emulated card: h100-80gb, h100-80gb,memory=60GiB,count=8, or a JSON file")
      ->type_name("CARD");
  command->add_option("--out", arguments->out, "Run folder (default: results/NAME)")
      ->type_name("DIR");
  command
      ->add_option("--steps", arguments->steps,
                   "Keep these steps of the trace: 3, 2..4, ..4, 2.. (default: all)")
      ->type_name("STEPS");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run that is in the folder");
  command->add_flag_callback(
      "--no-compute", [arguments] { arguments->values.compute = false; },
      "Compute no values: what the host reads back is then mostly unknown");
  command->add_flag_callback(
      "--no-needed", [arguments] { arguments->needed = false; },
      "Do not run a program once more that ran out of an emulated card's memory");
  command
      ->add_option("--needed-timeout", arguments->needed_timeout_s,
                   "Seconds that this second run may take (default: 600)")
      ->type_name("SECONDS")
      ->check(whole_number(1));
  command->add_option("program", arguments->command, "The program and its arguments, after --")
      ->type_name("PROGRAM ARG");
  return [&world, arguments] {
    if (arguments->command.empty())
      throw ConfigError(
          "no program to run; expected: peakbench trace --card h100-80gb -- python3 train.py");
    if (arguments->steps) arguments->step_range = program::step_range(*arguments->steps);
    return Traced(world, *arguments).run();
  };
}

}  // namespace peakbench::cli
