// Suites: what TOML says, and where it is wrong.
#include <sys/stat.h>

#include <fstream>

#include "base/errors.h"
#include "planning/plan.h"
#include "support/fake_plugins.h"
#include "support/plugin_file.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using records::Axis;
using testing::fake_plugins;
using testing::message_of;
using testing::ScratchFolder;
using testing::write_text;
using Texts = std::vector<std::string>;

constexpr const char* kLeast = "models = [\"vit-l-16\"]\nstrategies = [\"baseline\"]\n";

class Suite : public ::testing::Test {
 protected:
  Request read(const std::string& text) {
    write_text(path_, text);
    return read_suite(path_);
  }

  // Of reading or, where that succeeds, of planning; FILE stands for the path.
  std::string error_of(const std::string& text) {
    write_text(path_, text);
    auto message = message_of<ConfigError>([&] { make_plan(read_suite(path_), fake_plugins()); });
    if (message.starts_with(path_)) message = "FILE" + message.substr(path_.size());
    return message;
  }

  ScratchFolder folder_;
  std::string path_ = folder_ / "mine.toml";
};

TEST_F(Suite, EveryKeyIsRead) {
  const Request request = read(R"(
title = "All"
models = ["vit-l-16", "qwen2.5-0.5b,layers=4"]
strategies = ["baseline", "lora,rank=4+checkpointing"]
devices = ["cpu", "emulated:h100-80gb"]
dtypes = ["fp32", "bf16"]
batch_sizes = [1, 2]
sequence_lengths = [128]
steps = 5
warmup = 2
repetitions = 4
timeout_s = 60
memory_limit = "24GiB"
threads = 2
seed = 9

[model_options."qwen2.5-0.5b"]
layers = 6
weights = "/w"

[strategy_options.lora]
rank = 16

[device_options]
cudnn = false
garbage_collection_threshold = 0.5

[[exclude]]
model = "vit-l-16"
batch_size = 2

[[include]]
strategy = "foreach-off"
sequence_length = 64

[[published]]
model = "vit-l-16"
strategy = "baseline"
metric = "peak_memory"
value = 6
unit = "GB"
source = "somebody"
url = "https://example.org"
note = "rounded"
dtype = "bf16"
batch_size = 8
sequence_length = 512
)");
  EXPECT_EQ(request.title, "All");
  EXPECT_EQ(request.suite_file, path_);
  EXPECT_EQ(request.lists.at(Axis::kModel), (Texts{"vit-l-16", "qwen2.5-0.5b,layers=4"}));
  EXPECT_EQ(request.lists.at(Axis::kStrategy), (Texts{"baseline", "lora,rank=4+checkpointing"}));
  EXPECT_EQ(request.lists.at(Axis::kDevice), (Texts{"cpu", "emulated:h100-80gb"}));
  EXPECT_EQ(request.lists.at(Axis::kDtype), (Texts{"fp32", "bf16"}));
  EXPECT_EQ(request.lists.at(Axis::kBatchSize), (Texts{"1", "2"}));
  EXPECT_EQ(request.lists.at(Axis::kSequenceLength), Texts{"128"});
  EXPECT_EQ(request.steps, 5);
  EXPECT_EQ(request.warmup, 2);
  EXPECT_EQ(request.repetitions, 4);
  EXPECT_EQ(request.timeout_s, 60);
  EXPECT_EQ(request.memory_limit_bytes, 24ll << 30);
  EXPECT_EQ(request.threads, 2);
  EXPECT_EQ(request.seed, 9u);
  EXPECT_EQ(request.model_options.at("qwen2.5-0.5b").at("layers"), "6");
  EXPECT_EQ(request.strategy_options.at("lora").at("rank"), "16");
  EXPECT_EQ(request.device_options.at("cudnn"), "false");
  EXPECT_EQ(request.lists.at(Axis::kAllocator), Texts{"garbage_collection_threshold:0.5"});
  EXPECT_EQ(request.excludes.at(0).fields.at("batch_size"), "2");
  EXPECT_EQ(request.includes.at(0).fields.at("strategy"), "foreach-off");
  EXPECT_EQ(request.published.at(0).value, 6);
  EXPECT_EQ(request.published.at(0).url, "https://example.org");
  EXPECT_EQ(request.published.at(0).batch_size, 8);
  EXPECT_EQ(request.published.at(0).sequence_length, 512);
  EXPECT_EQ(request.published.at(0).dtype, "bf16");
  auto asked_for = request;
  asked_for.ablation = false;
  asked_for.is_narrowed = true;  // what is published is of no case
  EXPECT_EQ(make_plan(asked_for, fake_plugins()).cases.size(), 24u + 16u);
}

TEST_F(Suite, LeavesTheDefaults) {
  const Request request = read(kLeast);
  EXPECT_EQ(request.title, "mine");
  EXPECT_EQ(request.lists.at(Axis::kDevice), Texts{"cpu"});
  EXPECT_EQ(request.lists.at(Axis::kDtype), Texts{"fp32"});
  EXPECT_EQ(request.steps, 3);
  EXPECT_TRUE(request.lists.at(Axis::kSequenceLength).empty());
}

TEST_F(Suite, SyntaxErrorsHaveLineAndColumn) {
  const auto error = error_of("title = \"x\"\nmodels = [\"a\"\nsteps = 3\n");
  EXPECT_TRUE(error.starts_with("FILE:3:1: not TOML: ")) << error;
  EXPECT_TRUE(error_of("a = 1\na = 2\n").starts_with("FILE:2:")) << error_of("a = 1\na = 2\n");
  EXPECT_TRUE(error_of("title = \"\xff\"\n").starts_with("FILE:1:"));
}

TEST_F(Suite, UnknownKeysHaveTheNearest) {
  EXPECT_EQ(error_of("model = [\"vit-l-16\"]\n"),
            "FILE:1:1: unknown key \"model\"; did you mean \"models\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "[[exclude]]\n  batch = 2\n"),
            "FILE:4:3: unknown key \"batch\"; did you mean \"batch_size\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "[[published]]\nmetrics = \"x\"\n"),
            "FILE:4:1: unknown key \"metrics\"; did you mean \"metric\"?");
}

TEST_F(Suite, WrongTypesSayWhatWasExpected) {
  EXPECT_EQ(error_of("models = \"vit-l-16\"\n"),
            "FILE:1:10: models: expected a list of strings, got the string \"vit-l-16\"");
  EXPECT_EQ(error_of("models = [\"vit-l-16\", 3]\n"),
            "FILE:1:23: models: expected a string, got 3");
  EXPECT_EQ(error_of("models = []\n"), "FILE:1:10: models: the list is empty");
  EXPECT_EQ(error_of("steps = \"3\"\n"),
            "FILE:1:9: steps: expected an integer, got the string \"3\"");
  EXPECT_EQ(error_of("batch_sizes = [1.5]\n"),
            "FILE:1:16: batch_sizes: expected an integer, got 1.5");
  EXPECT_EQ(error_of("seed = -1\n"), "FILE:1:8: seed: expected an integer of 0 or more, got -1");
  EXPECT_EQ(error_of("memory_limit = 24\n"), "FILE:1:16: memory_limit: expected a string, got 24");
  EXPECT_EQ(error_of("memory_limit = \"much\"\n"),
            "FILE:1:16: memory_limit: expected a size above 0 with B, KiB, MiB, GiB, TiB, kB, MB, "
            "GB or TB, "
            "like 60GiB, or bytes alone, got \"much\"");
  EXPECT_EQ(error_of("exclude = 3\n"), "FILE:1:11: exclude: expected a list of tables, got 3");
  EXPECT_EQ(error_of("model_options = 3\n"), "FILE:1:17: model_options: expected a table, got 3");
  EXPECT_EQ(error_of("[model_options]\nlayers = 3\n"),
            "FILE:2:10: layers: expected a table of options, got 3");
  EXPECT_EQ(error_of("title = 1979-05-27\n"),
            "FILE:1:9: title: expected a string, got a date or time");
}

TEST_F(Suite, AnIdWithADotStandsInQuotes) {
  EXPECT_EQ(error_of("[model_options.qwen2.5-0.5b]\nlayers = 3\n"),
            "FILE:1:1: 5-0: expected a value, got a table; put an id with a dot in quotes");
}

TEST_F(Suite, WhatIsMissingIsNamed) {
  EXPECT_EQ(error_of("strategies = [\"baseline\"]\n"),
            "FILE: models: missing; a suite names at least one, or has an include or programs");
  EXPECT_EQ(error_of(std::string(kLeast) + "[[exclude]]\n"),
            "FILE:3:1: this exclude says nothing; it needs one key at least");
  EXPECT_EQ(error_of(std::string(kLeast) +
                     "[[published]]\nmodel = \"vit-l-16\"\nmetric = \"peak_memory\"\nvalue = 6\n"
                     "unit = \"GB\"\n"),
            "FILE:3:1: source: missing; a published figure needs it");
  EXPECT_EQ(
      error_of(std::string(kLeast) +
               "[[published]]\nmodel = \"vit-l-16\"\nmetric = \"peak_memory\"\nbatch_size = 0\n"),
      "FILE:6:14: batch_size: expected an integer from 1 to 1000000000, got 0");
  EXPECT_EQ(
      error_of(std::string(kLeast) + "[[published]]\nmodel = \"vit-l-16\"\nmetric = \"memory\"\n"),
      "FILE:5:10: metric: expected peak_memory, peak_allocated, peak_active, peak_reserved or "
      "throughput, got \"memory\"");
}

TEST_F(Suite, PublishedFiguresAreGradedWithWhatThatNeeds) {
  const std::string figure = std::string(kLeast) +
                             "[[published]]\nmodel = \"vit-l-16\"\nsource = \"x\"\n"
                             "metric = \"peak_reserved\"\nunit = \"GiB\"\nvalue = 4.8\n";
  const auto graded = figure + "url = \"https://example.org\"\ndevice = \"emulated:a100-80gb\"\n" +
                      "rounded_to = 0.1\nversions = {torch = \"2.4.0\", peft = \"0.12\"}\n" +
                      "grade = \"same_law\"\n";
  const auto read_back =
      read(graded + "cause = \"data\"\nexplanation = \"shorter samples\"\n").published.at(0);
  EXPECT_EQ(read_back.device, "emulated:a100-80gb");
  EXPECT_EQ(read_back.rounded_to, 0.1);
  EXPECT_EQ(read_back.versions.at("peft"), "0.12");
  EXPECT_EQ(read_back.grade, "same_law");
  EXPECT_EQ(read_back.cause, "data");
  EXPECT_EQ(read_back.explanation, "shorter samples");

  EXPECT_EQ(error_of(figure + "grade = \"good\"\n"),
            "FILE:9:9: grade: expected same_configuration, same_law, other_versions, computed, got "
            "\"good\"");
  EXPECT_EQ(error_of(figure + "grade = \"same_law\"\n"),
            "FILE:3:1: device: missing; a graded figure names the card it was measured on");
  EXPECT_EQ(
      error_of(figure + "device = \"cuda:0\"\n"),
      "FILE:9:10: device: expected an emulated card, like emulated:a100-80gb, got \"cuda:0\"");
  EXPECT_EQ(error_of(graded + "cause = \"data\"\n"),
            "FILE:3:1: explanation: missing; a cause needs a sentence that says what was seen");
  EXPECT_EQ(error_of(graded + "cause = \"magic\"\nexplanation = \"x\"\n"),
            "FILE:14:9: cause: expected versions, kernels, workspaces, data, timing, unknown, got "
            "\"magic\"");
  EXPECT_EQ(error_of(figure + "cause = \"data\"\nexplanation = \"x\"\n"),
            "FILE:9:9: cause: is of graded figures; add a grade");
}

TEST_F(Suite, PublishedMemoryHasAUnitOfMemory) {
  const std::string figure = std::string(kLeast) +
                             "[[published]]\nmodel = \"vit-l-16\"\nsource = \"x\"\n"
                             "metric = \"peak_memory\"\n";
  EXPECT_EQ(error_of(figure + "unit = \"Gb/s\"\nvalue = 4.8\n"),
            "FILE:7:8: unit: expected bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB, got \"Gb/s\"");
  EXPECT_EQ(error_of(figure + "unit = \"GB\"\n"),
            "FILE:3:1: value: missing, or 0; a published figure is above 0");
  EXPECT_EQ(error_of(figure + "unit = \"GB\"\nvalue = 5\nrounded_to = 0\n"),
            "FILE:9:14: rounded_to: expected a figure above 0, in the figure's unit");
}

TEST_F(Suite, NamesAreReportedWhereTheyStand) {
  EXPECT_EQ(
      error_of("models = [\n  \"vit-l-16\",\n  \"vit-l-61\",\n]\nstrategies = [\"baseline\"]\n"),
      "FILE:3:3: unknown model \"vit-l-61\"; did you mean \"vit-l-16\"?");
  EXPECT_EQ(error_of("models = [\"vit-l-16\"]\nstrategies = [\"baseline\", \"loar\"]\n"),
            "FILE:2:27: unknown strategy \"loar\"; did you mean \"lora\"?");
  EXPECT_EQ(error_of("models = [\"vit-l-16\"]\nstrategies = [\"lora,rank=0\"]\n"),
            "FILE:2:15: lora,rank=0: expected an integer from 1 to 4096");
  EXPECT_EQ(error_of("models = [\"vit-l-16\"]\nstrategies = [\"lora,rank\"]\n"),
            "FILE:2:15: \"lora,rank\", column 6: expected key=value");
  EXPECT_EQ(error_of(std::string(kLeast) + "devices = [\"cpus\"]\n"),
            "FILE:3:12: unknown device \"cpus\"; did you mean \"cpu\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "dtypes = [\"fp31\"]\n"),
            "FILE:3:11: unknown dtype \"fp31\"; did you mean \"fp32\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "batch_sizes = [1, 0]\n"),
            "FILE:3:19: batch_sizes: expected an integer of 1 or more, got 0");
  EXPECT_EQ(error_of(std::string(kLeast) + "steps = 0\n"),
            "FILE:3:9: steps: expected an integer of 1 or more, got 0");
  EXPECT_EQ(error_of(std::string(kLeast) + "timeout_s = 9223372037\n"),
            "FILE:3:13: timeout_s: expected an integer of 1000000 or less, got 9223372037");
  EXPECT_EQ(error_of(std::string(kLeast) + "[strategy_options.lora]\nrnak = 4\n"),
            "FILE:4:8: unknown option \"rnak\" of lora; did you mean \"rank\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "[strategy_options.loar]\nrank = 4\n"),
            "FILE:3:1: unknown strategy \"loar\"; did you mean \"lora\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "[device_options]\ncuddn = true\n"),
            "FILE:4:9: unknown device option \"cuddn\"; did you mean \"cudnn\"?");
  EXPECT_EQ(error_of(std::string(kLeast) + "[[exclude]]\nmodel = \"vit\"\n"),
            "FILE:4:9: unknown model \"vit\"; did you mean \"vit-l-16\"?");
  EXPECT_EQ(error_of(std::string(kLeast) +
                     "[[published]]\nmodel = \"vit\"\nmetric = \"throughput\"\nvalue = 1.5\n"
                     "unit = \"tok/s\"\nsource = \"s\"\n"),
            "FILE:4:9: unknown model \"vit\"; did you mean \"vit-l-16\"?");
}

TEST_F(Suite, AFileThatCannotBeReadSaysWhy) {
  EXPECT_EQ(message_of<ConfigError>([&] { read_suite(folder_ / "no.toml"); }),
            folder_ / "no.toml" + ": cannot be read: No such file or directory");
  EXPECT_EQ(message_of<ConfigError>([&] { read_suite(folder_.path()); }),
            folder_.path() + ": is a folder, not a file");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of<ConfigError>([&] { read_suite(folder_ / "pipe"); }),
            folder_ / "pipe" +
                ": is a pipe or a device; expected a regular file: write the content to one");
}

TEST_F(Suite, NumbersAreFiniteAndInTheirRange) {
  const std::string figure =
      "[[published]]\nmodel = \"vit-l-16\"\nmetric = \"peak_memory\"\nunit = \"GiB\"\nsource = "
      "\"s\"\nvalue = ";
  for (const std::string literal : {"inf", "-inf", "nan", "-1", "1e300"}) {
    const auto error = error_of(kLeast + figure + literal + "\n");
    EXPECT_TRUE(error.starts_with("FILE:8:9: value: expected a finite number from 0 to ")) << error;
  }
  EXPECT_EQ(error_of(std::string(kLeast) + "steps = inf\n"),
            "FILE:3:9: steps: expected an integer, got inf");
  EXPECT_EQ(error_of(std::string(kLeast) + "repetitions = 9223372036854775807\n"),
            "FILE:3:15: repetitions: expected an integer of 1000 or less, got 9223372036854775807");
  EXPECT_EQ(error_of(std::string(kLeast) + "[gate]\nallocated = nan\n").substr(0, 35),
            "FILE:4:13: gate.allocated: expected");
  EXPECT_EQ(
      error_of(std::string(kLeast) + "[device_options]\ngarbage_collection_threshold = nan\n"),
      "FILE:4:32: allocator setting garbage_collection_threshold:nan: expected a number between 0 "
      "and 1");
}

TEST_F(Suite, KeysHaveAFewParts) {
  const auto parts = [](int count) {
    std::string key = "a";
    for (int i = 1; i < count; ++i) key += ".a";
    return key;
  };
  const std::string many = parts(200'000), least = kLeast;
  const std::string said = "a key of more than 32 parts; no key of a suite has them";
  for (const auto& text :
       {many + " = 1", "[" + many + "]", "[[" + many + "]]", "x = {" + many + " = 1}",
        "x = [{" + many + " = 1}]", "x = {y = \"\"\"a\"\"\"\", " + many + " = 1}",
        "x = {y = 'a\\', " + many + " = 1}", "\"a b\"." + many + " = 1"}) {
    EXPECT_EQ(error_of(least + text + "\n"), "FILE:3: " + said) << text.substr(0, 30);
  }
  EXPECT_EQ(error_of(least + parts(33) + " = 1\n"), "FILE:3: " + said);
  EXPECT_EQ(error_of(least + parts(32) + " = 1\n").substr(0, 25), "FILE:3:1: unknown key \"a\"");
  // Where dots are not a key's.
  EXPECT_EQ(read(least + "title = \"" + many + "\" # " + many + "\n").title, many);
  EXPECT_EQ(read(least + "title = \"\"\"\n" + many + "\"\"\"\n").title, many);
}

// The suites of the repository hold together with the manifests of its plugins, neither built.
TEST_F(Suite, WhatMatchesNothingIsRefusedWithTheNearest) {
  const std::string two = "models = [\"vit-l-16\"]\nstrategies = [\"baseline\", \"lora\"]\n";
  const auto figure = [](const std::string& more) {
    return "[[published]]\nmodel = \"vit-l-16\"\nmetric = \"peak_memory\"\nvalue = 6\nunit = "
           "\"GB\"\nsource = \"x\"\n" +
           more;
  };
  EXPECT_EQ(error_of(two + "[[exclude]]\nstrategy = \"*lroa*\"\n"),
            "FILE:4:12: strategy \"*lroa*\": no case has it, so that this exclude leaves out "
            "nothing; did you mean \"lora\"?");
  EXPECT_EQ(error_of(two + "[[exclude]]\nmodel = \"plain\"\n"),
            "FILE:4:9: model \"plain\": no case has it, so that this exclude leaves out nothing; "
            "known: vit-l-16");
  EXPECT_EQ(error_of(two + "batch_sizes = [1, 2]\n[[exclude]]\nbatch_size = 4\n"),
            "FILE:5:14: batch_size \"4\": no case has it, so that this exclude leaves out nothing; "
            "known: 1, 2");
  EXPECT_EQ(error_of(two + "[[exclude]]\nstrategy = \"lora\"\n[[exclude]]\nstrategy = \"*\"\n"
                           "dtype = \"bf16\"\n")
                .substr(0, 26),
            "FILE:7:9: dtype \"bf16\": no");
  EXPECT_EQ(error_of(two + "[strategy_options.foreach-off]\n"),
            "FILE:3:1: strategy_options.foreach-off: no case has that strategy, so that these "
            "options set nothing; known: baseline, lora");
  EXPECT_EQ(error_of(two + "[model_options.plain]\nlayers = 2\n").substr(0, 50),
            "FILE:3:1: model_options.plain: no case has that mo");
  EXPECT_EQ(error_of(two + figure("batch_size = 8\n")),
            "FILE:4:9: published figure 1 of vit-l-16: no case agrees with its model, strategy, "
            "device, dtype and sizes, so that no report would show it");
  // All of them match something; and what is typed may leave less.
  EXPECT_NO_THROW(
      make_plan(read(two + figure("batch_size = 1\n") + "[strategy_options.lora]\nrank = 16\n"),
                fake_plugins()));
  write_text(path_, two + "[[exclude]]\nstrategy = \"lora\"\n" + figure(""));
  auto request = read_suite(path_);
  request.lists[Axis::kStrategy] = {"baseline"};
  EXPECT_THROW(make_plan(request, fake_plugins()), ConfigError);
  request.is_narrowed = true;
  EXPECT_EQ(make_plan(request, fake_plugins()).cases.size(), 1U);
}

class OurSuites : public ::testing::Test {
 protected:
  Plan plan_of(const std::string& name) {
    namespace fs = std::filesystem;
    const fs::path source(PEAKBENCH_SOURCE_DIR);
    for (const char* room : {"models", "plugins"}) {
      for (const auto& folder : fs::directory_iterator(source / room)) {
        const auto manifest = folder.path() / "plugin.json";
        if (!fs::exists(manifest)) continue;
        write_text(scratch_ / (folder.path().filename().string() + ".so"),
                   testing::plugin_bytes(nlohmann::json::parse(std::ifstream(manifest))));
      }
    }
    found_ = planning::discover({scratch_.path()}, planning::own_stamp());
    EXPECT_EQ(found_.problems, Texts{});
    return make_plan(read_suite((source / "suites" / name).string()), found_);
  }

  static void expect_all_run(const Plan& plan) {
    for (const auto& planned : plan.cases)
      EXPECT_FALSE(planned.decided) << planned.spec.id << planned.reason;
  }

  ScratchFolder scratch_;
  planning::Found found_;
};

// Each example in docs/reference/suites.md is a suite by itself; its table names every key.
TEST_F(OurSuites, ExamplesOfTheDocs) {
  const std::string docs = testing::read_text(PEAKBENCH_SOURCE_DIR "/docs/reference/suites.md");
  const std::string begin = "```toml\n", end = "```";
  std::size_t examples = 0;
  for (auto at = docs.find(begin); at != std::string::npos; at = docs.find(begin, at + 1)) {
    const auto start = at + begin.size();
    const std::string path = scratch_ / "example.toml";
    std::filesystem::create_directories(scratch_ / "scripts");
    write_text(scratch_ / "scripts/train.py", "");
    write_text(path, docs.substr(start, docs.find(end, start) - start));
    expect_all_run(plan_of(path));
    ++examples;
  }
  EXPECT_EQ(examples, 6u);
  for (const auto& key : suite_keys()) {
    EXPECT_NE(docs.find("| `" + key + "` |"), std::string::npos) << key;
  }
}

TEST_F(OurSuites, Quickstart) {
  const Plan plan = plan_of("quickstart.toml");
  EXPECT_EQ(plan.cases.size(), 10u);
  EXPECT_EQ(plan.reference, "baseline");
  EXPECT_EQ(plan.cases[0].spec.id, "vit-l-16/baseline/cpu/fp32/b1");
  EXPECT_EQ(plan.cases[5].spec.id, "qwen2.5-0.5b,layers=4/baseline/cpu/fp32/b1/s128");
  expect_all_run(plan);
}

TEST_F(OurSuites, Tutorial) {
  const Plan plan = plan_of("tutorial.toml");
  EXPECT_EQ(plan.cases.size(), 14u);
  ASSERT_EQ(plan.request.published.size(), 3u);
  EXPECT_EQ(plan.request.published[1].strategy, "foreach-off");
  EXPECT_EQ(plan.request.published[1].value, 4.8);
  expect_all_run(plan);
}

// What others published is of cases that these suites have, and all of it is graded.
TEST_F(OurSuites, PublishedByOthers) {
  namespace fs = std::filesystem;
  std::size_t suites = 0;
  for (const auto& file : fs::directory_iterator(PEAKBENCH_SOURCE_DIR "/suites/published")) {
    if (file.path().extension() != ".toml") continue;
    const Plan plan = plan_of("published/" + file.path().filename().string());
    expect_all_run(plan);
    EXPECT_FALSE(plan.request.published.empty()) << file.path();
    for (const auto& figure : plan.request.published) {
      const auto has_it = [&](const auto& planned) { return is_about(figure, planned.spec); };
      EXPECT_TRUE(std::any_of(plan.cases.begin(), plan.cases.end(), has_it))
          << file.path() << ": no case of " << figure.model << " / " << figure.strategy;
      EXPECT_FALSE(figure.grade.empty()) << file.path() << ": " << figure.strategy;
    }
    ++suites;
  }
  EXPECT_GT(suites, 0u);
}

}  // namespace
}  // namespace peakbench::planning
