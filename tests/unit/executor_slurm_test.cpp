// What Slurm's commands print, and what is asked of it: texts, and stand-ins for the commands that
// print them. tests/slurm has the real ones.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/errors.h"
#include "cluster/slurm.h"
#include "cluster/submission.h"
#include "launch/interrupt.h"
#include "support/scratch.h"

namespace peakbench::cluster {
namespace {

namespace fs = std::filesystem;
using namespace peakbench::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Slurm, ReadsTimesAsSbatchDoes) {
  EXPECT_EQ(walltime_seconds("90"), 5400);
  EXPECT_EQ(walltime_seconds("1:30"), 90);
  EXPECT_EQ(walltime_seconds("2:00:05"), 7205);
  EXPECT_EQ(walltime_seconds("1-12"), 129600);
  EXPECT_EQ(walltime_seconds("1-0:30"), 88200);
  EXPECT_EQ(walltime_seconds("1-0:0:1"), 86401);
  EXPECT_EQ(walltime_seconds("1-"), 86400);
  EXPECT_EQ(walltime_seconds("2000000"), 120'000'000);
  for (const char* none : {"UNLIMITED", "unlimited", "INFINITE", "Infinite", "-1", "0", "0:0"})
    EXPECT_EQ(walltime_seconds(none), 0) << none;
  for (const char* bad : {"", "soon", "1:", "1:2:", ":5", "1:2:3:4", "-5", "-", "1-2-3",
                          "1-1:", "1.5", " 1", "1 ", "+5", "infinitee", "--1", "1--"})
    EXPECT_EQ(walltime_seconds(bad), std::nullopt) << bad;
}

TEST(Slurm, ReadsIdsOfTasks) {
  EXPECT_THAT(tasks_of_id("12_3", "12", 20), ElementsAre(3));
  EXPECT_THAT(tasks_of_id("12_[0-2,7]", "12", 20), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(tasks_of_id("12_[1-9:4%2]", "12", 20), ElementsAre(1, 5, 9));
  for (const char* other : {"12", "12+1", "12_[", "12_x", "12_3.batch", ""})
    EXPECT_THAT(tasks_of_id(other, "12", 20), IsEmpty()) << other;
}

// Each of these took seconds and gigabytes where it was made a list.
TEST(Slurm, AnIdOfMoreTasksThanThereAreIsCutShort) {
  EXPECT_THAT(tasks_of_id("12_[0-1000000]", "12", 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(tasks_of_id("12_[2147483000-2147483647:2147483647]", "12", 3), IsEmpty());
  EXPECT_THAT(tasks_of_id("12_[0-2,0-2]", "12", 3), IsEmpty()) << "no id names a task twice";
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "12_[0-1000000]|PENDING|(Resources)\n";
  const auto states = states_from(lines, "12", 3);
  ASSERT_TRUE(states);
  EXPECT_EQ(states->size(), 3U);
  for (int i = 0; i < 400; ++i) lines += "12_[0-1000000]|PENDING|(Resources)\n";
  EXPECT_EQ(states_from(lines, "12", 3), std::nullopt) << "no answer";
}

TEST(Slurm, RowsOfAnotherJobAreNotTheJobs) {
  const auto states = states_from("12_0|RUNNING|n1\n13_0|COMPLETED|n2\n1_1|FAILED|n1\n", "12", 2);
  ASSERT_TRUE(states);
  EXPECT_EQ(states->size(), 1U);
  EXPECT_EQ(states->at(0).state, TaskState::kRunning);
  EXPECT_EQ(states_from("13_0|COMPLETED|n2\n", "12", 1), std::nullopt) << "no answer";
  EXPECT_EQ(states_from("", "12", 1)->size(), 0U) << "forgotten";
}

// Of squeue --states=all, as 22.05 printed it.
TEST(Slurm, FindsTheJobOfAScript) {
  const std::string path = "/r/queue/1/job.sh";
  EXPECT_EQ(live_job_from("9|COMPLETED|" + path + "\n19|SUSPENDED|" + path + "\n", path), "19");
  for (const char* state : {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "STOPPED",
                            "REQUEUE_HOLD", "SPECIAL_EXIT", "SOMETHING_NEW"})
    EXPECT_EQ(live_job_from(fmt::format("19|{}|{}\n", state, path), path), "19") << state;
  for (const char* state : {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"})
    EXPECT_EQ(live_job_from(fmt::format("19|{}|{}\n", state, path), path), "") << state;
  EXPECT_EQ(live_job_from("10|PENDING|" + path + "\n9|RUNNING|" + path + "\n", path), "10");
  EXPECT_EQ(live_job_from("19|RUNNING|" + path + "x\n--me|RUNNING|" + path + "\n", path), "");
}

TEST(Slurm, ReadsHowOftenAJobWasBegunAgain) {
  EXPECT_EQ(
      restarts_from("JobId=20 ArrayJobId=19 ArrayTaskId=0 JobName=j.sh\n   JobState=COMPLETING "
                    "Reason=None Dependency=(null)\n   Requeue=1 Restarts=1 BatchFlag=1 "
                    "Reboot=0 ExitCode=0:0\n"),
      1);
  EXPECT_EQ(restarts_from("JobId=20"), std::nullopt);
  EXPECT_EQ(restarts_from(" Restarts=many "), std::nullopt);
  EXPECT_EQ(restarts_from(" Restarts=12"), 12);
}

// As squeue 22.05 printed it, with what no node here can be made to say: a drained node's reason, a
// preempted task, one that was held after a failed start.
TEST(Slurm, ReadsSqueue) {
  const auto states = *states_from(
      "7_[4-5%2]|PENDING|(JobArrayTaskLimit)\n7_0|COMPLETED|n1\n7_1|RUNNING|n2\n"
      "7_2|COMPLETING|n1\n7_3|NODE_FAIL|n1\n7_6|PREEMPTED|n1\n7_7|OUT_OF_MEMORY|n2\n"
      "7_8|PENDING|(launch failed requeued held)\n7_9|SOMETHING_NEW|n1\n"
      "7_10|PENDING|(Job's account not known, so it can't use this partition (guarded allows "
      "nobody))\nslurm_load_jobs error: nothing\n\n",
      "7", 20);
  ASSERT_EQ(states.size(), 11U);
  EXPECT_EQ(states.at(0).state, TaskState::kDone);
  EXPECT_EQ(states.at(1).state, TaskState::kRunning);
  EXPECT_EQ(states.at(1).where, "n2");
  EXPECT_EQ(states.at(2).state, TaskState::kRunning);
  EXPECT_EQ(states.at(3).state, TaskState::kLost);
  EXPECT_EQ(states.at(4).state, TaskState::kWaiting);
  EXPECT_EQ(states.at(5).where, "(JobArrayTaskLimit)");
  EXPECT_EQ(states.at(6).state, TaskState::kLost);
  EXPECT_EQ(states.at(7).state, TaskState::kOutOfMemory);
  EXPECT_EQ(states.at(8).state, TaskState::kWaiting);
  EXPECT_EQ(states.at(9).state, TaskState::kRunning) << "nothing follows from an unknown word";
  EXPECT_EQ(states.at(10).state, TaskState::kNever);
}

// sacct --parsable2: steps are lines of their own.
TEST(Slurm, ReadsSacct) {
  const auto states = *states_from(
      "31_0|COMPLETED|n1\n31_1|CANCELLED by 1000|n2\n31_2|TIMEOUT|n1\n31_2.batch|CANCELLED|n1\n"
      "31_3|FAILED|None assigned\n31_[4-6]|PENDING|None assigned\n",
      "31", 20);
  EXPECT_EQ(states.size(), 7U);
  EXPECT_EQ(states.at(1).state, TaskState::kCancelled);
  EXPECT_EQ(states.at(2).state, TaskState::kTimeLimit) << "not its step's";
  EXPECT_EQ(states.at(6).state, TaskState::kWaiting);
}

TEST(Slurm, FindsTheJobsNumber) {
  EXPECT_EQ(job_from("123\n"), "123");
  EXPECT_EQ(job_from("sbatch: note of the site\n123;cluster\n"), "123");
  EXPECT_EQ(job_from("Submitted nothing\n"), "");
}

TEST(Script, SaysWhatIsAskedAndQuotesPaths) {
  SlurmOptions options;
  options.partition = "gpu";
  options.time = "4";
  options.at_once = 3;
  const auto text = script_text(
      options, {"/opt/it's/peakbench", "/r/queue/1", "/r/log", std::vector<std::size_t>(7, 2)});
  EXPECT_THAT(text, HasSubstr("#SBATCH --array=\"0-6%3\"\n"));
  EXPECT_THAT(text, HasSubstr("#SBATCH --partition=\"gpu\"\n"));
  EXPECT_THAT(text, HasSubstr("exec '/opt/it'\\''s/peakbench' work '/r/queue/1' --task"));
  EXPECT_EQ(text.find("USR2"), std::string::npos) << "a minute's warning is too much of four";
  options.time = "5";
  EXPECT_THAT(script_text(options, {"/p", "/q", "/l", {1}}), HasSubstr("--signal=\"B:USR2@60\""));
  EXPECT_THROW(script_text(options, {"/p", "/r/50%", "/l", {1}}), ConfigError);
  options.account = "a\n#SBATCH --uid=0";
  EXPECT_THROW(check_options(options), ConfigError);
}

TEST(Script, NamesThePyTorchWhoseWorkerWasChosen) {
  EXPECT_THAT(script_text({}, {"/p", "/q", "/l", {1}, "2.15.0+cu132"}),
              HasSubstr("--jobs 1 --torch '2.15.0+cu132'\n"));
  EXPECT_EQ(script_text({}, {"/p", "/q", "/l", {1}}).find("--torch"), std::string::npos);
}

TEST(Script, SaysHowManyCasesEachTaskHas) {
  const auto text = script_text({}, {"/p", "/q", "/l", {3, 3, 2, 3}});
  EXPECT_THAT(text, HasSubstr("# 11 cases in 4 tasks:\n#   tasks 0-1: 3 cases each\n"
                              "#   task 2: 2 cases\n#   task 3: 3 cases\nexec "));
  EXPECT_THAT(script_text({}, {"/p", "/q", "/l", {1}}),
              HasSubstr("# 1 case in 1 task:\n#   task 0: 1 case\nexec "));
}

// Programs of the test's own in the place of Slurm's.
class SlurmCommands : public ::testing::Test {
 protected:
  SlurmCommands() {
    stand_in("sbatch", "echo 12");
    setenv("PATH", fmt::format("{}:{}", scratch.path(), path_).c_str(), 1);
  }
  ~SlurmCommands() override { setenv("PATH", path_.c_str(), 1); }

  void stand_in(const std::string& program, const std::string& script) {
    write_text(scratch / program, "#!/bin/sh\n" + script + "\n");
    fs::permissions(scratch / program, fs::perms::owner_all);
  }

  ScratchFolder scratch;

 private:
  std::string path_ = std::getenv("PATH");
};

TEST_F(SlurmCommands, ASuspendedJobIsFound) {
  // Slurm's: only what is in a state that was asked for.
  stand_in("squeue",
           "case \"$*\" in *suspended*|*all*)\n  for arg; do case $arg in --format=*)\n"
           "    arg=${arg#--format=}; echo \"$arg\" | sed 's|%F|12|;s|%T|SUSPENDED|;"
           "s|%o|/r/job.sh|'\n  esac; done\nesac");
  EXPECT_EQ(Slurm().job_of("/r/job.sh"), "12");
}

TEST_F(SlurmCommands, ARowOfAnotherJobIsNoAnswer) {
  stand_in("squeue", "echo '13_0|COMPLETED|n1'");
  stand_in("sacct", "exit 1");
  EXPECT_EQ(Slurm().states("12", 1), std::nullopt);
}

TEST_F(SlurmCommands, ASqueueThatHangsDoesNotKeepACtrlCFromBeingHeard) {
  stand_in("squeue", "sleep 20");
  stand_in("scontrol", "sleep 20");
  Slurm slurm;
  for (const auto& question : {std::function<void()>([&] { slurm.states("12", 1); }),
                               {[&] { slurm.job_of("/r/job.sh"); }},
                               {[&] { slurm.restarts("12", 0); }}}) {
    const launch::InterruptScope interrupts;
    std::jthread person([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(getpid(), SIGINT);
    });
    const auto began = std::chrono::steady_clock::now();
    question();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  }
}

TEST_F(SlurmCommands, AnOrderIsWaitedForThoughACtrlCHasCome) {
  stand_in("scancel", "sleep 0.3");
  Slurm slurm;
  const launch::InterruptScope interrupts;
  launch::interrupt_as(SIGINT);
  EXPECT_EQ(slurm.submit("/r/job.sh"), "12");
  EXPECT_EQ(slurm.cancel("12"), "");
}

}  // namespace
}  // namespace peakbench::cluster
