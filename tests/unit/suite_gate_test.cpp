// The table `gate` of a suite: read, refused with its place, and kept in run.json's settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "launch/run_folder.h"
#include "planning/plan.h"
#include "support/scratch.h"

namespace peakbench {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::ScratchFolder;

planning::Request read(const std::string& gate) {
  const ScratchFolder folder;
  const auto path = folder / "suite.toml";
  testing::write_text(path, "models = [\"a\"]\nstrategies = [\"b\"]\n" + gate);
  return planning::read_suite(path);
}

TEST(SuiteGate, IsReadAndKept) {
  const auto request = read(
      "[gate]\nrequested = 512\nallocated = \"1MiB\"\nreserved = \"5%\"\n"
      "throughput = \"off\"\nmissing = \"pass\"\n");
  ASSERT_TRUE(request.gate);
  EXPECT_EQ(request.gate->requested.bytes, 512);
  EXPECT_EQ(request.gate->allocated.bytes, 1 << 20);
  EXPECT_DOUBLE_EQ(request.gate->reserved.fraction, 0.05);
  EXPECT_FALSE(request.gate->throughput);
  EXPECT_FALSE(request.gate->missing_fails);
  EXPECT_EQ(launch::settings_of(request)["gate"]["allocated"], "1048576");
  EXPECT_FALSE(launch::settings_of(read("")).contains("gate"));
}

TEST(SuiteGate, SaysWhereItIsWrong) {
  const auto error = [](const std::string& gate) {
    return message_of<ConfigError>([&] { read(gate); });
  };
  EXPECT_THAT(error("[gate]\nalocated = 1\n"),
              HasSubstr("suite.toml:4:1: unknown key \"alocated\"; did you mean \"allocated\"?"));
  EXPECT_THAT(error("[gate]\nallocated = \"some\"\n"),
              HasSubstr("suite.toml:4:13: gate.allocated: expected 0, a size"));
  EXPECT_THAT(error("[gate]\nallocated = -1\n"), HasSubstr("gate.allocated: expected 0, a size"));
  EXPECT_THAT(error("gate = 3\n"), HasSubstr("suite.toml:3:"));
}

}  // namespace
}  // namespace peakbench
