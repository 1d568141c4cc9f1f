// `peakbench trace`: any PyTorch program, with what fills its memory told by line, module and
// cause.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/own_report.h"
#include "cli/screen.h"
#include "errors/errors.h"
#include "files/file.h"
#include "host/card_use.h"
#include "host/installation.h"
#include "host/program_signals.h"
#include "host/run_emulated.h"
#include "host/run_program.h"
#include "process/exit_code.h"
#include "process/find_program.h"
#include "program/traced.h"
#include "pytorch/torch_in_use.h"
#include "reports/analysis/why.h"
#include "reports/report/report.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraceFooter = R"(Examples:
  peakbench trace --card rtx-4090-24gb -- python3 train.py
  peakbench trace --card h100-80gb,memory=24GiB --out results/oom -- python3 train.py --batch 8
  peakbench trace --card h100-80gb,count=2 -- torchrun --nproc-per-node 2 train.py
  peakbench trace -- python3 train.py
The program is not changed. With --card it runs on an emulated card (`peakbench list devices`), which needs no
GPU; without, on what the machine has: a CUDA card if the program uses one, and the CPU. When it has ended, the
peak is told by cause and by line of your code; the run folder has the trace and a report of it, which `report`,
`compare`, `gate`, `history` and `export` read like any other (docs/programs.md).
Exit code: the program's; 128 + N when signal N ended it; 2 when there was nothing to run.)";

struct TraceArguments {
  std::string card, out;
  std::vector<std::string> command;
  bool overwrite = false;
  emulator::ValuesRequest values;
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

// What the report's page says first.
std::string why_text(const program::Fullest& fullest) {
  if (fullest.trace == nullptr) return "";
  std::string text;
  for (const auto& sentence :
       analysis::sentences_of(analysis::why(*fullest.trace, fullest.lifetimes)))
    text += escaped_controls(sentence.text) + "\n";
  return text.empty() ? "" : text + "\n";
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
  process::Environment environment(const std::optional<pytorch::TorchInUse>& torch, bool emulated) {
    const auto found = emulator::find_installation();
    const auto tracer =
        program::tracer_for(torch, found.libtorch_version, found.folder.parent_path());
    if (!tracer.problem.empty()) throw ConfigError(tracer.problem);
    if (torch) torch_version_ = torch->version;
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
    request.more_environment = [this](const auto& torch) { return environment(torch, true); };
    request.afterwards = [this](const emulator::EmulatedProgram& program) {
      result::Emulation emulation;
      emulation.card = program.card.spec;
      emulation.verdict = program.verdict;
      finish("emulated:" + program.card.spec, process::exit_code(program.wait_status), emulation,
             uses_of(program));
    };
    return emulator::run_emulated(request);
  }

  // By process: what the card gave it.
  static std::vector<program::Untraced> uses_of(const emulator::EmulatedProgram& program) {
    std::vector<program::Untraced> uses;
    for (const auto& use : emulator::card_uses(program.ledgers))
      uses.push_back({use.process->pid, static_cast<std::int64_t>(use.figures().peak_used_bytes)});
    return uses;
  }

  int run_here() {
    const auto& command = arguments_.command;
    if (!process::find_program(command[0]))
      throw ConfigError(fmt::format("{}: no such program", command[0]));
    const emulator::ProgramSignals signals;
    const auto torch = pytorch::torch_of_command(command, [&] { return signals.noted() != 0; });
    const auto more = environment(torch, false);
    const int code = process::exit_code(emulator::run_program(command, more, signals));
    finish("", code, std::nullopt);
    return code;
  }

  void finish(const std::string& device, int code,
              const std::optional<result::Emulation>& emulation,
              std::vector<program::Untraced> users = {}) {
    auto journals = program::read_journals(journals_->path(), {.device = device,
                                                               .emulated = emulation.has_value(),
                                                               .has_times = !emulation,
                                                               .failed = code != 0});
    program::complain(journals);
    std::erase_if(users, [&](const program::Untraced& user) {
      return user.used_bytes == 0 ||
             std::ranges::any_of(journals, [&](const program::Journal& journal) {
               return journal.pid == user.pid;
             });
    });
    auto run = program::run_of(std::move(journals), arguments_.command, device, code);
    run.emulation = emulation;
    if (!torch_version_.empty()) run.environment["libtorch"] = torch_version_;
    const auto untraced = program::add_untraced(run, users);
    const auto fullest = program::fullest_of(run);
    std::fprintf(stderr, "\n%s%s", why_text(fullest).c_str(),
                 program::summary_text(run, fullest).c_str());
    for (const auto& sentence : untraced)
      std::fprintf(stderr, "\nLower bound: %s.\n", sentence.c_str());
    if (run.processes.empty()) return;
    program::write_program_run(
        run, folder_, arguments_.overwrite ? program::Folder::kOverwritten : program::Folder::kNew);
    auto options = own_report(world_, folder_);
    options.formats = {"html", "markdown"};
    reports::write_reports({folder_}, options);
    std::fprintf(stderr, "\nReport: %s\n", (fs::path(folder_) / "report/index.html").c_str());
  }

  World& world_;
  const TraceArguments& arguments_;
  const std::string folder_;
  std::unique_ptr<JournalFolder> journals_;
  std::string torch_version_;  // empty: not known
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
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run that is in the folder");
  command->add_flag_callback(
      "--no-compute", [arguments] { arguments->values.compute = false; },
      "Compute no values: what the host reads back is then mostly unknown");
  command->add_option("program", arguments->command, "The program and its arguments, after --")
      ->type_name("PROGRAM ARG");
  return [&world, arguments] {
    if (arguments->command.empty())
      throw ConfigError(
          "no program to run; expected: peakbench trace --card h100-80gb -- python3 train.py");
    return Traced(world, *arguments).run();
  };
}

}  // namespace peakbench::cli
