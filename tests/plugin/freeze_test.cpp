#include "freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peakbench/errors.h"

namespace peakbench::freeze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Patterns, AreWholePathsOrThoseOfAModuleAbove) {
  const std::string path = "model.layers.1.mlp.up_proj.weight";
  for (const char* pattern : {"model.layers.1.mlp.up_proj.weight", "model.layers.1", "model", "*",
                              "*.1", "*.mlp", "model.*.mlp.up_*.weight", "*proj*"})
    EXPECT_TRUE(matches(pattern, path)) << pattern;
  for (const char* pattern :
       {"layers.1", "model.layers.1.", "model.layer", "*.mlp.u", "model.layers.10", "*.bias"})
    EXPECT_FALSE(matches(pattern, path)) << pattern;
}

TEST(Patterns, AreJoinedByColonsAndNeverEmpty) {
  EXPECT_THAT(parse("a.b:*c"), ElementsAre("a.b", "*c"));
  EXPECT_THAT([] { parse(""); }, ThrowsMessage<OptionError>(HasSubstr("modules is empty")));
  EXPECT_THAT([] { parse("a::b"); }, ThrowsMessage<OptionError>(HasSubstr("an empty pattern")));
}

}  // namespace
}  // namespace peakbench::freeze
