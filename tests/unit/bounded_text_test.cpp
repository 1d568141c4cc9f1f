// Texts of plugins that are kept short.
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/printable.h"

namespace peakbench::records {
namespace {

TEST(BoundedText, ShortOnesStay) {
  EXPECT_EQ(bounded(""), "");
  EXPECT_EQ(bounded("abc", 3), "abc");
  EXPECT_EQ(bounded(std::string(kLongestText, 'a')), std::string(kLongestText, 'a'));
}

TEST(BoundedText, LongOnesSayWhatIsLeftOut) {
  EXPECT_EQ(bounded("abcd", 3), "abc... (1 bytes left out)");
  EXPECT_EQ(bounded(std::string(239'000'000, 'a')).size(), 4096 + 30u);
}

TEST(BoundedText, NoSequenceIsCut) {
  EXPECT_EQ(bounded("a\xE2\x82\xAC", 3), "a... (3 bytes left out)");
  EXPECT_EQ(bounded("a\xE2\x82\xACz", 4), "a\xE2\x82\xAC... (1 bytes left out)");
  EXPECT_EQ(bounded("\xF0\x9F\x98\x80z", 3), "... (5 bytes left out)");
  EXPECT_TRUE(
      bounded(std::string(20, char(0x80)), 10).starts_with(std::string(6, char(0x80)) + "..."));
}

TEST(BoundedText, EveryStringOfJson) {
  const std::string text(5000, 'a');
  nlohmann::json json{{"a", {text, 1, {{"b", text}}}}, {"c", "short"}};
  bound_texts(json);
  EXPECT_EQ(json["a"][0], bounded(text));
  EXPECT_EQ(json["a"][2]["b"], bounded(text));
  EXPECT_EQ(json["c"], "short");
}

}  // namespace
}  // namespace peakbench::records
