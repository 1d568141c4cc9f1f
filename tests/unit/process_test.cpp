// Commands that are asked, held to their limits; and the search on PATH.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "host/command.h"
#include "support/scratch.h"

namespace peakbench::process {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Command shell(const std::string& script, std::chrono::milliseconds patience = 60s) {
  return {.arguments = {"sh", "-c", script}, .patience = patience};
}

bool is_running(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] != 'Z';
}

// Its parent has ended, so whoever adopted it reaps it, a moment later.
bool has_ended_soon(pid_t pid) {
  for (int i = 0; i < 100 && is_running(pid); ++i) std::this_thread::sleep_for(20ms);
  return !is_running(pid);
}

TEST(Command, SaysWhatItPrintsAndHowItEnds) {
  const auto said = ask_command(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(said.out, "out\n");
  EXPECT_EQ(said.err, "err\n");
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_EQ(said.stopped, Stop::kNone);
  EXPECT_FALSE(said.ok());
  EXPECT_EQ(ask_command(shell("kill -TERM $$")).exit_code, 128 + SIGTERM);
  EXPECT_TRUE(ask_command(shell("cat")).ok()) << "its input is empty";
}

TEST(Command, AMissingProgramIsSaid) {
  const auto said = ask_command({.arguments = {"no-such-program-anywhere"}, .patience = 1s});
  EXPECT_EQ(said.start_error, "No such file or directory");
  EXPECT_FALSE(said.ok());
}

TEST(Command, KeepsVariablesFromIt) {
  setenv("PEAKBENCH_TEST_ONE", "1", 1);
  setenv("PEAKBENCH_TEST_TWO", "2", 1);
  auto command = shell("echo $PEAKBENCH_TEST_ONE-$PEAKBENCH_TEST_TWO-$PEAKBENCH_PROGRESS_FD");
  command.without = {"PEAKBENCH_TEST_O"};
  EXPECT_EQ(ask_command(command).out, "-2-\n");
}

TEST(Command, MoreThanAPipeHoldsIsReadToItsEnd) {
  const auto said = ask_command(shell("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2"));
  EXPECT_EQ(said.out.size(), 3000000u);
  EXPECT_EQ(said.err.size(), 2000000u);
  EXPECT_TRUE(said.ok());
}

TEST(Command, OneThatPrintsWithoutEndIsEnded) {
  auto command = shell("yes");
  command.most_output = 1 << 20;
  const auto said = ask_command(command);
  EXPECT_EQ(said.stopped, Stop::kOutput);
  EXPECT_EQ(said.out.size(), std::size_t{1} << 20);
  EXPECT_FALSE(said.ok());
}

// A pipe that nobody reads any more is none of its business.
TEST(Command, OneThatIgnoresThatNobodyReadsIsEnded) {
  auto command = shell("trap '' PIPE; while :; do head -c 100000 /dev/zero; done 2>/dev/null");
  command.most_output = 1 << 20;
  EXPECT_EQ(ask_command(command).stopped, Stop::kOutput);
}

TEST(Command, ItsGroupIsEndedWithIt) {
  const auto began = Clock::now();
  const auto said = ask_command(shell("sleep 600 & echo $!; wait", 500ms));
  EXPECT_EQ(said.stopped, Stop::kTimeout);
  EXPECT_LT(Clock::now() - began, 20s);
  EXPECT_TRUE(has_ended_soon(std::atoi(said.out.c_str())));
}

TEST(Command, IsAskedToEndFirstWhereItHasTimeToTidyUp) {
  auto command = shell("trap 'echo tidied; exit 1' TERM; sleep 600 & wait", 300ms);
  command.grace = 30s;
  const auto began = Clock::now();
  const auto said = ask_command(command);
  EXPECT_EQ(said.out, "tidied\n");
  EXPECT_LT(Clock::now() - began, 20s);
  command.arguments.back() = "trap '' TERM; while :; do sleep 1; done";
  command.grace = 300ms;
  EXPECT_EQ(ask_command(command).exit_code, 128 + SIGKILL) << "who does not listen is killed";
}

TEST(Command, IsEndedWhenItIsNotWantedAnyMore) {
  auto command = shell("sleep 600");
  const auto until = Clock::now() + 200ms;
  command.cancelled = [&] { return Clock::now() > until; };
  EXPECT_EQ(ask_command(command).stopped, Stop::kInterrupt);
}

TEST(Command, WhatItLeavesRunningIsNotWaitedFor) {
  const auto began = Clock::now();
  const auto said = ask_command(shell("sleep 600 & echo $!"));
  EXPECT_TRUE(said.ok());
  EXPECT_LT(Clock::now() - began, 20s);
  const pid_t left = std::atoi(said.out.c_str());
  EXPECT_TRUE(is_running(left)) << "nor ended";
  kill(left, SIGKILL);
}

class OnPath : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"one", "two"}) std::filesystem::create_directory(folder_ / name);
    before_ = std::getenv("PATH");
    setenv("PATH", ((folder_ / "one").string() + ":" + (folder_ / "two").string()).c_str(), 1);
  }
  void TearDown() override { setenv("PATH", before_.c_str(), 1); }
  std::filesystem::path make(const std::string& name, mode_t mode) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n";
    chmod((folder_ / name).c_str(), mode);
    return folder_ / name;
  }

  const testing::ScratchFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path();
  std::string before_;
};

TEST_F(OnPath, TheFirstThatCanBeExecuted) {
  EXPECT_EQ(find_program("compiler"), std::nullopt);
  const auto second = make("two/compiler", 0755);
  EXPECT_EQ(find_program("compiler"), second);
  make("one/compiler", 0644);
  EXPECT_EQ(find_program("compiler"), second) << "one that cannot be executed is passed over";
  std::filesystem::create_directory(folder_ / "one/linker");
  EXPECT_EQ(find_program("linker"), std::nullopt) << "a folder is no program";
}

TEST_F(OnPath, AWordWithASlashIsAPath) {
  const auto program = make("two/program", 0644);
  EXPECT_EQ(find_program(program.string()), program);
  EXPECT_EQ(find_program("two/program"), std::nullopt);
}

}  // namespace
}  // namespace peakbench::process
