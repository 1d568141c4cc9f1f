// Folders that go with their process, however it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/folder.h"
#include "support/scratch.h"

namespace peakbench::files {
namespace {

namespace fs = std::filesystem;

class Temporary : public ::testing::Test {
 protected:
  std::ptrdiff_t count() const { return std::distance(fs::directory_iterator(parent_), {}); }

  const testing::ScratchFolder scratch_;
  const fs::path parent_ = scratch_.path();
};

TEST_F(Temporary, GoesWithItsObject) {
  {
    const TemporaryFolder folder(parent_, ".work.");
    std::ofstream(folder.path() / "file") << "text";
    EXPECT_EQ(folder.path().parent_path(), parent_);
    EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
  }
  EXPECT_EQ(count(), 0);
}

TEST_F(Temporary, OfAKilledProcessGoesWithTheNext) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder folder(parent_, ".work.");
    std::ofstream(folder.path() / "large") << "text";
    if (write(pipe_ends[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char ready = 0;
  ASSERT_EQ(read(pipe_ends[0], &ready, 1), 1);
  auto own = std::make_unique<TemporaryFolder>(parent_, ".work.");
  EXPECT_EQ(count(), 2) << "the other process lives";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const TemporaryFolder other(parent_, ".other.");
  EXPECT_EQ(count(), 3) << "of another name";
  own = std::make_unique<TemporaryFolder>(parent_, ".work.");
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(fs::exists(own->path()) && fs::exists(other.path()));
}

TEST_F(Temporary, WhatIsNobodysOwnStays) {
  fs::create_directory(parent_ / ".work.abcdef");  // without a lock
  fs::create_directory(parent_ / "elsewhere");
  std::ofstream(parent_ / "elsewhere/.lock").close();
  fs::create_directory_symlink(parent_ / "elsewhere", parent_ / ".work.ghijkl");
  std::ofstream(parent_ / ".work.mnopqr") << "a file";
  const TemporaryFolder folder(parent_, ".work.");
  EXPECT_EQ(count(), 5);
  EXPECT_TRUE(fs::exists(parent_ / "elsewhere/.lock"));
}

TEST_F(Temporary, WhereNoneCanBeMadeTheSystemSaysWhy) {
  EXPECT_THROW(TemporaryFolder(parent_ / "nowhere", ".work."), std::system_error);
}

}  // namespace
}  // namespace peakbench::files
