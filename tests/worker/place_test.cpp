// Where the worker is, in words.
#include <gtest/gtest.h>

#include "worker/progress.h"

namespace peakbench::worker {
namespace {

TEST(Place, BeforeTheFirstStepThereIsNone) {
  set_place(trace::Phase::kBuild, trace::kNone, 3);
  note_failure("", "");
  EXPECT_EQ(place_in_words(), "");
  note_failure("heads", "aten::mm");
  EXPECT_EQ(place_in_words(), "module heads, operator aten::mm");
}

TEST(Place, StepsAreCountedFromOne) {
  set_place(trace::Phase::kBackward, 1, 3);
  note_failure("", "aten::mm");
  EXPECT_EQ(place_in_words(), "step 2 of 3, backward, operator aten::mm");
}

}  // namespace
}  // namespace peakbench::worker
