#include "cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <system_error>

#include "cli/commands.h"
#include "cli/help_format.h"
#include "cli/safe_stream.h"
#include "cli/worker.h"
#include "cli/workers_build.h"
#include "errors/errors.h"
#include "files/file.h"
#include "launch/host.h"
#include "launch/runner.h"
#include "program/case_worker.h"
#include "program/release_libraries.h"
#include "text/nearest.h"
#include "text/utf8.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgramFooter = R"(Examples:
  peakbench quickstart
  peakbench run --model vit-l-16 --strategy baseline --strategy fused-in-backward --out results/vit
  peakbench run tutorial --out results/tutorial
  peakbench list strategies
  peakbench describe lora
  peakbench report results/vit --format html
  peakbench open results/vit
  peakbench compare results/main results/change
  peakbench gate results/main results/change --junit gate.xml
  peakbench ab build/main build/change --model vit-b-16 --strategy baseline
  peakbench debug results/vit vit-l-16/baseline/cpu/fp32/b1
  peakbench doctor
  peakbench workers build
  peakbench history add results/vit
  peakbench publish --out site
  peakbench fidelity add my-card.json
  peakbench fit --model llama-3.1-8b --dtype bf16 --seq 4096 --card a100-40gb,rtx-4090-24gb
  peakbench advise results/vit
  peakbench emulate --card h100-80gb -- python3 train.py
  peakbench import snapshot.pickle

Exit codes: 0 done, whatever the cases' outcomes; 1 internal error; 2 unusable input (also: every case
conflicts); 3 no case ended ok; 4 a gate found a regression; 5 a gate found a case that failed; 130
interrupted, the report of what was done is written; 141 nobody reads the output any more.
`peakbench COMMAND --help` says more; so does docs/cli.md.)";

// Of each worker that is there; no Python is started.
std::vector<std::string> libtorch_versions(const World& world) {
  std::vector<std::string> versions;
  if (has_own_worker(world)) versions.push_back(manifest::own_stamp().libtorch_version);
  for (const auto& one : workers::list_workers(world.places.workers, launch::peakbench_version()))
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
      manifest::kSdkRevision);
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

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What a completion's script calls: `__complete -- WORDS`.
constexpr const char* kComplete = "__complete";

std::vector<std::string> words_to_complete(const std::vector<std::string>& arguments) {
  const auto behind = arguments.size() > 1 && arguments[1] == "--" ? 2 : 1;
  return {arguments.begin() + behind, arguments.end()};
}

// CLI11 says what it did not expect; we say what was probably meant.
void check_command_name(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].rfind('-', 0) == 0) return;
  const auto names = subcommand_names(app);
  if (std::find(names.begin(), names.end(), arguments[0]) == names.end())
    throw ConfigError(
        fmt::format("no command \"{}\"{}", arguments[0], suggestion(arguments[0], names)));
}

// The command that was given, or the part of it: `history add`.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::string full_name(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr || parent->get_parent() == nullptr
             ? app.get_name()
             : full_name(*parent) + " " + app.get_name();
}

// What other tools call an option.
const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> kNames{
      {"--batch-size", "--batch"},
      {"--batch_size", "--batch"},
      {"--bs", "--batch"},
      {"--seq-len", "--seq"},
      {"--seq-length", "--seq"},
      {"--sequence-length", "--seq"},
      {"--max-length", "--seq"},
      {"--precision", "--dtype"},
      {"--gpu", "--device"},
      {"--gpus", "--device"},
      {"--cuda", "--device"},
      {"--output", "--out"},
      {"--device", "--card"},
      {"--output-dir", "--out"},
      {"--optimizer", "--strategy"},
      {"--optim", "--strategy"},
      {"--gradient-checkpointing", "--strategy"}};
  return kNames;
}

[[noreturn]] void refuse_option(const CLI::App& at, const std::string& name) {
  const auto names = option_names(at);
  const auto other = other_names().find(name);
  const bool is_known =
      other != other_names().end() && std::ranges::count(names, other->second) != 0;
  // The name itself is the nearest of one that is there.
  throw ConfigError(fmt::format("no option {} of `peakbench {}`{}", name, full_name(at),
                                suggestion(is_known ? other->second : name, names)));
}

[[noreturn]] void refuse_extra(const CLI::App& app) {
  const CLI::App& at = innermost(app);
  const auto extra = app.remaining(true);
  for (const auto& text : extra) {
    if (text.rfind('-', 0) != 0) continue;
    refuse_option(at, text.substr(0, text.find('=')));
  }
  if (const auto parts = subcommand_names(at); !parts.empty() && !extra.empty())
    throw ConfigError(fmt::format("no command \"{} {}\"{}", full_name(at), extra.front(),
                                  suggestion(extra.front(), parts)));
  throw ConfigError(fmt::format("`peakbench {}` does not expect \"{}\"; see `peakbench {} --help`",
                                full_name(at), fmt::join(extra, " "), full_name(at)));
}

// The one before a command is that of --cmake-dir.
void check_place_of_torch(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].substr(0, words[0].find('=')) != kTorchOption) return;
  const std::size_t behind = words[0] == kTorchOption ? 2 : 1;
  const CLI::App* at = &app;
  for (std::size_t i = behind; i < words.size(); ++i) {
    const auto named = [&](const CLI::App* one) { return one->get_name() == words[i]; };
    const auto next = at->get_subcommands(named);
    if (next.empty()) break;
    at = next.front();
  }
  if (at == &app) return;
  if (at->get_option_no_throw(kTorchOption) == nullptr) refuse_option(*at, kTorchOption);
  const auto version = behind == 2 ? words[1] : words[0].substr(words[0].find('=') + 1);
  throw ConfigError(fmt::format("{0} stands behind the command: peakbench {1} {0} {2}",
                                kTorchOption, full_name(*at), version));
}

// What is typed comes into messages, results and jobs. A program of the user's own gets its
// arguments as they are.
void check_utf8(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "emulate") return;
  for (const auto& argument : arguments)
    if (!is_utf8(argument))
      throw ConfigError(
          fmt::format("the argument {} is not UTF-8; results are JSON, which holds nothing else: "
                      "rename what it names, or link to it by another name",
                      escaped_bytes(argument)));
}

void parse(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::ExtrasError&) {
    refuse_extra(app);
  }
}

int run_parsed(const std::vector<std::string>& arguments, World& world) {
  CLI::App app{"What a training strategy costs in peak memory and throughput.", "peakbench"};
  app.footer(kProgramFooter);
  app.set_version_flag("--version", [&world] { return version_text(world); });
  bool cmake_folder = false;
  app.add_flag("--cmake-dir", cmake_folder, "Print the folder that CMake finds Peakbench in");
  add_torch(app, world)->needs(app.get_option("--cmake-dir"));
  app.set_help_all_flag("--help-all", "Print the help of every command");
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<HelpFormatter>());

  std::vector<std::string> typed{"peakbench"};
  typed.insert(typed.end(), arguments.begin(), arguments.end());
  const std::vector<std::pair<std::string, Command>> commands{
      {"quickstart", add_quickstart(app, world)},
      {"run", add_run(app, world, typed)},
      {"fit", add_fit(app, world, typed)},
      {"advise", add_advise(app, world)},
      {"list", add_list(app, world)},
      {"describe", add_describe(app, world)},
      {"report", add_report(app, world)},
      {"debug", add_debug(app, world, typed)},
      {"doctor", add_doctor(app, world)},
      {"workers", add_workers(app, world)},
      {"emulate", add_emulate(app)},
      {"trace", add_trace(app, world, typed)},
      {"export", add_export(app, world)},
      {"import", add_import(app, world, typed)},
      {"compare", add_compare(app, world)},
      {"gate", add_gate(app, world)},
      {"ab", add_ab(app, world, typed)},
      {"history", add_history(app, world)},
      {"publish", add_publish(app, world)},
      {"fidelity", add_fidelity(app, world, typed)},
      {"work", add_work(app, world)},
      {"merge", add_merge(app, world, typed)},
      {"new", add_new(app, world)},
      {"check", add_check(app, world)},
      {"open", add_open(app, world)},
      {"completion", add_completion(app, world)},
      {"man", add_man(app, world)}};
  if (!arguments.empty() && arguments[0] == kComplete)
    return complete(app, world, words_to_complete(arguments));
  if (arguments.size() == 2 && arguments[0] == launch::kProgramWorker)
    return program::run_case_worker(arguments[1]);
  if (arguments.size() == 3 && arguments[0] == program::kReleaseLibraries) {
    world.out << program::make_release_libraries(arguments[1], arguments[2]).string() << "\n";
    return kDone;
  }
  // `help COMMAND` as people type it.
  auto words = arguments;
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  if (!words.empty() && words[0] == "debug")
    words.erase(std::ranges::find(words, "--"), words.end());
  try {
    if (words.empty()) words.push_back("--help");
    check_utf8(words);
    check_command_name(app, words);
    check_place_of_torch(app, words);
    parse(app, words);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked, world.out, world.err);
    return kDone;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(error.what());
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
  if (!files::is_there(places.source)) places.source = PEAKBENCH_SOURCES;
  if (error)
    places.problem = fmt::format(
        "/proc/self/exe cannot be read: {}. By /proc Peakbench finds its own parts and what its "
        "workers have started; mount it (mount -t proc proc /proc), or start the container with it",
        error.message());
  return places;
}

int run_program(const std::vector<std::string>& arguments, World& bare) {
  SafeStream out(bare.out), err(bare.err);
  World world{out, err, bare.screen, bare.out_width, bare.places, bare.make_runner};
  try {
    return run_parsed(arguments, world);
  } catch (const Interrupted& error) {
    world.err << error.what() << "\n";
    return kInterrupted;
  } catch (const ConfigError& error) {
    world.err << "peakbench: " << message(error) << "\n";
    return kUnusableInput;
  } catch (const PluginError& error) {
    world.err << "peakbench: " << message(error) << "\n";
    return kUnusableInput;
  } catch (const fs::filesystem_error& error) {
    world.err << fmt::format("peakbench: {}{}{}\n", error.path1().string(),
                             error.path1().empty() ? "" : ": ", error.code().message());
    return kUnusableInput;
  } catch (const std::system_error& error) {  // no more threads, say
    world.err << "peakbench: the system refused: " << error.what() << "\n";
    return kUnusableInput;
  } catch (const std::bad_alloc&) {
    world.err << "peakbench: not enough memory (ulimit -v, or what the machine has)\n";
    return kUnusableInput;
  } catch (const std::exception& error) {
    world.err << "peakbench: internal error: " << message(error)
              << "\nPlease report this, with the command line and `peakbench doctor`.\n";
    return kInternalError;
  }
}

}  // namespace peakbench::cli
