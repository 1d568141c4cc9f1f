// What a gate lets pass: read from suites and typed options, and what is said of wrong values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/errors.h"
#include "reports/compare/compare.h"
#include "support/fake_runs.h"
#include "support/scratch.h"

namespace peakbench {
namespace {

using ::testing::HasSubstr;

TEST(Policy, IsReadFromTheSuiteOfNewThenOfBase) {
  auto base = testing::plain_source("base", {}), now = testing::plain_source("new", {});
  base.run.settings["gate"] = {{"reserved", "5%"}, {"throughput", "off"}};
  EXPECT_DOUBLE_EQ(compare::policy_of(base, now).reserved.fraction, 0.05);
  EXPECT_FALSE(compare::policy_of(base, now).throughput);
  now.run.settings["gate"] = {{"allocated", "1MiB"}};
  EXPECT_EQ(compare::policy_of(base, now).allocated.bytes, 1 << 20);
  EXPECT_TRUE(compare::policy_of(base, now).throughput);
  now.run.settings["gate"] = {{"alocated", "1"}};
  EXPECT_THAT(testing::message_of<ConfigError>([&] { compare::policy_of(base, now); }),
              HasSubstr("new: settings.gate.alocated: no key \"alocated\" of a gate; did you mean "
                        "\"allocated\"?"));
}

TEST(Policy, SaysWhatItExpects) {
  records::GatePolicy policy;
  const auto error = [&](const char* key, const char* text) {
    return testing::message_of<ConfigError>([&] { records::set_gate(policy, key, text, "here"); });
  };
  EXPECT_THAT(error("allocated", "lots"),
              HasSubstr("here: expected 0, a size like 512 or 1MiB, or a part of the base like "
                        "0.5%, got \"lots\""));
  EXPECT_THAT(error("reserved", "-1%"), HasSubstr("here: expected 0"));
  EXPECT_THAT(error("throughput", "0%"), HasSubstr("a part of the step"));
  EXPECT_THAT(error("throughput", "2"), HasSubstr("a part of the step"));
  EXPECT_THAT(error("false_alarms", "50%"), HasSubstr("a rate from 0.01% to 20%"));
  EXPECT_THAT(error("missing", "maybe"), HasSubstr("fail or pass"));
}

TEST(Policy, ComesBackFromJson) {
  records::GatePolicy policy, read;
  for (const auto& [key, text] : std::map<std::string, std::string>{{"requested", "512"},
                                                                    {"allocated", "0.5%"},
                                                                    {"throughput", "off"},
                                                                    {"missing", "pass"},
                                                                    {"phases", "pass"}})
    records::set_gate(policy, key, text, "");
  const auto json = records::to_json(policy);
  for (const auto& [key, value] : json.items())
    records::set_gate(read, key, value.get<std::string>(), "");
  EXPECT_EQ(records::to_json(read), records::to_json(policy));
  EXPECT_EQ(read.requested.bytes, 512);
  EXPECT_DOUBLE_EQ(read.allocated.fraction, 0.005);
  EXPECT_FALSE(read.phases_fail);
}

}  // namespace
}  // namespace peakbench
