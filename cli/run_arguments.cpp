#include "cli/run_arguments.h"

#include <fmt/format.h>

#include "cli/quantities.h"
#include "cli/whole_number.h"
#include "errors/errors.h"

namespace peakbench::cli {
namespace {

constexpr std::int64_t kMostJobs = 1024;

CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& words,
                          const std::string& type) {
  return command.add_option(name, values, words)->allow_extra_args(false)->type_name(type);
}

template <class Number>
void add_number(CLI::App& command, const std::string& name, std::optional<Number>& value,
                const std::string& words, Number from, Number to) {
  command.add_option(name, value, words)->check(CLI::Range(from, to))->type_name("N");
}

void add_case_options(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("suite", arguments.suite, "A suite: what to run as a TOML file (docs/suites.md)")
      ->type_name("SUITE.toml");
  const std::string group = "Cases (each may be given several times; they multiply)";
  add_repeated(command, "-m,--model", arguments.models,
               "Model, with options: vit-l-16, qwen2.5-0.5b,layers=4", "NAME[,key=value]")
      ->group(group);
  add_repeated(command, "-s,--strategy", arguments.strategies,
               "Strategy or stack of strategies; the first is the reference that differences are "
               "shown against",
               "NAME[,key=value][+NAME...]")
      ->group(group);
  add_repeated(command, "-d,--device", arguments.devices, "Device (default cpu)", "NAME")
      ->group(group);
  add_repeated(command, "--dtype", arguments.dtypes, "Type of the weights: fp32 (default), bf16",
               "TYPE")
      ->group(group);
  add_repeated(command, "-b,--batch", arguments.batches, "Samples in a batch (default 1)", "N")
      ->group(group);
  add_repeated(command, "--seq", arguments.sequences,
               "Tokens in a sample, language models only (default: the model's)", "N")
      ->group(group);
}

void add_measuring_options(CLI::App& command, RunArguments& arguments) {
  add_number<std::int64_t>(command, "--steps", arguments.steps,
                           "Measured steps of each worker (default 3)", 1, plan::kMostSteps);
  add_number<std::int64_t>(command, "--warmup", arguments.warmup,
                           "Steps before timing starts (default 1)", 0, plan::kMostSteps);
  add_number<std::int64_t>(
      command, "--repetitions", arguments.repetitions,
      "Rounds of timing: throughput workers a case (default 3; fewer: no interval; "
      "0: memory only)",
      0, plan::kMostRepetitions);
  add_number<std::int64_t>(command, "--timeout", arguments.timeout_s,
                           "Seconds that one worker process may take (default 3600)", 1,
                           plan::kMostSeconds);
  command
      .add_option("--memory-limit", arguments.memory_limit,
                  "Budget of a worker's CPU tensors: 12GiB, 800MiB, bytes (default: what is "
                  "available less a margin)")
      ->type_name("SIZE");
  add_number<std::int64_t>(command, "--jobs", arguments.jobs,
                           "Cases on emulated cards at a time (default: the processors); all "
                           "others run one by one",
                           1, kMostJobs);
  add_number<std::int64_t>(command, "--threads", arguments.threads,
                           "Threads of a worker (default: LibTorch's)", 1, plan::kMostThreads);
  command.add_option("--seed", arguments.seed, "Seed of weights and batch (default 0)")
      ->check(whole_number(0))
      ->type_name("N");
  command.add_flag("--no-shares", arguments.no_shares,
                   "On an emulated card: do not add the cases that tell what each part of a stack "
                   "saves");
}

void add_cuda_options(CLI::App& command, RunArguments& arguments) {
  const std::string group = "CUDA, real or emulated (docs/emulator.md)";
  const CLI::IsMember on_off({"on", "off"});
  command
      .add_option("--card", arguments.card,
                  "Emulated card that --device auto takes where there is no real one (default "
                  "h100-80gb)")
      ->type_name("CARD")
      ->group(group);
  command.add_option("--cudnn", arguments.cudnn, "cuDNN: on (PyTorch's default) or off")
      ->check(on_off)
      ->type_name("on|off")
      ->group(group);
  command
      .add_option("--tf32", arguments.tf32,
                  "TF32 in cuBLAS and cuDNN (default: PyTorch's own, off and on)")
      ->check(on_off)
      ->type_name("on|off")
      ->group(group);
  command.add_option("--deterministic", arguments.deterministic, "Deterministic algorithms only")
      ->check(on_off)
      ->type_name("on|off")
      ->group(group);
  add_repeated(command, "--allocator", arguments.allocator,
               "Setting of the caching allocator: expandable_segments=on, max_split_size_mb=N, "
               "garbage_collection_threshold=X, roundup_power2_divisions=N",
               "NAME=VALUE")
      ->group(group);
}

void add_folder_options(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("-o,--out", arguments.out, "Folder of the results (default results/TITLE-TIME)")
      ->type_name("DIR");
  auto* resume = command.add_flag("--resume", arguments.resume,
                                  "Keep the cases that the run in --out has ended, run the others");
  command.add_flag("--overwrite", arguments.overwrite, "Delete the run in --out first")
      ->excludes(resume);
  add_repeated(command, "--plugins", arguments.plugins,
               "Folder with more plugins (may be given several times)", "DIR");
  command
      .add_option("--templates", arguments.templates,
                  "Folder with report templates that replace ours, file by file")
      ->type_name("DIR");
}

void add_output_options(CLI::App& command, RunArguments& arguments) {
  auto* dry_run = command.add_flag("--dry-run", arguments.dry_run,
                                   "Show the cases, their ids and conflicts; start nothing");
  command.add_flag("--json", arguments.json, "With --dry-run: as JSON")->needs(dry_run);
  command.add_flag("--no-report", arguments.no_report, "Write run.json and traces only");
  command.add_flag("-q,--quiet", arguments.quiet, "Print errors only");
}

template <class Value>
void replace(Value& value, const std::optional<Value>& typed) {
  if (typed) value = *typed;
}

// What is typed stands nowhere in the suite: messages must not point there.
void forget_places(plan::Request& request, const std::string& section) {
  std::erase_if(request.where,
                [&](const auto& place) { return place.first.rfind(section + "/", 0) == 0; });
}

void replace(plan::Request& request, std::vector<std::string> plan::Request::*values,
             const std::string& section, const std::vector<std::string>& typed, bool with_options,
             const std::string& option) {
  if (typed.empty()) return;
  request.*values = split_values(typed, with_options, option);
  forget_places(request, section);
}

void replace(plan::Request& request, std::vector<std::int64_t> plan::Request::*values,
             const std::string& section, const std::vector<std::string>& typed,
             const std::string& option) {
  if (typed.empty()) return;
  request.*values = positive_numbers(typed, option);
  forget_places(request, section);
}

void require_names(const plan::Request& request) {
  if (request.models.empty())
    throw ConfigError(
        "no model was named: give --model NAME (`peakbench list models` shows them) or a suite "
        "file");
  if (request.strategies.empty())
    throw ConfigError(
        "no strategy was named: give --strategy NAME (`peakbench list strategies` shows them) or "
        "a suite file");
}

}  // namespace

void add_run_options(CLI::App& command, RunArguments& arguments) {
  add_case_options(command, arguments);
  add_measuring_options(command, arguments);
  add_cuda_options(command, arguments);
  add_folder_options(command, arguments);
  add_output_options(command, arguments);
}

namespace {

void take_cuda_options(const RunArguments& arguments, plan::Request& request) {
  auto& options = request.device_options;
  if (!arguments.cudnn.empty()) options["cudnn"] = arguments.cudnn;
  if (!arguments.tf32.empty()) options["tf32"] = arguments.tf32;
  if (!arguments.deterministic.empty()) options["deterministic"] = arguments.deterministic;
  for (const auto& setting : arguments.allocator) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos)
      throw ConfigError(fmt::format("--allocator {}: expected NAME=VALUE", setting));
    options[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
}

}  // namespace

plan::Request make_request(const RunArguments& arguments) {
  plan::Request request;
  if (!arguments.suite.empty()) request = plan::read_suite(arguments.suite);
  using plan::Request;
  replace(request, &Request::models, "models", arguments.models, true, "--model");
  replace(request, &Request::strategies, "strategies", arguments.strategies, true, "--strategy");
  replace(request, &Request::devices, "devices", arguments.devices, true, "--device");
  replace(request, &Request::dtypes, "dtypes", arguments.dtypes, false, "--dtype");
  replace(request, &Request::batch_sizes, "batch_sizes", arguments.batches, "--batch");
  replace(request, &Request::sequence_lengths, "sequence_lengths", arguments.sequences, "--seq");
  replace(request.steps, arguments.steps);
  replace(request.warmup, arguments.warmup);
  replace(request.repetitions, arguments.repetitions);
  replace(request.timeout_s, arguments.timeout_s);
  replace(request.threads, arguments.threads);
  replace(request.seed, arguments.seed);
  if (!arguments.memory_limit.empty())
    request.memory_limit_bytes = bytes_from(arguments.memory_limit, "--memory-limit");
  if (arguments.no_shares) request.shares = false;
  take_cuda_options(arguments, request);
  if (arguments.suite.empty()) require_names(request);
  if (request.title.empty())
    request.title =
        request.models.empty() ? "run" : fmt::format("{}", fmt::join(request.models, " and "));
  return request;
}

}  // namespace peakbench::cli
