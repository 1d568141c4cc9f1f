#include "base/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/own_file.h"
#include "base/regular_file.h"
#include "support/scratch.h"

namespace peakbench::files {
namespace {

namespace fs = std::filesystem;

using ::peakbench::testing::message_of;
using ::peakbench::testing::read_text;
using ::peakbench::testing::ScratchFolder;
using ::peakbench::testing::write_text;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    fs::create_directory(elsewhere / "theirs");
    write_text(elsewhere / "theirs/file", "theirs");
    fs::create_directory_symlink(elsewhere / "theirs", place / "link");
    write_text(place / "file", "ours");
  }
  ScratchFolder place, elsewhere;
};

TEST_F(FolderTest, WhatIsInItIsReachedWithoutLinks) {
  const Folder folder(place.path());
  EXPECT_FALSE(folder.folder("none"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] { folder.folder("link"); }), "link: is a link"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] { folder.made("link"); }), "link: is a link"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] { folder.folder("file"); }), "file: is no folder"));
  EXPECT_EQ(folder.made("new").path(), place / "new");
  EXPECT_TRUE(folder.folder("new"));
  EXPECT_TRUE(Folder(place / "link").folder("..")) << "a name that is typed is followed";
  EXPECT_TRUE(says(message_of<ConfigError>([&] { Folder(place / "none"); }), "cannot be entered"));
}

// Renamed, and a link in its place: what was opened stays what it was.
TEST_F(FolderTest, ALinkThatComesLaterLeadsNobodyOut) {
  fs::create_directory(place / "cases");
  write_text(place / "cases/file", "ours");
  const auto cases = Folder(place.path()).folder("cases");
  fs::rename(place / "cases", place / "moved");
  fs::create_directory_symlink(elsewhere / "theirs", place / "cases");
  cases->remove_file("file");
  EXPECT_EQ(read_text(elsewhere / "theirs/file"), "theirs");
  EXPECT_FALSE(fs::exists(place / "moved/file"));
}

TEST_F(FolderTest, FilesAreRemovedAndFoldersStay) {
  const Folder folder(place.path());
  folder.made("new");
  write_text(place / "new/file", "x");
  folder.remove_file("new");
  folder.remove_file("none");
  folder.remove_if_empty("new");
  folder.remove_if_empty("link");
  EXPECT_TRUE(fs::exists(place / "new/file"));
  EXPECT_TRUE(fs::is_symlink(place / "link"));
  folder.remove_file("link");
  EXPECT_FALSE(fs::is_symlink(place / "link"));
  EXPECT_EQ(read_text(elsewhere / "theirs/file"), "theirs");
  folder.folder("new")->remove_file("file");
  folder.remove_if_empty("new");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
  folder.flush();
}

TEST_F(FolderTest, OnlyOurOwnFilesInItAreOurs) {
  write_text(elsewhere / "ours.md", marked("ours.md", "text"));
  fs::create_symlink(elsewhere / "ours.md", place / "link.md");
  write_text(place / "ours.md", marked("ours.md", "text"));
  const Folder folder(place.path());
  EXPECT_TRUE(is_own_file(folder, "ours.md"));
  EXPECT_FALSE(is_own_file(folder, "link.md"));
  EXPECT_FALSE(is_own_file(folder, "file"));
  EXPECT_FALSE(is_own_file(folder, "none"));
}

class CopyTest : public FolderTest {
 protected:
  bool copy(
      const std::string& name, const std::function<bool()>& cancelled = [] { return false; }) {
    const Folder from(place.path());
    const RegularFile file(from, name);
    return copy_file({file, from.path_of(name)}, Folder(elsewhere.path()), name, cancelled);
  }
};

TEST_F(CopyTest, BytesHolesAndPermissions) {
  constexpr off_t kMegabyte = 1 << 20;
  std::string text(3 * kMegabyte + 5, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 256);
  {
    std::ofstream file(place / "holes");
    file.seekp(64 * kMegabyte) << text;
  }
  fs::resize_file(place / "holes", 128 * kMegabyte);
  fs::permissions(place / "holes", fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(copy("holes"));
  struct stat facts {};
  ASSERT_EQ(stat((elsewhere / "holes").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_size, 128 * kMegabyte);
  EXPECT_LT(facts.st_blocks * 512, 16 * kMegabyte);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  EXPECT_TRUE(read_text(elsewhere / "holes") == read_text(place / "holes"));
  write_text(place / "empty", "");
  EXPECT_TRUE(copy("empty"));
  EXPECT_EQ(fs::file_size(elsewhere / "empty"), 0U);
}

TEST_F(CopyTest, NothingIsReplacedAndNoLinkWrittenThrough) {
  write_text(elsewhere / "file", "theirs");
  EXPECT_TRUE(
      says(message_of<ConfigError>([&] { copy("file"); }), "file: cannot write: File exists"));
  fs::remove(elsewhere / "file");
  fs::create_symlink(elsewhere / "theirs/file", elsewhere / "file");
  EXPECT_TRUE(
      says(message_of<ConfigError>([&] { copy("file"); }), "file: cannot write: File exists"));
  EXPECT_EQ(read_text(elsewhere / "theirs/file"), "theirs");
}

TEST_F(CopyTest, ACancelledOneSaysSo) {
  write_text(place / "large", std::string(5 << 20, 'x'));
  int asked = 0;
  EXPECT_FALSE(copy("large", [&] { return ++asked == 3; }));
  EXPECT_EQ(fs::file_size(elsewhere / "large"), 1U << 20);
}

TEST_F(CopyTest, ATargetThatIsFullIsNamed) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const Folder devices("/dev");
  const Folder from(place.path());
  const RegularFile file(from, "file");
  EXPECT_TRUE(says(message_of<ConfigError>([&] {
                     copy_file({file, "the source"}, devices, "full", [] { return false; });
                   }),
                   "/dev/full: cannot write"));
}

TEST_F(CopyTest, ALinkIsTold) {
  fs::create_symlink("file", place / "to_file");
  const Folder from(place.path());
  const RegularFile link(from, "to_file");
  EXPECT_FALSE(link.is_open());
  EXPECT_TRUE(link.is_link());
}

}  // namespace
}  // namespace peakbench::files
