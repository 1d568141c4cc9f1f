// `peakbench emulate`: any program that uses PyTorch with CUDA, on a card that is not there.
#include "cli/emulate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/errors.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/option_values.h"
#include "cli/program_words.h"
#include "cli/terminal.h"
#include "emulator/host/card_use.h"
#include "programs/traced.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using emulator::View;

constexpr const char* kJournals = "journals";   // in the folder of the program's figures
constexpr std::int64_t kMostBytes = 256 << 20;  // of a journal: TMPDIR may be memory

// What a process, or without one any of them, took at the most by PyTorch's own count; 0: nothing.
std::uint64_t counted_by_pytorch(const emulator::EmulatedProgram& program,
                                 std::optional<std::int32_t> pid = std::nullopt) {
  std::uint64_t most = 0;
  for (const auto& use : emulator::card_uses(program.ledgers))
    if (!pid || use.process->pid == *pid) most = std::max(most, use.figures().peak_allocated_bytes);
  return most;
}

// Another process that took more of a card than that many bytes, by PyTorch's count or, where that
// is not known, the card's own.
std::optional<std::int32_t> larger_user(const emulator::EmulatedProgram& program, std::int32_t pid,
                                        std::uint64_t bytes) {
  for (const auto& use : emulator::card_uses(program.ledgers)) {
    const auto figures = use.figures();
    const auto most =
        figures.peak_allocated_bytes > 0 ? figures.peak_allocated_bytes : figures.peak_used_bytes;
    if (use.process->pid != pid && most > bytes) return use.process->pid;
  }
  return std::nullopt;
}

struct Found {
  programs::Journal journal;
  std::vector<trace::Lifetime> lifetimes;
  trace::Peak peak;
};

// The process with the highest peak.
std::optional<Found> largest(std::vector<programs::Journal> journals) {
  std::optional<Found> found;
  for (auto& journal : journals) {
    auto lifetimes = trace::lifetimes(journal.trace);
    const auto peak = trace::find_peak(journal.trace, lifetimes);
    if (found && found->peak.allocated_bytes >= peak.allocated_bytes) continue;
    found = Found{std::move(journal), std::move(lifetimes), peak};
  }
  return found;
}

std::string name_of(const programs::Journal& journal) {
  return journal.rank < 0 ? fmt::format("process {}", journal.pid)
                          : fmt::format("rank {} (process {})", journal.rank, journal.pid);
}

std::string not_known(const std::string& why) {
  return fmt::format("unknown: {}; `peakbench trace` may show it", why);
}

// What is said of the peak, and what is written of it.
struct Told {
  std::string whole = {};  // as `emulate --details` ends
  analysis::PeakBrief brief = {};
  std::string in_place = {};      // of both: why nothing is known, and what tells it
  nlohmann::json json = nullptr;  // nothing is known
  std::string misplaced = {};     // as tell_peak has it
};

// Its text is made for one view only.
Told told_of(const emulator::EmulatedProgram& program, const fs::path& folder, View view) {
  auto recorded =
      programs::read_journals(folder / kJournals, {.device = "emulated:" + program.card.spec,
                                                   .emulated = true,
                                                   .failed = program.wait_status != 0});
  const auto count = recorded.journals.size();
  const auto found = largest(std::move(recorded.journals));
  if (!found) return {};
  const auto& journal = found->journal;
  const auto counted = counted_by_pytorch(program, journal.pid);
  if (const auto other = larger_user(program, journal.pid, counted))
    return {.in_place = not_known(
                fmt::format("process {} took more of the card, and was not traced", *other))};
  if (static_cast<std::uint64_t>(found->peak.allocated_bytes) == counted) {
    const analysis::Teller teller{count > 1 ? name_of(journal) : "", count};
    Told told{.json = analysis::peak_json(journal.trace, found->lifetimes)};
    if (view == View::kDetails)
      told.whole = analysis::peak_in_short(journal.trace, found->lifetimes, teller);
    else if (view == View::kSummary)
      told.brief = analysis::peak_brief(journal.trace, found->lifetimes);
    told.json["pid"] = journal.pid;
    told.json["rank"] = journal.rank < 0 ? nlohmann::json() : nlohmann::json(journal.rank);
    return told;
  }
  return {.in_place = not_known(
              journal.stopped != recording::Stopped::kNot
                  ? "it did too much to be recorded in passing"
                  : fmt::format("the trace says {}, PyTorch {}",
                                size_text(static_cast<std::uint64_t>(found->peak.allocated_bytes)),
                                size_text(counted)))};
}

// The line that the first process to fail ended with; empty where none is known.
std::string last_line(const fs::path& journals) {
  std::optional<fs::file_time_type> first;
  std::string line;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(journals, ignored)) {
    if (entry.path().extension() != recording::kRaisedSuffix) continue;
    const auto time = entry.last_write_time();
    if (first && *first <= time) continue;
    first = time;
    line = files::read_regular_file(entry.path().string(), files::kMostSmallText);
  }
  line.erase(std::min(line.find('\n'), line.size()));
  // What PyTorch says beyond that, of the card and of settings, is above and takes seven lines.
  constexpr std::string_view kNoMemory = "CUDA out of memory.";
  if (const auto at = line.find(kNoMemory); at != std::string::npos)
    line.erase(at + kNoMemory.size());
  return line;
}

bool has_journal(const fs::path& journals) {
  std::error_code ignored;
  return std::ranges::any_of(fs::directory_iterator(journals, ignored), [](const auto& entry) {
    return entry.path().extension() == recording::kSuffix;
  });
}

// Why a program has used no card, as far as is known.
std::string why_no_card(const emulator::EmulatedProgram& program, const fs::path& folder) {
  if (has_journal(folder / kJournals))
    return "It imported PyTorch and took nothing of the card. Do the model and the batches go to "
           "\"cuda\"?";
  return program.torch ? "It did not import PyTorch."
                       : "It did not import PyTorch, and no PyTorch was found for it (pip install "
                         "torch; no GPU is needed).";
}

// A program that does not know an option ends before it uses the card.
bool ended_early(const emulator::EmulatedProgram& program) {
  return program.wait_status != 0 && emulator::card_uses(program.ledgers).empty();
}

// The lines below the answer: what the program ended with, its peak, what fills it, what to try.
std::string short_lines(const emulator::EmulatedProgram& program, const fs::path& folder,
                        const Told& told, const emulator::Look& look) {
  std::string text;
  if (const auto line = last_line(folder / kJournals); !line.empty())
    text += emulator::labelled("Ended with", line, look);
  if (ended_early(program) && !told.misplaced.empty())
    return text + emulator::labelled("Why", told.misplaced, look);
  if (emulator::card_uses(program.ledgers).empty())
    return text + emulator::labelled("Why", why_no_card(program, folder), look);
  if (told.brief.when.empty()) {
    if (const auto most = counted_by_pytorch(program))
      text += emulator::labelled("Peak", size_text(most) + " allocated by tensors", look);
    return text +
           (told.in_place.empty() ? "" : emulator::labelled("Filled by", told.in_place, look));
  }
  return text + peak_lines(told.brief, look);
}

// The same where everything is printed: what fills the peak ends it.
std::string whole_text(const emulator::EmulatedProgram& program, const Told& told,
                       const emulator::Look& look) {
  if (ended_early(program) && !told.misplaced.empty())
    return emulator::labelled("Why", told.misplaced, look);
  if (!told.in_place.empty())
    return "\n" + emulator::labelled("What fills the peak", told.in_place, look);
  return told.whole.empty() ? "" : escaped_controls("\n" + told.whole);
}

// Traces the program if an installed tracer fits its PyTorch, and reports the peak when it has
// ended: to stderr, and to the JSON as `peak` (null if unknown). The figures are only reported if
// the trace's peak equals PyTorch's own. `misplaced`: an option of Peakbench that the program was
// given, to be named if it fails before it uses the card.
void tell_peak(emulator::EmulateRequest& request, const std::string& misplaced) {
  struct State {
    bool traced = false;
    std::string compiled_for;  // the release that a tracer would have to be compiled for
  };
  const auto state = std::make_shared<State>();
  request.more_environment = [state](const emulator::BeforeProgram& before) {
    *state = {};
    const auto tracer = programs::tracer_at_hand(
        before.torch, programs::tracer_places(emulator::find_installation()));
    if (!tracer) {
      state->compiled_for = before.torch ? before.torch->version : "";
      return process::Environment{};
    }
    state->traced = true;
    const auto journals = before.folder / kJournals;
    fs::create_directory(journals);
    return programs::tracing_environment(
        *tracer, {.journals = journals, .quiet = true, .most_bytes = kMostBytes});
  };
  request.afterwards = [state, misplaced, &look = request.look](
                           const emulator::EmulatedProgram& program, const fs::path& folder,
                           nlohmann::json& figures) {
    Told told;
    if (state->traced) try {
        told = told_of(program, folder, look.view);
      } catch (const std::exception& error) {  // nothing of the figures rests on it
        told.in_place = not_known(error.what());
      }
    else if (!state->compiled_for.empty() && !emulator::card_uses(program.ledgers).empty())
      told.in_place = fmt::format(
          "`peakbench trace` tells it, and `emulate` once a tracer is compiled for PyTorch {} "
          "(trace does that)",
          printable(state->compiled_for));
    figures["peak"] = std::move(told.json);
    told.misplaced = misplaced;
    if (look.view == View::kSummary)
      std::fputs(short_lines(program, folder, told, look).c_str(), stderr);
    else if (look.view == View::kDetails)
      std::fputs(whole_text(program, told, look).c_str(), stderr);
  };
}

constexpr const char* kEmulateFooter = R"(Examples:
  peakbench emulate --card h100-80gb -- python3 train.py
  peakbench emulate --card a100-40gb,memory=20GiB --json took.json -- python3 train.py --batch 8
  peakbench emulate --card h100-80gb --assume nonzero=all -- python3 train.py
  peakbench emulate --card h100-80gb,count=8 -- torchrun --nproc-per-node 8 train.py
  peakbench emulate --card h100-80gb,count=8 --world 64 --rank 0,63 -- python3 train.py
  peakbench train.py --batch 8

The first line shows whether the program fits the card, and the verdict: how far the figures can be relied
on (docs/explanation/verdict.md). What fills the peak follows. `peakbench list devices` lists the cards.

PyTorch's own allocator manages the memory. Kernels do nothing, and nothing is timed (docs/how-to/emulate.md).
What the program reads from the GPU is known if it was computed only from data of the host. It is unknown if
it depends on weights, activations or other large tensors. Most losses are unknown: the program then reads 1.

`peakbench train.py` is short for `peakbench emulate -- PYTHON train.py`, and -- can be left out after `emulate`.
PYTHON is that of $PEAKBENCH_PYTHON, else of the environment that pip installed Peakbench in, else python3.
`peakbench trace` writes a report.
Exit code: the program's, whether it fits or not; 128 + N if signal N ended it; 2 no program was given, or --json cannot be written.)";

struct EmulateArguments {
  emulator::EmulateRequest request;
  bool lines = true, details = false, quiet = false;
  std::string json;
};

constexpr std::int64_t kMostRanks = 1 << 20;

void add_world(CLI::App& command, emulator::World& world) {
  auto* size = add_number(command, "--world", world.ranks,
                          "Run ranks of a world of N, which need not exist (torchrun's variables "
                          "are set); --card's count is the GPUs of a node",
                          1, kMostRanks);
  command
      .add_option("--rank", world.run,
                  "With --world: which ranks to run, one after the other (default 0)")
      ->type_name("N,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(std::int64_t{0}, kMostRanks - 1))
      ->needs(size);
}

// The option of `emulate` that the program was given in its place, and where it belongs; empty:
// there is none. Short names are left out: programs have their own -v and -q.
std::string misplaced_option(const CLI::App& command, const std::vector<std::string>& program) {
  for (const auto& word : program) {
    const auto* option = word.starts_with("--") ? option_named(command, word) : nullptr;
    if (option == nullptr) continue;
    const auto name = word.substr(0, word.find('='));
    const auto value = takes_value(*option) ? " " + option->get_type_name() : "";
    const auto script = std::ranges::find_if(program, is_script);
    return fmt::format(
        "{0} follows the program and was passed to it. If it is an option of Peakbench, put it "
        "first: peakbench {0}{1} {2}",
        name, value, script == program.end() ? "-- " + program.front() : *script);
  }
  return "";
}

int emulate(World& world, const CLI::App& command, EmulateArguments& arguments) {
  auto& request = arguments.request;
  if (request.command.empty())
    throw ConfigError("no program to run; expected: peakbench emulate --card " + request.card +
                      " -- python3 train.py");
  const auto misplaced = misplaced_option(command, request.command);
  request.command = runnable(request.command);
  if (request.world.ranks > 0 && request.world.run.empty()) request.world.run = {0};
  if (arguments.json == "-")
    request.json_out = &world.out;
  else
    request.json_path = arguments.json;
  request.look.view = arguments.quiet     ? View::kAnswer
                      : arguments.details ? View::kDetails
                                          : View::kSummary;
  if (command.count("--card") == 0) request.look.card_note = " (the default card)";
  if (arguments.lines) tell_peak(request, misplaced);
  return emulator::run_emulated(request);
}

}  // namespace

std::string peak_lines(const analysis::PeakBrief& brief, const emulator::Look& look) {
  auto text = emulator::labelled("Peak", brief.when, look);
  text += emulator::labelled("By category", brief.categories, look);
  if (!brief.fills.empty()) text += emulator::labelled("Filled by", brief.fills, look);
  return text + emulator::labelled(
                    "Try",
                    brief.advice.empty() ? "nothing: no likely mistake was found" : brief.advice,
                    look);
}

Command add_emulate(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "emulate", "Run a PyTorch program on an emulated CUDA card and report its peak memory",
      kEmulateFooter);
  const auto arguments = std::make_shared<EmulateArguments>();
  auto& request = arguments->request;
  add_value(*command, "--card", request.card,
            "Emulated card: h100-80gb (default), h100-80gb,memory=60GiB,count=8, or a JSON file",
            "CARD");
  add_value(*command, "--json", arguments->json,
            "Write the figures as JSON to FILE, or to standard output", "[FILE]");
  add_value(*command, "--name", request.name,
            "Name of the program in comparisons (default: its script's file name)", "NAME");
  auto* details = command->add_flag("-v,--details", arguments->details,
                                    "Print everything: each process, its reads, the whole verdict");
  command->add_flag("-q,--quiet", arguments->quiet, "Print only whether the program fits")
      ->excludes(details);
  command->add_flag_callback(
      "--no-compute", [&request] { request.values.compute = false; },
      "Compute no values; most values that the host reads back are then unknown");
  add_value(
      *command, "--assume", request.values.assume,
      "Rows of x[mask], nonzero() and the like if they are unknown: nonzero=all gives an upper "
      "bound, nonzero=none a lower bound",
      "NAME=WHAT");
  add_second_guess(*command, request.second_guesses);
  add_world(*command, request.world);
  add_program(*command, request.command, "program", "Python script, or command, with its arguments")
      ->type_name("PROGRAM ARG");
  request.look.colours = screen_of(STDERR_FILENO).live;
  request.look.width = [] { return table_width(STDERR_FILENO); };
  command->add_flag_callback(
      "--no-lines", [arguments] { arguments->lines = false; },
      "Do not trace the program to show what fills the peak");
  return [&world, arguments, command] { return emulate(world, *command, *arguments); };
}

}  // namespace peakbench::cli
