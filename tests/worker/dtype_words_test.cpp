// Words for dtypes, in both directions.
#include "recording/dtype_words.h"

#include <gtest/gtest.h>

#include "records/axes.h"

namespace peakbench::recording {
namespace {

TEST(DtypeWords, OfTheWeightsAreAllKnown) {
  for (const auto& word : records::row_of(records::Axis::kDtype).asked->one_of) {
    const auto dtype = dtype_from_word(word);
    ASSERT_TRUE(dtype) << word;
    EXPECT_EQ(dtype_word(*dtype), word);
  }
}

TEST(DtypeWords, ThereIsNoneForEveryDtype) {
  EXPECT_EQ(dtype_word(at::kByte), "Byte");
  EXPECT_FALSE(dtype_from_word("Byte"));
}

}  // namespace
}  // namespace peakbench::recording
