// Which worker is chosen for which PyTorch, and what is said where none fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "launch/worker_choice.h"
#include "launch/worker_folder.h"
#include "support/scratch.h"

namespace peakbench::launch {
namespace {

using namespace peakbench::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

pytorch::TorchInUse torch(const std::string& version, const std::string& git,
                          const std::string& cuda, const std::string& folder = "/env/torch") {
  return {.version = version, .cuda = cuda, .hip = "", .git_version = git, .folder = folder};
}

TorchFound environment_with(const pytorch::TorchInUse& torch) {
  return {.python = "/env/bin/python3", .folder = torch.folder, .torch = torch, .problem = ""};
}

WorkerFolder worker(const std::string& version, const std::string& git, const std::string& cuda) {
  WorkerFolder one;
  one.folder = "/workers/torch-" + version;
  one.stamp = {.sdk_revision = planning::kSdkRevision,
               .libtorch_version = version,
               .libtorch_git_version = git,
               .libtorch_cuda = cuda,
               .cxx_abi = "libstdc++ cxx11"};
  return one;
}

std::vector<fs::path> nowhere(const WorkerFolder&) { return {}; }

const std::vector<WorkerFolder> kTwo{worker("2.11.0+cu130", "g11", "13.0"),
                                     worker("2.15.0+cu132", "g15", "13.2")};

struct Chosen {
  std::string name, version, cuda, git, wish, expected;  // a folder's; empty: none
};
void PrintTo(const Chosen& row, std::ostream* out) { *out << row.name; }

class ChosenWorker : public ::testing::TestWithParam<Chosen> {};

TEST_P(ChosenWorker, IsTheOneThatServesThePyTorch) {
  const auto& row = GetParam();
  const auto environment = row.version.empty()
                               ? TorchFound{.python = "/env/bin/python3"}
                               : environment_with(torch(row.version, row.git, row.cuda));
  const auto all = candidates(kTwo, environment, nowhere);
  const auto chosen = choose(all, {row.wish, "--torch"}, environment);
  EXPECT_EQ(chosen ? chosen->worker->folder.filename().string() : "", row.expected);
  if (chosen) {
    EXPECT_EQ(chosen->torch->version, row.version);
  }
}

const std::vector<Chosen> kTable{
    {"TheSame", "2.11.0+cu130", "13.0", "g11", "", "torch-2.11.0+cu130"},
    {"TheOther", "2.15.0+cu132", "13.2", "g15", "", "torch-2.15.0+cu132"},
    {"AnotherCuda", "2.11.0+cu128", "12.8", "g11", "", "torch-2.11.0+cu130"},
    {"WithoutCuda", "2.15.0+cpu", "", "g15", "", "torch-2.15.0+cu132"},
    {"WithoutALocalPart", "2.15.0", "13.2", "g15", "", "torch-2.15.0+cu132"},
    {"AnotherRevisionOfTheRelease", "2.11.0+cu130", "13.0", "mine", "", ""},
    {"ARevisionUnderAnotherNumber", "2.12.0a0+git", "13.0", "g11", "", ""},
    {"NoRevision", "2.11.0+cu130", "13.0", "", "", ""},
    {"AnotherRelease", "2.8.0+cu128", "12.8", "g8", "", ""},
    {"NoPyTorch", "", "", "", "", ""},
    {"WishedByItsStart", "2.11.0+cu130", "13.0", "g11", "2.11", "torch-2.11.0+cu130"},
    {"WishedWhole", "2.11.0+cu130", "13.0", "g11", "2.11.0+cu130", "torch-2.11.0+cu130"},
    {"AStartIsWholeNumbers", "2.11.0+cu130", "13.0", "g11", "2.1", ""},
    {"WishedIsNotThere", "2.11.0+cu130", "13.0", "g11", "2.15", ""},
    {"WhatIsLoadedCounts", "2.11.0+cpu", "", "g11", "2.11.0+cu130", ""},
    {"AnEmptyStart", "2.11.0+cu130", "13.0", "g11", "+cu130", ""}};
INSTANTIATE_TEST_SUITE_P(Workers, ChosenWorker, ::testing::ValuesIn(kTable),
                         [](const auto& row) { return row.param.name; });

TEST(ChooseWorker, OfSeveralTheOneForThatVersionThenThatCuda) {
  const std::vector<WorkerFolder> all{
      worker("2.11.0+cu132", "g11", "13.2"), worker("2.11.0+cu130", "g11", "13.0"),
      worker("2.11.0+cu128", "g11", "12.8"), worker("2.11.0+cpu", "g11", "")};
  const auto chosen_for = [&](const pytorch::TorchInUse& found) {
    const auto environment = environment_with(found);
    const auto chosen = choose(candidates(all, environment, nowhere), {}, environment);
    return chosen->worker->stamp.libtorch_version;
  };
  EXPECT_EQ(chosen_for(torch("2.11.0+cu128", "g11", "12.8")), "2.11.0+cu128");
  EXPECT_EQ(chosen_for(torch("2.11.0+cu126", "g11", "12.6")), "2.11.0+cu128");
  EXPECT_EQ(chosen_for(torch("2.11.0+cu130", "g11", "13.0")), "2.11.0+cu130");
  EXPECT_EQ(chosen_for(torch("2.11.0", "g11", "13.1")), "2.11.0+cu132");
  EXPECT_EQ(chosen_for(torch("2.11.0+cpu", "g11", "")), "2.11.0+cpu");
}

TEST(ChooseWorker, ABrokenOneIsNeverChosen) {
  auto all = kTwo;
  all[0].problem = "it is incomplete";
  const auto environment = environment_with(torch("2.11.0+cu130", "g11", "13.0"));
  EXPECT_FALSE(choose(candidates(all, environment, nowhere), {}, environment));
}

class WorkerFolders : public ::testing::Test {
 protected:
  WorkerFolders() { setenv("XDG_CACHE_HOME", (scratch / "cache").c_str(), 1); }

  // A package `torch` as far as it is looked at, with this program as its libraries.
  fs::path install_torch(const std::string& name, const std::string& version,
                         const std::string& git, const std::string& more = "") {
    const auto folder = fs::path(scratch / name) / "torch";
    fs::create_directories(folder / "lib");
    write_text((folder / "version.py").string(),
               "__version__ = '" + version + "'\ngit_version = '" + git + "'\n" + more);
    for (const char* library :
         {"libtorch_cpu.so", "libc10.so", "libtorch_cuda.so", "libc10_cuda.so"})
      fs::copy_file("/proc/self/exe", folder / "lib" / library);
    return folder;
  }

  fs::path install_worker(const std::string& version, nlohmann::json more = {}) {
    const auto folder = fs::path(scratch / "workers") / ("torch-" + version);
    fs::create_directories(folder / "bin");
    fs::create_directories(folder / "lib/peakbench/plugins");
    write_text((folder / "bin/peakbench-worker").string(), "");
    fs::permissions(folder / "bin/peakbench-worker", fs::perms::owner_all);
    write_text((folder / "lib/libpeakbench_sdk.so").string(), "");
    nlohmann::json facts{{"schema", "peakbench-worker/1"},
                         {"peakbench", "0.1.0"},
                         {"sdk_revision", planning::kSdkRevision},
                         {"libtorch_version", version},
                         {"libtorch_git_version", "g"},
                         {"libtorch_cuda", "13.0"},
                         {"cxx_abi", "libstdc++ cxx11"}};
    if (more.is_object()) facts.update(more);
    write_text((folder / "worker.json").string(), facts.dump());
    return folder;
  }

  std::vector<WorkerFolder> listed() { return list_workers(scratch / "workers", "0.1.0"); }
  std::string problem() { return listed().at(0).problem; }

  ScratchFolder scratch;
};

TEST_F(WorkerFolders, AreReadWhole) {
  install_worker("2.15.0+cu132");
  install_worker("2.11.0+cu130", {{"torch", "/somewhere/torch"}});
  const auto all = listed();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].stamp.libtorch_version, "2.11.0+cu130");
  EXPECT_EQ(all[0].torch, "/somewhere/torch");
  EXPECT_EQ(all[0].problem, "");
  EXPECT_FALSE(all[0].in_cache);
  EXPECT_EQ(all[1].stamp.libtorch_git_version, "g");
}

TEST_F(WorkerFolders, OfAnotherPeakbenchAreNotUsed) {
  install_worker("2.11.0", {{"peakbench", "0.0.9"}});
  EXPECT_EQ(problem(), "it belongs to Peakbench 0.0.9, and this is 0.1.0; build it anew");
}

TEST_F(WorkerFolders, OfAnotherSdkAreNotUsed) {
  install_worker("2.11.0", {{"sdk_revision", 1}});
  EXPECT_THAT(problem(), HasSubstr("it has SDK revision 1"));
}

TEST_F(WorkerFolders, OfAnotherFormAreNotUsed) {
  install_worker("2.11.0", {{"schema", "peakbench-worker/2"}});
  EXPECT_EQ(problem(), "its worker.json is of the form peakbench-worker/2, not peakbench-worker/1");
}

TEST_F(WorkerFolders, ThatAreNotWholeSayWhatIsMissing) {
  const auto folder = install_worker("2.11.0");
  fs::remove_all(folder / "lib/peakbench/plugins");
  EXPECT_EQ(problem(), "it is incomplete: lib/peakbench/plugins is missing");
  fs::remove(folder / "bin/peakbench-worker");
  EXPECT_EQ(problem(), "it is incomplete: bin/peakbench-worker is missing");
  write_text((folder / "worker.json").string(), "{\"schema\": ");
  EXPECT_THAT(problem(), HasSubstr("worker.json"));
  fs::remove(folder / "worker.json");
  EXPECT_THAT(problem(), HasSubstr("worker.json"));
}

TEST_F(WorkerFolders, HaveAPyTorchOfTheirOwn) {
  install_worker("2.11.0+cu130");
  const auto built_with = install_torch("mine", "2.11.0+cu130", "g", "cuda = '13.0'\n");
  const auto another = install_torch("another", "2.11.0+cu130", "h", "cuda = '13.0'\n");
  const auto folders = listed();
  const auto chosen_with = [&](const fs::path& folder) {
    const auto all = candidates(folders, {}, [&](const WorkerFolder&) {
      return std::vector<fs::path>{"", folder};
    });
    return choose(all, {"2.11", "--torch"}, {});
  };
  const auto chosen = chosen_with(built_with);
  ASSERT_TRUE(chosen);
  const auto worker = worker_of(*chosen);
  EXPECT_EQ(worker.torch.folder, built_with.string());
  EXPECT_EQ(libtorch_version(worker), "2.11.0+cu130");
  EXPECT_EQ(libtorch_cuda(worker), "13.0");
  EXPECT_FALSE(chosen_with(another)) << "a LibTorch of another revision is not loaded";
}

TEST_F(WorkerFolders, ABrokenPyTorchSaysWhatIsMissing) {
  const auto folder = install_torch("broken", "2.11.0", "g");
  EXPECT_TRUE(torch_found_in(folder).torch);
  fs::remove(folder / "lib/libtorch_cpu.so");
  EXPECT_EQ(torch_found_in(folder).problem,
            "lib/libtorch_cpu.so is missing; install PyTorch again");
  write_text((folder / "lib/libtorch_cpu.so").string(), "no library");
  EXPECT_THAT(torch_found_in(folder).problem, HasSubstr("lib/libtorch_cpu.so cannot be loaded"));
  fs::remove(folder / "version.py");
  EXPECT_THAT(torch_found_in(folder).problem, HasSubstr("version.py"));
  EXPECT_FALSE(torch_found_in(folder).torch);
}

TEST_F(WorkerFolders, APyTorchForRocmHasNone) {
  const auto folder = install_torch("rocm", "2.11.0+rocm6.4", "g", "hip = '6.4'\n");
  EXPECT_FALSE(torch_found_in(folder).torch);
  EXPECT_THAT(torch_found_in(folder).problem, HasSubstr("built for ROCm 6.4"));
}

TEST_F(WorkerFolders, OnlyTheCachesAreRemoved) {
  install_worker("2.11.0+cu130");
  const auto carried = listed();
  EXPECT_EQ(message_of<ConfigError>([&] { to_be_removed(carried, "2.11"); }),
            carried[0].folder.string() + " is a part of the installation, and stays with it");
  auto built =
      std::vector{worker("2.8.0+cu128", "g8", "12.8"), worker("2.8.1+cu128", "h8", "12.8")};
  for (auto& one : built) one.in_cache = true;
  EXPECT_EQ(to_be_removed(built, "2.8.1").folder, built[1].folder);
  EXPECT_EQ(message_of<ConfigError>([&] { to_be_removed(built, "2.8"); }),
            "2 workers are for 2.8: say which: 2.8.0+cu128, 2.8.1+cu128");
  EXPECT_EQ(message_of<ConfigError>([&] { to_be_removed(built, "2.9"); }),
            "no worker for 2.9 was built here; there are 2.8.0+cu128, 2.8.1+cu128");
}

std::string why(const TorchFound& environment, const Wish& wish = {},
                const std::vector<WorkerFolder>& workers = kTwo) {
  return why_none(candidates(workers, environment, nowhere), wish, environment);
}

TEST(NoWorker, SaysWhatWasFoundWhatThereIsAndWhatToDo) {
  EXPECT_EQ(
      why(environment_with(torch("2.8.0+cu128", "g8", "12.8"))),
      "there is no worker for PyTorch 2.8.0+cu128 in /env/torch. There are workers for "
      "2.11.0+cu130, 2.15.0+cu132. `peakbench workers build` compiles one for it, once and in "
      "minutes. Commands that need no worker: emulate, trace, fit -- PROGRAM, import, report, "
      "compare, gate, history, publish.");
  EXPECT_THAT(why({.python = "/env/bin/python3"}),
              AllOf(HasSubstr("the environment of /env/bin/python3 has no PyTorch."),
                    HasSubstr("pip install --no-deps torch")));
  EXPECT_THAT(why({}), HasSubstr("there is no python3 or python on PATH"));
  EXPECT_THAT(why({.python = "p", .folder = "/env/torch", .torch = {}, .problem = "it is odd"}),
              AllOf(HasSubstr("the PyTorch in /env/torch cannot be used: it is odd"),
                    ::testing::Not(HasSubstr("workers build"))));
  EXPECT_THAT(why({.python = "p"}, {}, {}), HasSubstr("There is no worker yet."));
}

TEST(NoWorker, SaysWhatIsMissingOfWhatWasAskedFor) {
  const auto environment = environment_with(torch("2.11.0+cu130", "g11", "13.0"));
  EXPECT_THAT(
      why(environment, {"2.15", "--torch"}),
      AllOf(HasSubstr("--torch 2.15: there is a worker for PyTorch 2.15.0+cu132, and no such "
                      "PyTorch for it to load"),
            HasSubstr("the environment has 2.11.0+cu130 in /env/torch"),
            HasSubstr("pip install torch==2.15.0")));
  EXPECT_THAT(why(environment, {"2.9", "PEAKBENCH_TORCH"}),
              AllOf(HasSubstr("PEAKBENCH_TORCH 2.9: there is no worker for that PyTorch"),
                    HasSubstr("2.11.0+cu130, 2.15.0+cu132")));
}

TEST(NoWorker, OfABuildThatIsNotHereSaysWhichIs) {
  const std::string asked = "2.11.0+cu128";
  EXPECT_EQ(
      why(environment_with(torch("2.11.0+cu130", "g11", "13.0")), {asked, "--torch"}),
      "--torch 2.11.0+cu128: that build of PyTorch is not installed, 2.11.0+cu130 in /env/torch "
      "is. The worker for 2.11.0+cu130 serves any build of the release: install that one, or "
      "use --torch 2.11.0. Commands that need no worker: emulate, trace, fit "
      "-- PROGRAM, import, report, compare, gate, history, publish.");
  const auto other = why(environment_with(torch("2.15.0+cu132", "g15", "13.2")), {asked, "V"});
  EXPECT_THAT(other,
              HasSubstr("V 2.11.0+cu128: that build of PyTorch is not installed: the environment "
                        "has 2.15.0+cu132 in /env/torch. The worker for 2.11.0+cu130 serves "
                        "any build of the release: install that one. Commands"));
  EXPECT_THAT(why({}, {"2.9.0+cu128", "V"}), HasSubstr("there is no worker for that PyTorch"));
}

}  // namespace
}  // namespace peakbench::launch
