// One process at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "support/scratch.h"

namespace peakbench::files {
namespace {

class Lock : public ::testing::Test {
 protected:
  const testing::ScratchFolder folder_;
  const std::string path_ = folder_ / "lock";
};

// Two openings of one file hold each other off as two processes do.
TEST_F(Lock, TheSecondWaitsAndSaysSo) {
  auto first = std::make_unique<FileLock>(
      path_, [] { FAIL(); }, [] { return false; });
  EXPECT_TRUE(first->is_held());
  std::atomic<int> told = 0;
  std::atomic<bool> held = false;
  std::thread second([&] {
    const FileLock lock(
        path_, [&] { ++told; }, [] { return false; });
    held = lock.is_held();
  });
  while (told == 0) std::this_thread::yield();
  EXPECT_FALSE(held);
  first.reset();
  second.join();
  EXPECT_TRUE(held);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "the file goes with the lock";
}

TEST_F(Lock, IsGivenUp) {
  const FileLock first(
      path_, [] {}, [] { return false; });
  const FileLock second(
      path_, [] {}, [] { return true; });
  EXPECT_FALSE(second.is_held());
  EXPECT_TRUE(std::filesystem::exists(path_)) << "it is the other's";
}

TEST_F(Lock, OneAtATime) {
  std::atomic<int> inside = 0, most = 0, turns = 0;
  const auto take_turns = [&] {
    for (int i = 0; i < 20; ++i) {
      const FileLock lock(
          path_, [] {}, [] { return false; });
      most = std::max(most.load(), ++inside);
      ++turns;
      --inside;
    }
  };
  std::thread one(take_turns), two(take_turns);
  one.join();
  two.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(turns, 40);
}

TEST_F(Lock, AFolderThatIsNotThereIsSaid) {
  EXPECT_THROW(FileLock(
                   folder_ / "none/lock", [] {}, [] { return false; }),
               HostError);
}

}  // namespace
}  // namespace peakbench::files
