// The server that workers are forked from: what it is told, what a run gets of it, and its death.
#include "host/fork_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/process.h"
#include "host/serve.h"
#include "support/scratch.h"

namespace peakbench::process {
namespace {

using namespace peakbench::testing;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ForkServerTest : public ::testing::Test {
 protected:
  // As in peakbench: what is told to a process that has just ended is lost.
  ForkServerTest() { signal(SIGPIPE, SIG_IGN); }

  std::unique_ptr<ForkServer> server_of(const std::string& program, Environment environment = {}) {
    return std::make_unique<ForkServer>(std::vector<std::string>{program, "--serve"},
                                        std::move(environment));
  }
  ProcessEnd print(
      ForkServer& server, const std::string& name, const Environment& more = {},
      const std::function<bool()>& cancelled = [] { return false; }) {
    ProcessSpec spec;
    spec.arguments = {PEAKBENCH_FORKING_WORKER, "--print", name};
    spec.environment = more;
    spec.log_path = scratch / "log";
    return run_process(
        spec, [](const std::string&) {}, cancelled, &server);
  }
  std::string script(const std::string& text) {
    const auto path = scratch / "script";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    chmod(path.c_str(), 0755);
    return path;
  }
  static void expect_printed(const ProcessEnd& end, const std::string& text) {
    EXPECT_EQ(end.last_words, text + "\n") << end.start_error << end.server_problem;
    EXPECT_EQ(end.exit_code, 0);
  }

  ScratchFolder scratch;
  std::unique_ptr<ForkServer> server = server_of(PEAKBENCH_FORKING_WORKER, {{"OF_SERVER", "one"}});
};

TEST_F(ForkServerTest, OneServerForksManyRuns) {
  EXPECT_EQ(server->pid(), -1) << "none is started before it is needed";
  expect_printed(print(*server, "OF_SERVER"), "one");
  const auto pid = server->pid();
  EXPECT_GT(pid, 0);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(print(*server, "OF_SERVER").server_problem, "");
  EXPECT_EQ(server->pid(), pid);
}

TEST_F(ForkServerTest, ARunHasItsOwnVariablesAndNoOthers) {
  expect_printed(print(*server, "OF_RUN", {{"OF_RUN", "two"}}), "two");
  expect_printed(print(*server, "OF_RUN"), "not set");
  expect_printed(print(*server, "PEAKBENCH_PROGRESS_FD"), "3");
}

TEST_F(ForkServerTest, KilledWhileIdleItIsStartedAgain) {
  print(*server, "OF_SERVER");
  const auto pid = server->pid();
  kill(pid, SIGKILL);
  const auto end = print(*server, "OF_SERVER");
  expect_printed(end, "one");
  EXPECT_TRUE(contains(end.server_problem, "was ended by SIGKILL; its processes continue"))
      << end.server_problem;
  EXPECT_NE(server->pid(), pid);
  EXPECT_GT(server->pid(), 0);
  EXPECT_EQ(print(*server, "OF_SERVER").server_problem, "") << "told once";
}

TEST_F(ForkServerTest, AfterTheThirdDeathThereIsNoOther) {
  std::string problem;
  for (int death = 0; death < 3; ++death) {
    print(*server, "OF_SERVER");
    kill(server->pid(), SIGKILL);
  }
  const auto end = print(*server, "PATH");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(contains(end.server_problem, "it is the third")) << end.server_problem;
  EXPECT_EQ(server->pid(), -1);
  EXPECT_EQ(print(*server, "PATH").server_problem, "");
}

TEST_F(ForkServerTest, AProgramThatDoesNotServeIsStartedAfreshWithoutAWord) {
  const auto none = server_of(script("exit 2"));
  const auto end = print(*none, "OF_RUN", {{"OF_RUN", "two"}});
  expect_printed(end, "two");
  EXPECT_EQ(end.server_problem, "");
}

TEST_F(ForkServerTest, AServerThatCannotLoadSaysWhy) {
  const auto none = server_of(script("echo libtorch.so: not found; exit 127"));
  const auto end = print(*none, "PATH");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(contains(end.server_problem,
                       "--serve, which workers are forked from, ended with code "
                       "127 (it said: libtorch.so: not found)"))
      << end.server_problem;
  EXPECT_EQ(print(*none, "PATH").server_problem, "") << "told once, and tried once";
}

TEST_F(ForkServerTest, AProgramThatIsNotThere) {
  const auto none = server_of("/nowhere/peakbench-worker");
  EXPECT_TRUE(contains(print(*none, "PATH").server_problem, "No such file"));
}

TEST_F(ForkServerTest, WhatHasThreadsIsNotForked) {
  const auto with = server_of(PEAKBENCH_FORKING_WORKER, {{"PEAKBENCH_TEST_THREAD", "1"}});
  const auto end = print(*with, "PATH");
  EXPECT_EQ(end.exit_code, 0) << "it is started afresh";
  EXPECT_TRUE(contains(end.server_problem, "must not be forked: it has 2 threads"))
      << end.server_problem;
  EXPECT_EQ(with->pid(), -1);
}

TEST_F(ForkServerTest, WhatMustNotBeForkedIsNot) {
  const auto with =
      server_of(PEAKBENCH_FORKING_WORKER, {{"PEAKBENCH_TEST_OBJECTION", "CUDA is in use already"}});
  EXPECT_TRUE(contains(print(*with, "PATH").server_problem, "CUDA is in use already"));
}

TEST_F(ForkServerTest, AnInterruptEndsTheWaitForAServer) {
  const auto slow = server_of(script("sleep 60"));
  const auto start = std::chrono::steady_clock::now();
  print(*slow, "PATH", {}, [] { return true; });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(ForkServerTest, SeveralThreadsAskOneServer) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this, i] {
      for (int j = 0; j < 10; ++j) {
        ProcessSpec spec;
        spec.arguments = {PEAKBENCH_FORKING_WORKER, "--print", "OF_RUN"};
        spec.environment = {{"OF_RUN", std::to_string(100 * i + j)}};
        spec.log_path = scratch / std::to_string(i);
        const auto end = run_process(
            spec, [](const std::string&) {}, [] { return false; }, server.get());
        EXPECT_EQ(end.last_words, std::to_string(100 * i + j) + "\n");
        EXPECT_EQ(end.server_problem, "");
      }
    });
  for (auto& thread : threads) thread.join();
}

class MessagesTest : public ::testing::Test {
 protected:
  MessagesTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0); }
  ~MessagesTest() override {
    for (const int end : ends) close(end);
  }
  int ends[2];
};

TEST_F(MessagesTest, ARequestArrivesWhole) {
  ProcessSpec spec;
  spec.arguments = {"a job.json", ""};
  spec.environment = {{"CARD", "{\"id\": 1}"}, {"EMPTY", ""}};
  spec.timeout = std::chrono::milliseconds(1234);
  spec.rss_limit_bytes = std::int64_t{5} << 40;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(send_request(ends[0], {spec, {null, null, null, null, null, null}, null}));
  auto request = receive_request(ends[1]);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->spec.arguments, spec.arguments);
  EXPECT_EQ(request->spec.environment, spec.environment);
  EXPECT_EQ(request->spec.timeout, spec.timeout);
  EXPECT_EQ(request->spec.grace, spec.grace);
  EXPECT_EQ(request->spec.rss_limit_bytes, spec.rss_limit_bytes);
  for (const int* descriptor : descriptors_of(*request)) {
    EXPECT_GT(*descriptor, null);
    EXPECT_EQ(fcntl(*descriptor, F_GETFD), FD_CLOEXEC);
    close(*descriptor);
  }
  close(null);
}

TEST_F(MessagesTest, AReplyArrivesWhole) {
  ASSERT_TRUE(send_reply(ends[1], {4711, ""}));
  ASSERT_TRUE(send_reply(ends[1], {-1, "it has 2 threads"}));
  EXPECT_EQ(receive_reply(ends[0])->supervisor, 4711);
  EXPECT_EQ(receive_reply(ends[0])->refusal, "it has 2 threads");
}

TEST_F(MessagesTest, WhatIsNoMessageIsNone) {
  ASSERT_TRUE(send_text(ends[0], "short"));
  EXPECT_FALSE(receive_request(ends[1]).has_value());
  ASSERT_TRUE(send_text(ends[1], "short"));
  EXPECT_FALSE(receive_reply(ends[0]).has_value());
  close(ends[1]);
  ends[1] = -1;
  EXPECT_FALSE(receive_reply(ends[0]).has_value());
  EXPECT_FALSE(send_text(ends[0], "to nobody"));
}

TEST_F(MessagesTest, ARequestThatIsTooLongIsNotSent) {
  ProcessSpec spec;
  spec.environment = {{"LONG", std::string(1 << 20, 'x')}};
  EXPECT_FALSE(send_request(ends[0], {spec, {0, 0, 0, 0, 0, 0}, 0}));
}

}  // namespace
}  // namespace peakbench::process
