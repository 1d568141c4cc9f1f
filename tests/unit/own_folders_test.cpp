// The folders of runs that nobody gave one: each has its own, however many start at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cli/measure.h"
#include "support/scratch.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::MatchesRegex;

class OwnFolders : public ::testing::Test {
 protected:
  OwnFolders() { fs::current_path(scratch_.path()); }
  ~OwnFolders() override { fs::current_path(before_); }
  OwnFolders(const OwnFolders&) = delete;
  OwnFolders& operator=(const OwnFolders&) = delete;

  fs::path before_ = fs::current_path();
  ScratchFolder scratch_;
};

TEST_F(OwnFolders, ManyAtOnceAreAllMadeAndDiffer) {
  constexpr int kThreads = 8, kEach = 20;
  std::vector<std::vector<std::string>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (auto& names : made)
      threads.emplace_back([&names] {
        for (int i = 0; i < kEach; ++i) names.push_back(make_folder_for("fit GPT-2"));
      });
  }
  std::set<std::string> all;
  for (const auto& names : made)
    for (const auto& name : names) {
      EXPECT_THAT(name, MatchesRegex("results/fit-gpt-2-[0-9]+T[0-9]+Z(-[0-9]+)?"));
      EXPECT_TRUE(fs::is_directory(name)) << name;
      all.insert(name);
    }
  EXPECT_EQ(all.size(), std::size_t{kThreads} * kEach);
}

TEST_F(OwnFolders, ANameAloneMakesNothing) {
  const auto name = folder_for("vit-l-16");
  EXPECT_FALSE(fs::exists("results"));
  EXPECT_THAT(name, MatchesRegex("results/vit-l-16-[0-9]+T[0-9]+Z"));
}

TEST_F(OwnFolders, WhereNoneCanBeMadeTheNameIsGivenAsItIs) {
  std::ofstream("results") << "a file";
  EXPECT_THAT(make_folder_for("vit-l-16"), MatchesRegex("results/vit-l-16-[0-9]+T[0-9]+Z"));
}

}  // namespace
}  // namespace peakbench::cli
