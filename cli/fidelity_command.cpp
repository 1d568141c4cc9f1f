// `peakbench fidelity`: emulated cards held against peaks that were measured on real ones.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/output_format.h"
#include "cli/plugin_folders.h"
#include "cli/worker.h"
#include "errors/errors.h"
#include "files/file.h"
#include "inventory/hook.h"
#include "launch/interrupt.h"
#include "plan/plan.h"
#include "reports/fidelity/program_result.h"
#include "reports/fidelity/record.h"
#include "reports/fidelity/table.h"
#include "result/device.h"
#include "result/run.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

using fidelity::Record;
using fidelity::Records;

constexpr const char* kFidelityFooter = R"(Examples:
  peakbench fidelity add my-card.json
  peakbench fidelity table fidelity.json --out fidelity.md
A record is a peak of a real card with its configuration, in JSON; its form is in
docs/fidelity_records.md.)";

constexpr const char* kTableFooter = R"(Examples:
  peakbench run suites/published/ibm.toml --out results/ibm
  peakbench fidelity table results/ibm fidelity.json
  peakbench fidelity table results/ibm fidelity.json --out fidelity.md
A folder of a run gives the graded figures of its suite; a file gives its records.
Exit codes: 0, whatever the differences; 2 unusable input, or nothing in it was measured.)";

constexpr const char* kAddRecordFooter = R"(Examples:
  peakbench fidelity add my-card.json
  peakbench fidelity add my-card.json --to fidelity.json --out results/my-card
  peakbench emulate --card a100-80gb --json took.json -- python3 train.py
  peakbench fidelity add my-program.json --emulated took.json
Of a case, the emulated card's figure is measured now; of a program, it is what `peakbench emulate`
wrote. A record of the same metric, source, card and configuration is replaced.
Exit codes: 0; 2 unusable input; 3 the case did not end ok on the emulated card: nothing is added;
130 interrupted, nothing is added.)";

void gather(Records& to, Records from) {
  std::ranges::move(from.records, std::back_inserter(to.records));
  std::ranges::move(from.not_rebuilt, std::back_inserter(to.not_rebuilt));
}

Records read_source(const std::string& path) {
  const bool run = files::is_folder(path) || std::filesystem::path(path).filename() == "run.json";
  if (!run) return fidelity::read_records(path);
  auto records = fidelity::records_of(result::read_run(path));
  if (records.records.empty())
    throw ConfigError(fmt::format(
        "{}: this run has no graded figure; its suite's [[published]] need a `grade`", path));
  return records;
}

struct FidelityTable {
  std::vector<std::string> sources;
  std::string out, templates;
  OutputFormat format;
};

int show_table(World& world, const FidelityTable& arguments) {
  Records records;
  for (const auto& source : arguments.sources) gather(records, read_source(source));
  const bool measured = std::ranges::any_of(
      records.records, [](const Record& one) { return one.emulated.has_value(); });
  if (!measured)
    throw ConfigError(fmt::format("no record of {} has a figure of an emulated card",
                                  fmt::join(arguments.sources, ", ")));
  if (!arguments.out.empty())
    files::write_file_atomically(
        arguments.out, fidelity::page(records, {arguments.templates, world.places.templates}));
  if (arguments.format.name == "csv")
    world.out << arguments.format.of(to_json(records).at("records"));
  else if (!arguments.format.is_text())
    world.out << arguments.format.of(to_json(records));
  else if (arguments.out.empty())
    world.out << fidelity::to_text(records, world.out_width);
  else
    world.out << arguments.out << "\n";
  return kDone;
}

Command add_table(CLI::App& parent, World& world) {
  auto* command = parent.add_subcommand("table", "Show published and emulated figures, row by row");
  command->footer(kTableFooter);
  const auto arguments = std::make_shared<FidelityTable>();
  command->add_option("source", arguments->sources, "Folders of runs, and files of records")
      ->type_name("RUN|FILE")
      ->required();
  command->add_option("--out", arguments->out, "Write the page, in Markdown, to this file")
      ->type_name("FILE");
  add_output_format(*command, arguments->format);
  command
      ->add_option("--templates", arguments->templates,
                   "Folder of templates; a file in it replaces ours")
      ->type_name("DIR");
  return [&world, arguments] { return show_table(world, *arguments); };
}

struct RecordArguments {
  std::vector<std::string> files, plugins;
  std::string to = "fidelity.json", emulated, out;
  bool quiet = false;
};

class RecordCommand {
 public:
  RecordCommand(World& world, const RecordArguments& arguments,
                const std::vector<std::string>& typed)
      : world_(world), arguments_(arguments), typed_(typed) {}

  int go() {
    // All that can be wrong with files, before anything runs.
    for (const auto& file : arguments_.files) gather(new_, fidelity::read_records(file));
    if (files::is_there(arguments_.to)) all_ = fidelity::read_records(arguments_.to);
    take_programs();
    if (const int code = measure_cases(); code != kDone) return code;
    for (const auto& record : new_.records) fidelity::add(all_, record);
    std::ranges::copy(new_.not_rebuilt, std::back_inserter(all_.not_rebuilt));
    files::write_json_file(arguments_.to, to_json(all_));
    world_.out << fidelity::to_text(new_, world_.out_width)
               << fmt::format("Records: {} ({} in all)\n", arguments_.to, all_.records.size());
    return kDone;
  }

 private:
  static bool is_to_measure(const Record& record) { return !record.emulated; }

  void take_programs() {
    for (auto& record : new_.records) {
      if (record.emulated || record.program.empty()) continue;
      if (arguments_.emulated.empty())
        throw ConfigError(fmt::format(
            "{}: it is of a program; run `peakbench emulate --card {} --json took.json -- {}` and "
            "add --emulated took.json",
            fidelity::name_of(record), result::recorded_device(record.figure.device).card,
            fmt::join(record.program, " ")));
      record.emulated = fidelity::read_program_result(arguments_.emulated, record);
    }
  }

  plan::Request request() const {
    plan::Request request;
    request.title = "fidelity";
    request.repetitions = 0;
    request.ablation = false;
    for (const auto& record : new_.records) {
      if (!is_to_measure(record)) continue;
      const auto& figure = record.figure;
      plan::Rule rule;
      rule.fields = {{"model", figure.model},
                     {"strategy", figure.strategy},
                     {"device", figure.device},
                     {"dtype", figure.dtype},
                     {"batch_size", std::to_string(figure.batch_size.value_or(1))}};
      if (figure.sequence_length)
        rule.fields["sequence_length"] = std::to_string(*figure.sequence_length);
      for (const auto& [field, text] : rule.fields) rule.where[field] = record.where;
      request.includes.push_back(std::move(rule));
      request.published.push_back(figure);
    }
    return request;
  }

  int measure_cases() {
    if (std::ranges::none_of(new_.records, is_to_measure)) return kDone;
    const auto plugins = find_plugins(world_, arguments_.plugins);
    auto asked = request();
    asked.worker = worker_of(world_);
    const auto plan = plan::make_plan(asked, plugins, inventory::device_hook("", asked.worker));
    const auto runner = world_.make_runner(asked.worker);
    const launch::RunFolder folder(arguments_.out.empty() ? make_folder_for("fidelity")
                                                          : arguments_.out);
    const launch::InterruptScope interrupts;
    launch::SessionOptions options;
    options.command = without_environment(typed_);
    const auto run =
        measure(world_, plan, plugins, *runner, folder, options, std::nullopt, arguments_.quiet);
    if (run.status == "interrupted") return kInterrupted;
    return take(fidelity::records_of(run), folder.path());
  }

  // In the order of request(): every record is graded.
  int take(const Records& measured, const std::string& folder) {
    auto next = measured.records.begin();
    int code = kDone;
    for (auto& record : new_.records) {
      if (!is_to_measure(record)) continue;
      const Record& ours = *next++;
      record.figure = ours.figure;
      record.emulated = ours.emulated;
      record.reason = ours.reason;
      if (record.emulated) continue;
      world_.err << fmt::format("peakbench: {}: {}; its run is in {}\n", fidelity::name_of(record),
                                printable(record.reason), folder);
      code = kEveryCaseFailed;
    }
    return code;
  }

  World& world_;
  const RecordArguments& arguments_;
  const std::vector<std::string>& typed_;
  Records new_, all_;
};

Command add_record(CLI::App& parent, World& world, const std::vector<std::string>& typed) {
  auto* command = parent.add_subcommand("add", "Add your own measurement to a file of records");
  command->footer(kAddRecordFooter);
  const auto arguments = std::make_shared<RecordArguments>();
  command->add_option("record", arguments->files, "Files of a record, or of several")
      ->type_name("FILE")
      ->required();
  command->add_option("--to", arguments->to, "The file to add to (default fidelity.json)")
      ->type_name("FILE");
  command
      ->add_option("--emulated", arguments->emulated,
                   "Of a program: what `peakbench emulate --json` wrote")
      ->type_name("FILE");
  command->add_option("--out", arguments->out, "Run folder (default results/fidelity-TIME)")
      ->type_name("DIR");
  command->add_option("--plugins", arguments->plugins, "Folder of more plugins; may be repeated")
      ->type_name("DIR");
  command->add_flag("-q,--quiet", arguments->quiet, "Show no progress");
  add_torch(*command, world);
  return [&world, arguments, &typed] { return RecordCommand(world, *arguments, typed).go(); };
}

}  // namespace

Command add_fidelity(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command = app.add_subcommand(
      "fidelity", "How close are emulated cards to real ones? Published figures beside ours");
  command->footer(kFidelityFooter);
  command->require_subcommand(0, 1);
  const auto table = add_table(*command, world);
  const auto add = add_record(*command, world, typed);
  return [command, table, add] {
    if (command->got_subcommand("table")) return table();
    if (command->got_subcommand("add")) return add();
    throw ConfigError("fidelity needs a command: table or add; see `peakbench fidelity --help`");
  };
}

}  // namespace peakbench::cli
