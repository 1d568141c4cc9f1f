// What a traced program is called, and how it is said to have ended.
#include <gtest/gtest.h>

#include <csignal>

#include "programs/traced.h"

namespace peakbench::programs {
namespace {

using Words = std::vector<std::string>;

TEST(ProgramName, IsTheScriptsWhoeverStartsIt) {
  for (const auto& command :
       {Words{"python3", "train.py", "--config", "other.py"},
        Words{"python3", "-u", "-X", "dev", "code/train.py"},
        Words{"/usr/bin/env", "X=1", "python3", "train.py"}, Words{"./train.py"},
        Words{"torchrun", "--nproc-per-node", "2", "train.py"},
        Words{"python3", "-m", "torch.distributed.run", "--nproc-per-node=2", "train.py"},
        Words{"accelerate", "launch", "--mixed_precision", "bf16", "train.py", "--epochs", "3"},
        Words{"python3", "-m", "accelerate.commands.launch", "train.py"},
        Words{"uv", "run", "--with", "torch", "train.py"},
        Words{"python3", "-m", "cProfile", "-o", "profile.out", "train.py"},
        Words{"sh", "-c", "cd code && X=1 python3 'train.py' --lr 1e-3; true"},
        Words{"bash", "-lc", "exec python3 code/train.py"}})
    EXPECT_EQ(name_of(command), "train.py") << command.back();
}

TEST(ProgramName, OfAModuleIsTheModules) {
  EXPECT_EQ(name_of({"python3", "-m", "pretrain.main", "--config", "a.py"}), "pretrain.main");
  EXPECT_EQ(name_of({"torchrun", "--nproc-per-node", "2", "-m", "pretrain.main"}), "pretrain.main");
  EXPECT_EQ(name_of({"python3", "-m", "torch.distributed.run", "-m", "pretrain"}), "pretrain");
  EXPECT_EQ(name_of({"sh", "-c", "python3 -m pretrain.main"}), "pretrain.main");
}

TEST(ProgramName, OfOtherThingsIsWhatIsRun) {
  EXPECT_EQ(name_of({"python3", "-u", "code/train"}), "train") << "a script without a suffix";
  EXPECT_EQ(name_of({"bash", "run.sh"}), "run.sh");
  EXPECT_EQ(name_of({"env", "-i", "X=1", "bin/train"}), "train");
  EXPECT_EQ(name_of({"sh", "-c", "X=1 bin/train --fast"}), "train");
  EXPECT_EQ(name_of({"python3", "-c", "import torch; print(1)"}), "python3");
  EXPECT_EQ(name_of({}), "program");
}

// In the order of read_journals: a process of its own number keeps it, whoever else says it.
TEST(ProgramRanks, AnotherProcessTakesNoRanksNumber) {
  Recorded recorded;
  for (const auto rank : {0, 0, 1, -1, -1}) {
    auto& journal = recorded.journals.emplace_back();
    journal.rank = rank;
    journal.trace.spaces = {"cuda:0"};
  }
  const auto run = run_of(std::move(recorded), {"train.py"}, "emulated:h100-80gb", {0});
  std::vector<std::int64_t> numbers;
  for (const auto& process : run.processes) numbers.push_back(process.rank);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 2, 1, 3, 4}));
}

std::string reason(int exit_code) {
  Journal journal;
  journal.trace.spaces = {"cuda:0"};
  return run_of({.journals = {journal}}, {"train.py"}, "emulated:h100-80gb", {exit_code}).reason;
}

TEST(ProgramEnd, OneThatEndsWellAfterASignalIsNotWhole) {
  Journal journal;
  journal.trace.spaces = {"cuda:0"};
  const auto run =
      run_of({.journals = {journal}}, {"train.py"}, "emulated:h100-80gb", {0, SIGTERM});
  EXPECT_EQ(run.status, records::Status::kInterrupted);
  EXPECT_EQ(
      run.reason,
      "the program was interrupted by SIGTERM (terminated): its figures are those until then");
}

TEST(ProgramEnd, IsSaidInTheWordsOfPrograms) {
  EXPECT_EQ(reason(0), "");
  EXPECT_EQ(reason(3), "the program ended with exit code 3");
  EXPECT_EQ(reason(128 + SIGINT),
            "the program was interrupted by SIGINT (interrupt): its figures are those until then");
  EXPECT_EQ(reason(128 + SIGKILL), "the program was ended by SIGKILL (killed)");
  EXPECT_EQ(reason(255), "the program ended with exit code 255");
}

}  // namespace
}  // namespace peakbench::programs
