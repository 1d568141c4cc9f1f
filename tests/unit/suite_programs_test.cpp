// Programs of a suite: what their tables say, the cases that their axes make, and where they are
// wrong.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/errors.h"
#include "planning/plan.h"
#include "support/fake_plugins.h"
#include "support/plugin_file.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using testing::fake_plugins;
using testing::message_of;
using testing::ScratchFolder;
using testing::write_text;
using Texts = std::vector<std::string>;

class SuitePrograms : public ::testing::Test {
 protected:
  SuitePrograms() { write_text(folder_ / "train.sh", ""); }

  Plan plan_of(const std::string& text) {
    write_text(path_, text);
    auto request = read_suite(path_);
    request.ablation = false;
    return make_plan(request, fake_plugins());
  }

  // Of reading or, where that succeeds, of planning; FILE and FOLDER stand for the paths.
  std::string error_of(const std::string& text) {
    auto message = message_of<ConfigError>([&] { plan_of(text); });
    for (const auto& [path, name] : {std::pair{path_, "FILE"}, {folder_ / "", "FOLDER/"}})
      for (auto at = message.find(path); at != std::string::npos; at = message.find(path))
        message.replace(at, path.size(), name);
    return message;
  }

  // The least that works, with more keys.
  static std::string program(const std::string& more,
                             const std::string& command = "[\"sh\", \"train.sh\"]") {
    return "[[programs]]\nname = \"train\"\ncommand = " + command + "\n" + more;
  }

  static Texts ids(const Plan& plan) {
    Texts ids;
    for (const auto& one : plan.cases) ids.push_back(one.spec.id);
    return ids;
  }

  ScratchFolder folder_;
  std::string path_ = folder_ / "mine.toml";
};

TEST_F(SuitePrograms, AScriptThatIsNotThereIsNamed) {
  EXPECT_EQ(error_of(program("", "[\"sh\", \"trian.sh\"]")),
            "FILE:1:1: program \"train\": there is no file FOLDER/trian.sh; did you mean "
            "\"train.sh\"?");
  EXPECT_NO_THROW(plan_of(program("", "[\"sh\", \"-c\", \"./absent.sh\"]"))) << "a shell's words";
}

TEST_F(SuitePrograms, EveryCombinationOfTheAxesIsACase) {
  std::filesystem::create_directory(folder_ / "scripts");
  const auto plan = plan_of(R"toml(
devices = ["cpu", "emulated:h100-80gb"]
[[programs]]
name = "train"
command = ["sh", "-c", "echo {{}} {batch}-{mode}", "{batch}"]
folder = "scripts"
environment = {ALLOC = "mode:{mode}", PLAIN = "x", NUMBER = 3}
devices = ["emulated:h100-80gb,memory=20GiB"]
timeout_s = 7
[programs.axes]
batch = [1, 4]
mode = ["plain", "two words; $(touch x)"]
[[programs]]
name = "other.py"
command = ["sh"]
)toml");
  EXPECT_EQ(ids(plan),
            (Texts{
                "program/train,batch=1,mode=plain/emulated:h100-80gb,memory=20GiB",
                "program/train,batch=1,mode=\"two words; $(touch x)\"/emulated:h100-80gb,"
                "memory=20GiB",
                "program/train,batch=4,mode=plain/emulated:h100-80gb,memory=20GiB",
                "program/train,batch=4,mode=\"two words; $(touch x)\"/emulated:h100-80gb,"
                "memory=20GiB",
                "program/other.py/cpu",
                "program/other.py/emulated:h100-80gb",
            }));
  const auto& program = *plan.cases[3].program;
  // One argument each, whatever they hold.
  EXPECT_EQ(program.arguments, (Texts{"sh", "-c", "echo {} 4-two words; $(touch x)", "4"}));
  EXPECT_EQ(program.environment, (std::map<std::string, std::string>{
                                     {"ALLOC", "mode:two words; $(touch x)"},
                                     {"PLAIN", "x"},
                                     {"NUMBER", "3"},
                                 }));
  EXPECT_EQ(program.folder, folder_ / "scripts");
  EXPECT_EQ(program.typed_folder, "scripts");
  EXPECT_EQ(program.timeout_s, 7);
  EXPECT_EQ(plan.cases[5].program->folder, std::filesystem::path(path_).parent_path());
  EXPECT_EQ(plan.cases[5].program->timeout_s, 0) << "the suite's";
  EXPECT_EQ(plan.reference, "") << "no stacks, so no reference";
  EXPECT_EQ(plan.cases[3].spec.slug.find(' '), std::string::npos);
}

TEST_F(SuitePrograms, ValuesKeepTheirTypes) {
  const auto plan = plan_of(
      program("[programs.axes]\na = [2, 0.5, 1.0, true, \"x\"]\n", "[\"sh\", \"--a={a}\"]"));
  std::vector<nlohmann::json> values;
  Texts words;
  for (const auto& one : plan.cases) {
    values.push_back(one.spec.model.options.at("a"));
    words.push_back(one.program->arguments[1]);
  }
  EXPECT_EQ(values, (std::vector<nlohmann::json>{2, 0.5, 1.0, true, "x"}));
  EXPECT_EQ(words, (Texts{"--a=2", "--a=0.5", "--a=1.0", "--a=true", "--a=x"}));
}

TEST_F(SuitePrograms, StandBesideStrategies) {
  const auto suite = "models = [\"vit-l-16\"]\nstrategies = [\"baseline\"]\n" + program("");
  EXPECT_EQ(ids(plan_of(suite)), (Texts{"vit-l-16/baseline/cpu/fp32/b1", "program/train/cpu"}));
  EXPECT_EQ(plan_of(suite).reference, "baseline");
  EXPECT_EQ(error_of("models = [\"vit-l-16\"]\n" + program("")),
            "FILE: strategies: missing; a suite names at least one, or has an include or programs");
}

TEST_F(SuitePrograms, NeedNoWorkerAlone) {
  write_text(path_, program(""));
  auto request = read_suite(path_);
  EXPECT_FALSE(needs_worker(request));
  request.lists[records::Axis::kModel] = {"vit-l-16"};  // typed beside the suite
  EXPECT_TRUE(needs_worker(request));
}

TEST_F(SuitePrograms, PlaceholdersAndAxesBelongTogether) {
  EXPECT_EQ(
      error_of(program("[programs.axes]\nbatch = [1]\n", "[\"sh\", \"{bach}\", \"{batch}\"]")),
      "FILE:3:18: command: no axis fills {bach} of \"{bach}\"; did you mean \"batch\"?; add bach "
      "= [...] below [programs.axes], or write {{bach}} for the braces themselves");
  EXPECT_EQ(error_of(program("environment = {A = \"{x}\"}\n")),
            "FILE:4:20: environment.A: no axis fills {x} of \"{x}\"; add x = [...] below "
            "[programs.axes], or write {{x}} for the braces themselves");
  EXPECT_EQ(
      error_of(program("[programs.axes]\nbatch = [1]\n")),
      "FILE:5:9: batch: no placeholder uses this axis, so its cases would be the same program; "
      "put {batch} in the command or the environment of \"train\", or leave the axis out");
  EXPECT_EQ(error_of(program("", "[\"sh\", \"{\\\"a\\\": 1}\"]")),
            "FILE:3:18: command: \"{\"a\": 1}\": {\"a\": 1} is no axis's name; write a literal "
            "brace twice: {{ or }}");
  EXPECT_EQ(error_of(program("", "[\"sh\", \"a}\"]")),
            "FILE:3:18: command: \"a}\": a } without its {; write a literal brace twice: {{ or }}");
  EXPECT_EQ(error_of(program("", "[\"sh\", \"{a\"]")),
            "FILE:3:18: command: \"{a\": a { without its }; write a literal brace twice: {{ or }}");
}

TEST_F(SuitePrograms, CommandsAreLists) {
  EXPECT_EQ(
      error_of("[[programs]]\nname = \"x\"\ncommand = \"python3 train.py\"\n"),
      "FILE:3:11: command: expected a list with a string for each argument, like [\"python3\", "
      "\"train.py\"]; no shell reads it (a shell's line is [\"sh\", \"-c\", \"...\"])");
  EXPECT_TRUE(error_of(program("", "[]")).starts_with("FILE:3:11: command: the list is empty; "));
  EXPECT_TRUE(error_of("[[programs]]\nname = \"x\"\n")
                  .starts_with("FILE:1:1: program \"x\" has no command; expected a list"));
  EXPECT_EQ(
      error_of(program("", "[\"\"]")),
      "FILE:1:1: program \"train\": the command's first word is empty; it names the program to "
      "start");
  EXPECT_EQ(error_of(program("", "[\"sh\", 4]")), "FILE:3:18: command: expected a string, got 4");
}

TEST_F(SuitePrograms, ProgramsAndFoldersAreThere) {
  EXPECT_EQ(
      error_of(program("", "[\"no-such-program-here\"]")),
      "FILE:1:1: program \"train\": no program \"no-such-program-here\" on PATH; install it, or "
      "name its file with a /");
  EXPECT_EQ(error_of(program("", "[\"./run.sh\"]")),
            "FILE:1:1: program \"train\": no program FOLDER/run.sh; a command is found from the "
            "program's folder, which is the suite's unless `folder` names another");
  EXPECT_EQ(
      error_of(program("folder = \"scripts\"\n")),
      "FILE:4:10: folder: there is no folder FOLDER/scripts; it is found from the suite's file");
  write_text(folder_ / "run.sh", "true\n");
  EXPECT_EQ(plan_of(program("", "[\"./run.sh\"]")).cases.size(), 1u);
  EXPECT_EQ(plan_of(program("environment = {PATH = \"/elsewhere\"}\n", "[\"mine\"]")).cases.size(),
            1u);
}

TEST_F(SuitePrograms, NamesTellThemApart) {
  EXPECT_EQ(error_of("[[programs]]\ncommand = [\"sh\"]\n"),
            "FILE:1:1: this program has no name; a name is part of its cases' names: name = "
            "\"train\"");
  for (const char* name : {"", "a b", "a/b", "-a", "a,b", "a=b"})
    EXPECT_TRUE(error_of(fmt::format("[[programs]]\nname = \"{}\"\ncommand = [\"sh\"]\n", name))
                    .starts_with("FILE:2:8: name: expected letters, digits and . _ -"))
        << name;
  EXPECT_EQ(error_of(program("") + program("")),
            "FILE:5:8: name: two programs are called \"train\"; names must be unique");
}

TEST_F(SuitePrograms, AxesHaveValuesOnce) {
  const auto axes = [](const std::string& line) {
    return program("[programs.axes]\n" + line + "\n", "[\"sh\", \"{a}\"]");
  };
  EXPECT_EQ(error_of(axes("a = []")),
            "FILE:5:5: a: the list is empty; expected values, like [1, 4, 16]");
  EXPECT_EQ(error_of(axes("a = 4")), "FILE:5:5: a: expected a list of values, got 4");
  EXPECT_EQ(error_of(axes("a = [4, \"4\"]")), "FILE:5:9: a: \"4\" is there twice");
  EXPECT_EQ(error_of(axes("a = [inf]")),
            "FILE:5:6: a: expected a string, a number, true or false, got inf");
  EXPECT_EQ(error_of(axes("a = [[1]]")),
            "FILE:5:6: a: expected a string, a number, true or false, got a list");
  EXPECT_EQ(error_of(axes("\"a b\" = [1]")),
            "FILE:5:9: a b: no name of an axis: expected letters, digits, _ and -, a letter first");
  EXPECT_TRUE(error_of(axes("a = [\"" + std::string(201, 'x') + "\"]"))
                  .starts_with("FILE:5:6: a: a value of 201 bytes"));
}

TEST_F(SuitePrograms, UnknownKeysHaveTheNearest) {
  EXPECT_EQ(error_of(program("enviroment = {}\n")),
            "FILE:4:1: unknown key \"enviroment\"; did you mean \"environment\"?");
  EXPECT_EQ(error_of("[programs]\nname = \"x\"\n"),
            "FILE:1:1: programs: expected a list of tables, got a table");
  EXPECT_EQ(error_of(program("environment = {\"A=B\" = \"x\"}\n")),
            "FILE:4:24: A=B: \"A=B\" is no name of a variable");
  EXPECT_EQ(error_of(program("timeout_s = 0\n")),
            "FILE:4:13: timeout_s: expected an integer from 1 to 1000000, got 0");
}

TEST_F(SuitePrograms, RunOnEmulatedCardsAndTheCpu) {
  EXPECT_EQ(
      error_of(program("devices = [\"cuda:0\"]\n")),
      "FILE:4:12: program \"train\" on cuda:0: a suite runs programs on emulated cards and on the "
      "CPU; give it devices = [\"emulated:h100-80gb\"], or run it on this card with `peakbench "
      "trace`");
  EXPECT_EQ(error_of("devices = [\"cuda:1\"]\n" + program("")).substr(0, 9), "FILE:1:12");
  EXPECT_EQ(error_of(program("devices = [\"gpu\"]\n")).substr(0, 31),
            "FILE:4:12: unknown device \"gpu\"");
  // What `auto` stands for without a card: the CPU is there for times, which programs have none of.
  write_text(path_, "devices = [\"auto\"]\n" + program(""));
  const auto two = [](const std::string&) { return Texts{"emulated:h100-80gb", "cpu"}; };
  EXPECT_EQ(ids(make_plan(read_suite(path_), fake_plugins(), two)),
            Texts{"program/train/emulated:h100-80gb"});
}

// Its cases are those that Python says there are (programs/python_functions.h).
TEST_F(SuitePrograms, OfPythonHaveAStackAndAPromise) {
  write_text(path_, R"toml(
seed = 3
steps = 2
devices = ["cpu", "emulated:h100-80gb"]
[[programs]]
python = "bench.py:tiny,width=4"
strategies = ["sgd", "adam,lr=0.1"]
batch_sizes = [8]
timeout_s = 9
environment = {A = "{{}}"}
)toml");
  auto request = read_suite(path_);
  ASSERT_EQ(request.programs.size(), 1U);
  auto& python = *request.programs[0].python;
  EXPECT_EQ(python.text, "bench.py:tiny,width=4");
  EXPECT_EQ(python.strategies, (Texts{"sgd", "adam,lr=0.1"}));
  EXPECT_EQ(python.batch_sizes, std::vector<std::int64_t>{8});
  EXPECT_FALSE(needs_worker(request));
  python.interpreter = "/usr/bin/python3";
  python.place = "bench.py";
  for (const char* strategy : {"sgd", "adam"}) {
    auto& one = python.cases.emplace_back();
    one.model = {{"tiny", {{"width", 4}}}, {}, {}};
    one.stack = {{{strategy, nlohmann::json::object()}, {}, {}}};
    one.reference = {{"sgd", nlohmann::json::object()}};
    one.batch_size = 8;
    one.promise.promise = "bit_identical";
  }
  const auto plan = make_plan(request, fake_plugins());
  EXPECT_EQ(ids(plan), (Texts{"python/tiny,width=4/sgd/cpu/b8", "python/tiny,width=4/adam/cpu/b8",
                              "python/tiny,width=4/sgd/emulated:h100-80gb/b8",
                              "python/tiny,width=4/adam/emulated:h100-80gb/b8"}));
  EXPECT_EQ(plan.reference, "sgd");
  EXPECT_EQ(plan.cases[1].promise.promise, "bit_identical");
  EXPECT_EQ(plan.cases[1].reference.at(0).id, "sgd");
  EXPECT_EQ(plan.cases[3].spec.seed, 3U);
  const auto& program = *plan.cases[3].program;
  EXPECT_EQ(program.arguments, (Texts{"/usr/bin/python3", "-m", "peakbench.bench", "bench.py",
                                      "--model", "tiny,width=4", "--strategy", "adam", "--batch",
                                      "8", "--device", "cuda", "--steps", "2", "--seed", "3"}));
  EXPECT_EQ(program.environment.at("A"), "{}");
  EXPECT_EQ(program.timeout_s, 9);
  EXPECT_EQ(plan.cases[0].program->arguments.at(11), "cpu");
}

TEST_F(SuitePrograms, OfPythonRunOnRanks) {
  write_text(path_,
             "devices = [\"emulated:h100-80gb\", \"cpu\"]\n"
             "[[programs]]\npython = \"bench.py:tiny\"\nranks = [2, 64]\n");
  auto request = read_suite(path_);
  auto& python = *request.programs[0].python;
  EXPECT_EQ(python.ranks, (std::vector<std::int64_t>{2, 64}));
  for (const auto ranks : {std::int64_t{2}, std::int64_t{64}}) {
    auto& one = python.cases.emplace_back();
    one.model.selection.id = "tiny";
    one.stack.emplace_back().selection.id = "ddp";
    one.reference = {{"baseline", nlohmann::json::object()}};
    one.batch_size = 4;
    one.ranks = ranks;
    one.global_batch_size = 4 * ranks;
  }
  const auto plan = make_plan(request, fake_plugins());
  EXPECT_EQ(ids(plan),
            (Texts{"python/tiny/ddp/emulated:h100-80gb/b4/ranks-2",
                   "python/tiny/ddp/emulated:h100-80gb/b4/ranks-64",
                   "python/tiny/ddp/cpu/b4/ranks-2", "python/tiny/ddp/cpu/b4/ranks-64"}));
  // One process that trains the batches of all ranks.
  EXPECT_EQ(plan.cases[1].spec.global_batch_size, 256);
  const auto& words = plan.cases[1].program->arguments;
  EXPECT_EQ(*(std::ranges::find(words, "--ranks") + 1), "64");
  python.cases[1].ranks = 65;
  EXPECT_NE(message_of<ConfigError>([&] {
              make_plan(request, fake_plugins());
            }).find("65 ranks on the CPU: each is a process that computes"),
            std::string::npos);
}

TEST_F(SuitePrograms, OfPythonHaveKeysOfTheirOwn) {
  const std::string python = "[[programs]]\npython = \"bench.py:tiny\"\n";
  EXPECT_EQ(error_of(python + "command = [\"x\"]\n").substr(0, 31),
            "FILE:3:1: unknown key \"command\"");
  EXPECT_EQ(error_of(python + "strategies = []\n"),
            "FILE:3:14: strategies: the list is empty; leave it out for all that there are");
  EXPECT_EQ(error_of(python + "batch_sizes = [0]\n"),
            "FILE:3:16: batch_sizes: expected an integer from 1 to 1000000000, got 0");
  EXPECT_EQ(error_of(python + "ranks = [0]\n"),
            "FILE:3:10: ranks: expected an integer from 1 to 1000000, got 0");
  EXPECT_EQ(error_of("[[programs]]\npython = 3\n"), "FILE:2:10: python: expected a string, got 3");
}

}  // namespace
}  // namespace peakbench::planning
