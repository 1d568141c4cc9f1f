#include "cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <sstream>
#include <system_error>

#include "base/built_folders.h"
#include "base/errors.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/help_format.h"
#include "cli/program_words.h"
#include "cli/worker.h"
#include "launch/machine.h"
#include "programs/internal_commands.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgramFooter = R"(Examples:
  peakbench train.py --batch 8
  peakbench --card rtx-4090-24gb --details train.py
  peakbench -- torchrun --nproc-per-node 2 train.py
  peakbench run --model vit-l-16 --strategy baseline --strategy fused-in-backward --out results/vit
  peakbench fit --model llama-3.1-8b --dtype bf16 --seq 4096 --card a100-40gb,rtx-4090-24gb
  peakbench gate results/main results/change --junit gate.xml

`peakbench COMMAND --help` shows the options and examples of a command. `peakbench train.py` is short
for `peakbench emulate train.py`: put options of `emulate` before the script.
Exit codes: 0 done, whatever the outcomes of the cases; 1 internal error; 2 unusable input or
environment, or every case conflicts; 3 no case ended ok; 4 gate: a regression; 5 gate: a case failed
or is missing, check: a test failed; 130 interrupted, a report of what was measured is written; 141 the
reader of the output went away.)";

// Of each worker that is there; no Python is started.
std::vector<std::string> libtorch_versions(const World& world) {
  std::vector<std::string> versions;
  if (has_own_worker(world)) versions.push_back(planning::own_stamp().libtorch_version);
  for (const auto& one : launch::list_workers(world.places.workers, launch::peakbench_version()))
    if (one.problem.empty() &&
        std::ranges::find(versions, one.stamp.libtorch_version) == versions.end())
      versions.push_back(one.stamp.libtorch_version);
  return versions;
}

std::string version_text(const World& world) {
  const auto versions = libtorch_versions(world);
  return fmt::format(
      "peakbench {} (commit {}), for {} and SDK revision {}", launch::peakbench_version(),
      launch::peakbench_commit(),
      versions.empty() ? "no LibTorch yet" : fmt::format("LibTorch {}", fmt::join(versions, ", ")),
      planning::kSdkRevision);
}

// Where find_package(Peakbench) of a plugin's build is to look.
int print_cmake_folder(World& world) {
  const auto folder =
      fs::path(worker_at_hand(world).program).parent_path().parent_path() / "lib/cmake/Peakbench";
  if (!files::is_there((folder / "PeakbenchConfig.cmake").string()))
    throw ConfigError(fmt::format(
        "{}: there is no CMake package; a build folder has none until it is installed: cmake "
        "--install BUILD --prefix DIR, then DIR/bin/peakbench --cmake-dir",
        folder.string()));
  world.out << folder.string() << "\n";
  return kDone;
}

// What a completion's script calls: `__complete -- WORDS`.
constexpr const char* kComplete = "__complete";

int run_parsed(const std::vector<std::string>& arguments, World& world) {
  CLI::App app{
      "Predict the peak GPU memory of a PyTorch training and show what fills it. Measure what "
      "training strategies cost in memory and throughput.",
      "peakbench"};
  app.footer(kProgramFooter);
  app.set_version_flag("--version", [&world] { return version_text(world); });
  bool cmake_folder = false;
  app.add_flag(
      "--cmake-dir", cmake_folder,
      "Print the folder of Peakbench's CMake package; with --torch VERSION, of the one for "
      "that PyTorch");
  add_torch(app, world)->needs(app.get_option("--cmake-dir"))->group("");
  app.set_help_all_flag("--help-all", "Print the help of every command");
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<HelpFormatter>());

  world.typed = {"peakbench"};
  world.typed.insert(world.typed.end(), arguments.begin(), arguments.end());
  const auto commands = add_commands(app, world);
  if (!arguments.empty() && arguments[0] == kComplete) {
    const auto behind = arguments.size() > 1 && arguments[1] == "--" ? 2 : 1;
    return complete(app, world, {arguments.begin() + behind, arguments.end()});
  }
  if (arguments.size() == 2 && arguments[0] == launch::kProgramWorker)
    return programs::run_case_worker(arguments[1]);
  if (arguments.size() == 3 && arguments[0] == programs::kReleaseLibraries) {
    world.out << programs::make_release_libraries(arguments[1], arguments[2]).string() << "\n";
    return kDone;
  }
  // `help COMMAND` as people type it.
  auto words = arguments;
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  words = with_program_set_apart(app, words);
  if (!words.empty() && words[0] == "debug")
    words.erase(std::ranges::find(words, "--"), words.end());
  try {
    if (words.empty()) words.push_back("--help");
    parse_words(app, words);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked, world.out, world.err);
    return kDone;
  }
  if (!world.places.problem.empty()) throw ConfigError(world.places.problem);
  if (cmake_folder) return print_cmake_folder(world);
  for (const auto& [name, command] : commands)
    if (app.got_subcommand(name)) return command();
  return kDone;
}

// What an error quotes may be long and have lines of its own: they are set in, so that none passes
// for one of ours, and the end is left out.
std::string message(const std::exception& error) {
  constexpr std::size_t kShown = 4000;
  const std::string said = error.what();
  std::string text;
  for (const char c : said.substr(0, kShown)) text += c == '\n' ? "\n  " : std::string(1, c);
  if (said.size() > kShown) text += fmt::format("... ({} bytes more)", said.size() - kShown);
  return text;
}

// Within the window where there is one.
void say(World& world, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    if (world.screen.live)
      world.err << hanging(line.substr(0, indent), line.substr(indent), world.screen.width());
    else
      world.err << line << "\n";
  }
}

}  // namespace

Places own_places() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  const auto bin = program.parent_path();
  const auto prefix = bin.parent_path();
  Places places{bin / "peakbench-worker", prefix / "lib/peakbench/plugins",
                prefix / "share/peakbench/templates", ""};
  places.workers = prefix / "workers";
  places.program = program;
  // A build folder's sources are where it was configured; an installation may bring its own.
  places.source = prefix / "source";
  if (!files::is_there(places.source)) places.source = files::kSourceFolder;
  if (error)
    places.problem = fmt::format(
        "/proc/self/exe cannot be read: {}. By /proc Peakbench finds its own parts and what its "
        "workers have started; mount it (mount -t proc proc /proc), or start the container with it",
        error.message());
  return places;
}

int run_program(const std::vector<std::string>& arguments, World& bare) {
  SafeStream out(bare.out), err(bare.err);
  World world = bare.with_streams(out, err);
  try {
    return run_parsed(arguments, world);
  } catch (const Interrupted& error) {
    world.err << error.what() << "\n";
    return kInterrupted;
  } catch (const ConfigError& error) {
    say(world, "peakbench: " + message(error));
    return kUnusableInput;
  } catch (const PluginError& error) {
    say(world, "peakbench: " + message(error));
    return kUnusableInput;
  } catch (const fs::filesystem_error& error) {
    say(world, fmt::format("peakbench: {}{}{}", error.path1().string(),
                           error.path1().empty() ? "" : ": ", error.code().message()));
    return kUnusableInput;
  } catch (const std::system_error& error) {  // no more threads, say
    say(world, std::string("peakbench: the system refused: ") + error.what());
    return kUnusableInput;
  } catch (const std::bad_alloc&) {
    world.err << "peakbench: not enough memory (ulimit -v, or what the machine has)\n";
    return kUnusableInput;
  } catch (const std::exception& error) {
    say(world, "peakbench: internal error: " + message(error) +
                   "\nPlease report this, with the command line and `peakbench doctor`.");
    return kInternalError;
  }
}

}  // namespace peakbench::cli
