// Records to JSON and back, run files that are whole or wrong, and the nearest name.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>

#include "base/errors.h"
#include "base/file.h"
#include "base/nearest.h"
#include "records/job.h"
#include "records/run_facts.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench {
namespace {

using nlohmann::json;
using records::read_run;
using records::run_from_json;
using testing::example_case;
using testing::example_run;
using testing::message_of;
using testing::ScratchFolder;
using testing::write_text;

json example_json() { return json(to_json(example_run())); }

std::string run_error(const json& value) {
  return message_of<RunFileError>([&] { run_from_json(value); });
}

TEST(Status, HasTheNamesOfTheContract) {
  using records::Status;
  const std::vector<std::pair<Status, std::string>> names{{Status::kOk, "ok"},
                                                          {Status::kOutOfMemory, "out_of_memory"},
                                                          {Status::kTimeout, "timeout"},
                                                          {Status::kCrashed, "crashed"},
                                                          {Status::kUnsupported, "unsupported"},
                                                          {Status::kConflict, "conflict"},
                                                          {Status::kNoEffect, "no_effect"},
                                                          {Status::kHostFailure, "host_failure"},
                                                          {Status::kInterrupted, "interrupted"}};
  for (const auto& [status, name] : names) {
    EXPECT_EQ(to_string(status), name);
    EXPECT_EQ(records::status_from_string(name), status);
  }
  EXPECT_THROW(records::status_from_string("OK"), std::invalid_argument);
}

TEST(RunJson, ComesBackAsItWent) {
  const json once = example_json();
  EXPECT_EQ(json(to_json(run_from_json(once))), once);
}

TEST(RunJson, WhatADeviceDoesNotTellIsAbsentAndNoZero) {
  records::Run run = records::run_from_json(example_json());
  run.cases[0].work->total.device.reset();
  const json once = to_json(run);
  EXPECT_FALSE(once["cases"][0]["work"].contains("kernel_launches"));
  EXPECT_FALSE(records::run_from_json(once).cases[0].work->total.device);
}

TEST(RunJson, WorkOfAStepIsChecked) {
  json wrong = example_json();
  wrong["cases"][0]["work"]["flops"] = -1;
  EXPECT_NE(run_error(wrong).find("/cases/0/work/flops: expected"), std::string::npos);
  json older = example_json();
  older["cases"][0].erase("work");
  EXPECT_FALSE(records::run_from_json(older).cases[0].work);
}

TEST(RunJson, HasTheFieldsThatReadersAreToldOf) {
  const json whole = example_json();
  const json& item = whole["cases"][0];
  EXPECT_EQ(whole["schema_version"], "1.5.0");
  EXPECT_EQ(item["model"], json({{"id", "qwen2.5-0.5b"}, {"options", {{"layers", 4}}}}));
  EXPECT_EQ(item["strategies"][0]["options"]["rank"], 16);
  EXPECT_EQ(item["memory"]["peak_allocated_bytes"], 6'087'938'768);
  EXPECT_EQ(item["memory"]["at_peak"]["parameter"], 1'217'306'528);
  EXPECT_EQ(item["memory"]["phases"]["build"]["peak_allocated_bytes"], 1'217'306'528);
  EXPECT_EQ(item["memory"]["spaces"]["cuda:0"]["peak_reserved_bytes"], 7'000'000'000);
  EXPECT_EQ(item["throughput"]["step_ns"],
            json({{"min", 10}, {"median", 20}, {"p90", 30}, {"count", 3}}));
  EXPECT_EQ(item["equivalence"]["verdict"], "held");
  EXPECT_EQ(item["ranks"][0]["trace"], "cases/x/trace.sqlite");
  EXPECT_EQ(item["work"]["recomputed_flops"], 900'000'000'000);
  EXPECT_EQ(item["work"]["phases"]["forward"]["kernel_launches"], 25);
  EXPECT_EQ(item["work"]["bound"]["least_step_ns"], 60'000'000);
  EXPECT_EQ(item["plugins"][1], json({{"kind", "strategy"},
                                      {"id", "baseline"},
                                      {"file", "baseline.so"},
                                      {"sha256", std::string(64, 'b')}}));
  EXPECT_EQ(item["emulated"], true);
}

TEST(RunJson, ACaseWithoutFiguresHoldsNulls) {
  auto run = example_run();
  records::CaseResult bare;
  bare.spec = run.cases[0].spec;
  bare.spec.device = "cpu";
  bare.spec.sequence_length.reset();
  bare.status = records::Status::kConflict;
  run.cases = {bare};
  const json item = json(to_json(run))["cases"][0];
  for (const char* key :
       {"memory", "throughput", "equivalence", "out_of_memory", "emulation", "sequence_length"}) {
    EXPECT_TRUE(item.contains(key) && item[key].is_null()) << key;
  }
  EXPECT_EQ(item["emulated"], false);
  EXPECT_EQ(item["status"], "conflict");
}

// ---- kinds of cases ----

TEST(CaseKind, AProgramIsSaidAndAStrategyIsNot) {
  auto run = example_run();
  EXPECT_FALSE(json(to_json(run))["cases"][0].contains("kind"));
  auto& spec = run.cases[0].spec;
  spec.kind = records::CaseKind::kProgram;
  spec.strategies.clear();
  const auto item = json(to_json(run))["cases"][0];
  EXPECT_EQ(item["kind"], "program");
  EXPECT_EQ(item["strategies"], json::array());
  const auto back = run_from_json(json(to_json(run)));
  EXPECT_EQ(back.cases[0].spec.kind, records::CaseKind::kProgram);
}

TEST(CaseKind, ReadersRefuseWhatTheyDoNotKnow) {
  json run = example_json();
  const auto of_case = " (case " + run["cases"][0]["id"].get<std::string>() + ")";
  run["cases"][0]["kind"] = "strategy";
  EXPECT_EQ(run_from_json(run).cases[0].spec.kind, records::CaseKind::kStrategy);
  run["cases"][0]["kind"] = "notebook";
  EXPECT_EQ(run_error(run),
            "/cases/0/kind: expected strategy, program or python, got \"notebook\"" + of_case);
  run["cases"][0]["kind"] = "program";
  EXPECT_EQ(run_error(run), "/cases/0/strategies: expected none: a program has no stack" + of_case);
}

TEST(CaseKind, FactsHaveWords) {
  for (const auto kind :
       {records::CaseKind::kStrategy, records::CaseKind::kProgram, records::CaseKind::kPython}) {
    const auto& facts = records::facts_of(kind);
    EXPECT_EQ(records::case_kind_from(facts.word), kind);
    EXPECT_EQ(facts.has_times, std::string(facts.no_times).empty());
  }
}

TEST(VerdictJson, HasWhatOtherValuesShowed) {
  records::Verdict verdict;
  verdict.second_guess = records::SecondGuess{3, {5, 7, 5}, "it ended with exit code 1", false};
  const nlohmann::json json = records::to_json(verdict);
  EXPECT_EQ(records::read_verdict(Fields(json)).second_guess, verdict.second_guess);
  verdict.second_guess.reset();
  const nlohmann::json without = records::to_json(verdict);
  EXPECT_EQ(records::read_verdict(Fields(without)).second_guess, std::nullopt);
}

TEST(RunFacts, SayWhatMakesTwoRunsOne) {
  using records::FactOf;
  using records::RunFact;
  using Names = std::vector<std::string>;
  const Names build{"libtorch", "libtorch_git_version", "libtorch_cuda", "peakbench", "commit"};
  auto resumed = build;
  resumed.emplace_back("cpu");
  const Names settings{"steps", "warmup", "repetitions",   "threads",
                       "seed",  "assume", "second_guesses"};
  EXPECT_EQ(names_where(FactOf::kEnvironment, &RunFact::is_build), build);
  EXPECT_EQ(names_where(FactOf::kEnvironment, &RunFact::is_merged), build);
  EXPECT_EQ(names_where(FactOf::kEnvironment, &RunFact::is_resumed), resumed);
  EXPECT_EQ(names_where(FactOf::kSettings, &RunFact::is_resumed), settings);
  EXPECT_EQ(names_where(FactOf::kSettings, &RunFact::is_merged), settings);
  EXPECT_EQ(names_where(FactOf::kEnvironment, &RunFact::makes_times),
            (Names{"cpu", "logical_cores"}));
}

TEST(RunJson, AnEmulatedCaseSaysSoEvenWhenItNeverRan) {
  auto run = example_run();
  run.cases[0].emulation.reset();
  EXPECT_EQ(json(to_json(run))["cases"][0]["emulated"], true);
}

TEST(RunJson, KeepsNumbersThatJsonLacks) {
  auto run = example_run();
  run.cases[0].losses = {std::nan(""), INFINITY, -INFINITY, 1.5};
  run.cases[0].equivalence->max_abs_difference = std::nan("");
  const auto back = run_from_json(json::parse(to_json(run).dump()));
  EXPECT_TRUE(std::isnan(back.cases[0].losses[0]));
  EXPECT_EQ(back.cases[0].losses[1], INFINITY);
  EXPECT_EQ(back.cases[0].losses[2], -INFINITY);
  EXPECT_TRUE(std::isnan(*back.cases[0].equivalence->max_abs_difference));
}

TEST(RunJson, AcceptsWhatItDoesNotKnowAndWhatIsOptional) {
  json run = example_json();
  run["schema_version"] = "1.7.3";
  run["colour"] = "blue";
  run["cases"][0]["memory"]["at_peak"]["new_category"] = 5;
  for (const char* key : {"losses", "settings", "wall_ns", "throughput", "ranks", "plugins"})
    run["cases"][0].erase(key);
  const auto back = run_from_json(run);
  EXPECT_EQ(back.schema_version, "1.7.3");
  EXPECT_EQ(back.cases[0].memory->at_peak.at("new_category"), 5);
  EXPECT_FALSE(back.cases[0].throughput);
}

TEST(PluginBuild, IsToldByKindIdAndContent) {
  using Builds = std::vector<records::PluginBuild>;
  const Builds before{{"model", "x", "m.so", "1"}, {"strategy", "x", "s.so", "2"}};
  EXPECT_TRUE(records::changed_plugins(before, before).empty());
  const auto moved = records::changed_plugins(
      before, Builds{{"strategy", "x", "renamed.so", "2"}, {"model", "x", "m.so", "1"}});
  EXPECT_TRUE(moved.empty());
  const auto changes = records::changed_plugins(
      before, Builds{{"model", "x", "m.so", "3"}, {"strategy", "y", "y.so", "4"}});
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].before + changes[0].now, "13");
  EXPECT_EQ(changes[1].file + changes[1].before + changes[1].now, "y.so4");
  EXPECT_EQ(changes[2].file + changes[2].before + changes[2].now, "s.so2");
}

TEST(RunJson, NamesTheFieldOfAWrongType) {
  json run = example_json();
  run["cases"][0]["memory"]["peak_allocated_bytes"] = "6 GB";
  const auto of_case = " (case " + run["cases"][0]["id"].get<std::string>() + ")";
  EXPECT_EQ(run_error(run),
            "/cases/0/memory/peak_allocated_bytes: expected an integer of 64 bits, got the string "
            "\"6 GB\"" +
                of_case);
  run = example_json();
  run["cases"][0]["strategies"] = json::object();
  EXPECT_EQ(run_error(run), "/cases/0/strategies: expected a list, got an object" + of_case);
  run = example_json();
  run["cases"][0]["losses"][1] = true;
  EXPECT_EQ(
      run_error(run),
      "/cases/0/losses/1: expected a number, \"nan\", \"inf\" or \"-inf\", got true" + of_case);
  run = example_json();
  run["cases"][0]["memory"]["at_peak"]["a/b"] = 1.5;
  EXPECT_EQ(run_error(run),
            "/cases/0/memory/at_peak/a~1b: expected an integer of 64 bits, got 1.5" + of_case);
  run = example_json();
  run["cases"][0]["wall_ns"] = 18'446'744'073'709'551'615u;
  EXPECT_EQ(run_error(run),
            "/cases/0/wall_ns: expected an integer of 64 bits, got 18446744073709551615" + of_case);
  run = example_json();
  run["cases"][0]["status"] = "fine";
  EXPECT_EQ(run_error(run),
            "/cases/0/status: expected ok, out_of_memory, timeout, crashed, unsupported, "
            "conflict, no_effect, host_failure or interrupted, got \"fine\"" +
                of_case);
}

// Where a loss may be infinite, a rate, a size or a time may not; none is negative.
TEST(RunJson, RefusesFiguresThatNobodyMeasured) {
  const json whole = example_json();
  const std::vector<std::string> figures{"/memory/peak_allocated_bytes",
                                         "/memory/at_peak/parameter",
                                         "/throughput/samples_per_second",
                                         "/throughput/step_ns/median",
                                         "/throughput/step_times_ns/0",
                                         "/out_of_memory/requested_bytes",
                                         "/equivalence/tolerance",
                                         "/batch_size",
                                         "/wall_ns"};
  for (const auto& figure : figures) {
    for (const json& bad :
         {json("inf"), json("nan"), json(-1), json(-1e308), json("1"), json(true)}) {
      json run = whole;
      json& item = run["cases"][0];
      const auto at = json::json_pointer(figure);
      if (item["out_of_memory"].is_null()) item["out_of_memory"] = json::object();
      item[at] = bad;
      EXPECT_TRUE(run_error(run).starts_with("/cases/0" + figure + ": expected a")) << bad;
    }
  }
  json run = whole;
  run["published"][0]["value"] = "inf";
  EXPECT_EQ(run_error(run), "/published/0/value: expected a finite number, got the string \"inf\"");
}

TEST(RunJson, NamesAMissingField) {
  json run = example_json();
  run["cases"][0].erase("slug");
  EXPECT_EQ(run_error(run),
            "/cases/0/slug: missing (case " + run["cases"][0]["id"].get<std::string>() + ")");
  run = example_json();
  run.erase("cases");
  EXPECT_EQ(run_error(run), "/cases: missing");
  EXPECT_EQ(run_error(json::array()), "top level: expected an object, got a list");
  EXPECT_EQ(run_error(json::object()), "/schema_version: missing; this is no Peakbench run file");
}

TEST(RunJson, RefusesANewerMajorVersion) {
  json run = example_json();
  run["schema_version"] = "2.0.0";
  EXPECT_EQ(
      run_error(run),
      "/schema_version: 2.0.0 is newer than this Peakbench reads (1.x); use a newer Peakbench");
  run["schema_version"] = "one";
  EXPECT_EQ(run_error(run), "/schema_version: expected a version such as 1.5.0, got \"one\"");
}

TEST(RunFile, IsReadFromItsFolderOrItself) {
  const ScratchFolder folder;
  write_run(example_run(), folder.path());
  EXPECT_EQ(json(to_json(read_run(folder.path()))), example_json());
  EXPECT_EQ(json(to_json(read_run(folder / "run.json"))), example_json());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(RunFile, IsTheSameOfTextsOfItsCases) {
  const ScratchFolder folder;
  auto run = example_run();
  run.title = "\n  \"cases\": []\xff";  // what the list of cases is looked for by
  run.cases.push_back(run.cases.front());
  run.cases.back().reason = "two\nlines, \xff and \"quotes\"";
  while (true) {
    write_run(run, folder.path());
    const auto whole = testing::read_text(folder / "run.json");
    std::vector<std::string> texts;
    for (const auto& one : run.cases) texts.push_back(records::case_text(one));
    std::vector<const std::string*> cases;
    for (const auto& text : texts) cases.push_back(&text);
    write_run(run, cases, folder.path());
    EXPECT_EQ(testing::read_text(folder / "run.json"), whole);
    if (run.cases.empty()) break;
    run.cases.pop_back();
  }
}

TEST(RunFile, WritesBytesThatAreNotUtf8) {
  const ScratchFolder folder;
  auto run = example_run();
  run.command = {"peakbench", "\xff\xfe"};
  write_run(run, folder.path());
  EXPECT_EQ(read_run(folder.path()).command[1], "\uFFFD\uFFFD");
}

TEST(RunFile, SaysWhatIsWrongWithIt) {
  const ScratchFolder folder;
  const std::string path = folder / "run.json";
  const auto error = [&](const std::string& name) {
    return message_of<RunFileError>([&] { read_run(name); });
  };
  EXPECT_EQ(error(folder / "no"), folder / "no" + ": no such file or folder");
  EXPECT_EQ(
      error(folder.path()),
      folder.path() + ": this folder holds no run.json; name one that `peakbench run --out` made");
  write_text(path, " \n");
  EXPECT_EQ(error(path), path + ": the file is empty");
  write_text(path, "{\n  \"a\": 1,\n  oops\n}\n");
  EXPECT_TRUE(error(path).starts_with(path + ": not JSON: line 3, column 3, /a: syntax error"))
      << error(path);
  write_text(path, "{\"schema_version\": 1}");
  EXPECT_EQ(error(folder.path()), path + ": /schema_version: expected a string, got 1");
}

TEST(RunFile, CutShortAnywhereIsAClearError) {
  const ScratchFolder folder;
  const std::string path = folder / "run.json", whole = to_json(example_run()).dump(2);
  for (std::size_t size = 1; size < whole.size(); size += 13) {
    write_text(path, whole.substr(0, size));
    const auto message = message_of<RunFileError>([&] { read_run(path); });
    EXPECT_EQ(message, path + ": cut short: the JSON ends unfinished after " +
                           std::to_string(size) + " bytes");
  }
}

TEST(AtomicWrite, NamesThePathAndTheReason) {
  const ScratchFolder folder;
  const auto error = [](const std::string& path) {
    return message_of<ConfigError>([&] { files::write_file_atomically(path, "x"); });
  };
  const std::string nowhere = folder / "no/run.json";
  EXPECT_EQ(error(nowhere),
            nowhere + ": cannot write: No such file or directory; its folder must exist");
  write_text(folder / "file", "x");
  const std::string below = folder / "file/run.json";
  EXPECT_EQ(error(below), below + ": cannot write: Not a directory; its folder must exist");
  std::filesystem::create_directory(folder / "dir");
  EXPECT_EQ(error(folder / "dir"), folder / "dir" + ": cannot write: Is a directory; name a file");
}

TEST(AtomicWrite, AFullDiskIsNamed) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  EXPECT_EQ(message_of<ConfigError>([&] { files::write_all(full, "x", "DIR/run.json"); }),
            "DIR/run.json: cannot write: No space left on device; free some space, or choose "
            "another folder");
  close(full);
}

// A limit on the size of files stands for a disk that fills up half way; in a process of its own.
TEST(AtomicWrite, AFailureLeavesTheOldFileAndNothingElse) {
  const ScratchFolder folder;
  const std::string path = folder / "run.json";
  files::write_file_atomically(path, "old");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      files::write_file_atomically(path, std::string(5000, 'x'));
    } catch (const ConfigError&) {
      _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(testing::read_text(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(JobJson, ComesBackAsItWent) {
  records::Job job;
  job.mode = records::JobMode::kThroughput;
  job.case_id = "m/lora/cpu/fp32/b2/s8";
  job.model_plugin = {{"m", {{"layers", 2}}}, {{"layers", 2}, {"width", 64}}, "/lib/m.so"};
  job.strategy_plugins = {{{"baseline", json::object()}, json::object(), "/lib/baseline.so"},
                          {{"lora", json::object()}, {{"rank", 8}}, "/lib/lora.so"}};
  job.device = "cpu";
  job.dtype = "fp32";
  job.device_options = {{"tf32", true}};
  job.batch_size = 2;
  job.sequence_length = 8;
  job.seed = 18'446'744'073'709'551'615u;
  job.steps = 4;
  job.warmup = 2;
  job.memory_limit_bytes = 1 << 30;
  job.threads = 1;
  job.result_path = "r.json";
  job.trace_path = "t.sqlite";
  job.write_parameters_path = "w.bin";
  job.read_parameters_path = "p.bin";
  job.promise.promise = "within_tolerance";
  job.promise.reference_case = "m/baseline/cpu/fp32/b2/s8";
  job.promise.tolerance = 1e-5;
  job.promise.relative_tolerance = 1e-3;
  job.program = records::ProgramCommand{{"sh", "a b"}, {{"A", "1"}}, "/here", "here", 7};
  const json once = to_json(job);
  EXPECT_EQ(once["program"]["arguments"][1], "a b");
  EXPECT_EQ(to_json(records::job_from_json(json::parse(once.dump()))), once);
  EXPECT_EQ(records::job_from_json(once).seed, job.seed);
  json wrong = once;
  wrong["mode"] = "speed";
  EXPECT_EQ(message_of<RunFileError>([&] { records::job_from_json(wrong); }),
            "/mode: expected memory or throughput, got \"speed\"");
  wrong = once;
  wrong["strategies"][1].erase("path");
  EXPECT_EQ(message_of<RunFileError>([&] { records::job_from_json(wrong); }),
            "/strategies/1/path: missing");
}

TEST(WorkerResultJson, ComesBackAsItWent) {
  const auto item = example_case();
  records::WorkerResult result{records::Status::kOutOfMemory,
                               "too large",
                               item.memory,
                               item.work,
                               item.throughput,
                               item.equivalence,
                               item.out_of_memory,
                               item.emulation,
                               item.losses,
                               {{1, item.memory, "cases/mine/trace.1.sqlite"}},
                               item.settings,
                               {{"libtorch", "2.11.0"}}};
  const json once = to_json(result);
  EXPECT_EQ(once["ranks"][0]["trace"], "cases/mine/trace.1.sqlite");
  EXPECT_EQ(once["status"], "out_of_memory");
  EXPECT_EQ(to_json(records::worker_result_from_json(once)), once);
  const json least = to_json(records::worker_result_from_json({{"status", "ok"}}));
  EXPECT_TRUE(least["memory"].is_null());
}

TEST(ProgressJson, ComesBackAsItWent) {
  const json once = to_json(records::Progress{"forward", 1, 4, 100, 200});
  EXPECT_EQ(once, json({{"phase", "forward"},
                        {"step", 1},
                        {"steps", 4},
                        {"allocated_bytes", 100},
                        {"peak_bytes", 200}}));
  EXPECT_EQ(to_json(records::progress_from_json(once)), once);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> ids{"baseline", "foreach-off",   "fused-in-backward",
                                     "lora",     "checkpointing", "qwen2.5-0.5b"};
  EXPECT_EQ(nearest("loar", ids), "lora");
  EXPECT_EQ(nearest("LoRA", ids), "lora");
  EXPECT_EQ(nearest("checkpoint", ids), "checkpointing");
  EXPECT_EQ(nearest("foreach_off", ids), "foreach-off");
  EXPECT_EQ(nearest("fused", ids), "fused-in-backward");
  EXPECT_EQ(nearest("qwen", ids), "qwen2.5-0.5b");
  EXPECT_EQ(nearest("linears", {"blocks", "linear_layers"}), "linear_layers");
  EXPECT_EQ(nearest("lint", {"blocks", "linear_layers"}), std::nullopt);
  EXPECT_EQ(nearest("linearity", {"blocks", "linear_layers"}), "linear_layers");
  EXPECT_EQ(nearest("linearities", {"blocks", "linear_layers"}), std::nullopt);
  EXPECT_EQ(nearest("zzz", ids), std::nullopt);
  EXPECT_EQ(nearest("", ids), std::nullopt);
  EXPECT_EQ(nearest(std::string(10'000, 'x'), ids), std::nullopt);
}

TEST(Nearest, AMessageListsWhatIsKnownWhereNothingIsNear) {
  EXPECT_EQ(suggestion("loar", {"lora", "baseline"}), "; did you mean \"lora\"?");
  EXPECT_EQ(suggestion("xyzzy", {"lora", "baseline"}), "; known: lora, baseline");
  EXPECT_EQ(suggestion("xyzzy", {}), "; none is known");
}

}  // namespace
}  // namespace peakbench
