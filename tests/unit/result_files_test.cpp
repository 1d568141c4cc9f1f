// Files as they are written, whose they are, and what a run.json may name.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/own_file.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "records/case.h"
#include "records/run_files.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench::records {
namespace {

namespace fs = std::filesystem;
using files::AtomicFile;
using files::is_own_file;
using files::marked;
using files::read_json_file;
using files::refuse_strangers;
using files::RegularFile;
using files::remove_unfinished;
using files::write_file_atomically;
using testing::message_of;
using testing::read_text;
using testing::ScratchFolder;
using testing::write_text;

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST(AtomicFile, IsThereWholeOrNotAtAll) {
  const ScratchFolder folder;
  const auto path = folder / "page.html";
  for (const char* text : {"first", "second"}) {
    AtomicFile file(path);
    file.write(text);
    EXPECT_NE(read_text(path), text);
    file.finish();
    EXPECT_EQ(read_text(path), text);
    EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"page.html"});
  }
  { AtomicFile(path).write("third"); }
  EXPECT_EQ(read_text(path), "second");
}

// As after a second Ctrl-C, or SIGKILL.
TEST(AtomicFile, AProcessThatEndsLeavesNothing) {
  const ScratchFolder folder;
  const int nameless = open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
  close(nameless);
  const auto path = folder / "run.json";
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write("half of it");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(AtomicFile, FailuresLeaveWhatWasThere) {
  const ScratchFolder folder;
  fs::create_directory(folder / "full");
  const auto said = [](const std::string& path) {
    return message_of<ConfigError>([&] {
      AtomicFile file(path);
      file.write("text");
      file.finish();
    });
  };
  EXPECT_NE(said(folder / "full").find("Is a directory; name a file"), std::string::npos);
  EXPECT_NE(said(folder / "none/x").find("its folder must exist"), std::string::npos);
  EXPECT_NE(said(folder / std::string(300, 'x')).find("shorter name"), std::string::npos);
  EXPECT_NE(said("/dev/full").find("No space left on device; free some space"), std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"full"});
}

TEST(AtomicFile, ALinkStaysOneAndSoDoesADevice) {
  const ScratchFolder folder;
  write_text(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  write_file_atomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "real"), "new");
  write_file_atomically("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(RemoveUnfinished, TakesWhatNobodyWritesAndNoStrangersFile) {
  const ScratchFolder folder;
  const std::set<std::string> kept{"run.json",         "run.json.tmp",      "run.json.tmp-",
                                   "run.json.tmp-12-", "run.json.tmp-12-x", "run.json.tmp-12-1.bak",
                                   "notes.tmp-12-0",   "run.json.tmp-99-0", "run.json.tmp-1-1"};
  for (const auto& name : kept) write_text(folder / name, "text");
  for (const char* name : {"run.json.tmp-12", "run.json.tmp-12-0", "run.json.tmp-12-34"})
    write_text(folder / name, "half");
  fs::remove(folder / "run.json.tmp-1-1");
  fs::create_symlink("run.json", folder / "run.json.tmp-1-1");
  const int writer = open((folder / "run.json.tmp-99-0").c_str(), O_WRONLY);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  remove_unfinished(folder.path(), {"run.json"});
  EXPECT_EQ(names_in(folder.path()), kept);
  close(writer);
  remove_unfinished(folder / "none", {"run.json"});
}

TEST(OwnFile, AMarkThatFits) {
  const ScratchFolder folder;
  for (const char* name : {"a.html", "a.md", "a.svg", "a.txt", "a.json", "b.json"}) {
    const std::string text = std::string(name) == "a.json" ? "{\n  \"a\": 1\n}\n" : "text\n";
    const auto path = folder / name;
    write_text(path, marked(name, text));
    EXPECT_TRUE(is_own_file(path)) << read_text(path);
    for (std::size_t at = 0; at < read_text(path).size(); ++at) {
      auto changed = read_text(path);
      changed[at] ^= 1;
      write_text(folder / "changed", changed);
      EXPECT_FALSE(is_own_file(folder / "changed")) << changed;
    }
    write_text(folder / "longer", read_text(path) + "and more");
    EXPECT_FALSE(is_own_file(folder / "longer"));
    write_text(folder / "without", text);
    EXPECT_FALSE(is_own_file(folder / "without"));
  }
  EXPECT_EQ(read_json_file(folder / "a.json")["a"], 1);
  fs::create_symlink("a.html", folder / "link.html");
  EXPECT_FALSE(is_own_file(folder / "link.html"));
  EXPECT_FALSE(is_own_file(folder / "none"));
  EXPECT_FALSE(is_own_file(folder.path()));
  EXPECT_FALSE(is_own_file("/dev/null"));
}

TEST(OwnFile, StrangersAreNamed) {
  const ScratchFolder folder;
  write_text(folder / "ours.md", marked("ours.md", "text"));
  refuse_strangers(folder.path(), {"ours.md", "none.md"});
  write_text(folder / "theirs.md", "text");
  const auto said = [&](const char* name) {
    return message_of<ConfigError>([&] { refuse_strangers(folder.path(), {name}); });
  };
  EXPECT_NE(said("theirs.md").find("theirs.md: is in the way: it was not written by Peakbench"),
            std::string::npos);
  write_text(folder / "ours.md", marked("ours.md", "text") + "\nmy own words");
  EXPECT_NE(said("ours.md").find("it was changed since"), std::string::npos);
}

TEST(RunPaths, Names) {
  for (const char* good : {"a", "vit-l-16-layers=2-0a1b2c3d", "a..b", "a b", "ü"})
    EXPECT_TRUE(is_file_name(good)) << good;
  for (const std::string bad : {"", ".", "..", "a/b", "/a", ".hidden", "-rf", "a\nb", "a\x1b[2J"})
    EXPECT_FALSE(is_file_name(bad)) << bad;
  EXPECT_FALSE(is_file_name(std::string("a\0b", 3)));
  EXPECT_FALSE(is_file_name(std::string(201, 'x')));
  for (const char* good : {"a", "cases/x/trace.sqlite", "./a", "a..b/c"})
    EXPECT_TRUE(is_path_inside(good)) << good;
  for (const char* bad : {"", "/a", "..", "../a", "a/../../b", "a/..", "a\nb"})
    EXPECT_FALSE(is_path_inside(bad)) << bad;
}

TEST(RunPaths, ReadersRefuseThem) {
  for (const char* slug : {"../settings", "", ".bashrc"}) {
    auto json = nlohmann::json(to_json(testing::example_run()));
    json["cases"][0]["slug"] = slug;
    EXPECT_NE(message_of<RunFileError>([&] { run_from_json(json); }).find("/cases/0/slug"),
              std::string::npos);
  }
  for (const char* path : {"../x", "/x", "a/../../x"}) {
    auto json = nlohmann::json(to_json(testing::example_run()));
    json["cases"][0]["ranks"][0]["trace"] = path;
    EXPECT_NE(message_of<RunFileError>([&] { run_from_json(json); }).find("/cases/0/ranks/0/trace"),
              std::string::npos);
  }
}

TEST(RunPaths, TheTraceOfACase) {
  const ScratchFolder folder, elsewhere;
  auto result = testing::example_case();
  const auto wanted = folder / headline_rank(result).trace;
  EXPECT_EQ(trace_file(result, folder.path()), wanted);  // not there: for readers to say
  EXPECT_EQ(trace_file(result, ""), "");
  fs::create_directories(fs::path(wanted).parent_path());
  write_text(wanted, "trace");
  EXPECT_EQ(trace_file(result, folder.path()), wanted);
  fs::create_directory_symlink(folder.path(), elsewhere / "link");
  EXPECT_EQ(trace_file(result, elsewhere / "link"),
            elsewhere / "link/" + headline_rank(result).trace);
  const auto said = [&] {
    return message_of<RunFileError>([&] { trace_file(result, folder.path()); });
  };
  fs::remove(wanted);
  ASSERT_EQ(mkfifo(wanted.c_str(), 0600), 0);
  EXPECT_NE(said().find("is a named pipe, not a file"), std::string::npos);
  fs::remove(wanted);
  write_text(elsewhere / "secret", "trace");
  fs::create_symlink(elsewhere / "secret", wanted);
  EXPECT_NE(said().find("leads outside the run's folder"), std::string::npos);
  fs::remove_all(folder / "cases");
  fs::create_directory_symlink(elsewhere.path(), folder / "cases");
  EXPECT_NE(said().find("leads outside"), std::string::npos);
  result.ranks[0].trace = "../x";
  EXPECT_NE(said().find("leads outside"), std::string::npos);
  EXPECT_EQ(headline_rank(result).trace, "../x");
  result.ranks.clear();
  EXPECT_EQ(trace_file(result, folder.path()), "");
  EXPECT_EQ(headline_rank(result).trace, "");
  EXPECT_FALSE(headline_rank(result).memory);
}

TEST(RegularFiles, AreReadInOrderAndAnywhere) {
  const ScratchFolder folder;
  write_text(folder / "file", "0123456789");
  RegularFile file(folder / "file");
  ASSERT_TRUE(file.is_open());
  EXPECT_EQ(file.error(), 0);
  EXPECT_EQ(file.size(), 10u);
  std::string text(4, ' ');
  EXPECT_EQ(file.read(text.data(), 4), 4u);
  EXPECT_EQ(file.read_at(6, text.data(), 4), 4u);
  EXPECT_EQ(text, "6789");
  EXPECT_EQ(file.read(text.data(), 4), 4u);
  EXPECT_EQ(text, "4567");
  EXPECT_EQ(file.read(text.data(), 4), 2u);
  EXPECT_EQ(file.read(text.data(), 4), 0u);
  EXPECT_EQ(file.read_at(8, text.data(), 4), 2u);
  EXPECT_EQ(file.read_at(10, text.data(), 4), 0u);
}

void make_socket(const ScratchFolder& folder, const std::string& name) {
  const auto before = fs::current_path();
  fs::current_path(folder.path());  // a socket's name is short
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  const int number = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(number);
  fs::current_path(before);
}

TEST(RegularFiles, OthersAreNotOpened) {
  const ScratchFolder folder;
  make_socket(folder, "socket");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_directory(folder / "folder");
  for (const std::string& path :
       {folder / "socket", folder / "pipe", folder / "folder", std::string("/dev/zero")}) {
    const RegularFile file(path);
    EXPECT_FALSE(file.is_open()) << path;
    EXPECT_EQ(file.error(), 0) << path;
    EXPECT_EQ(file.is_folder(), path == folder / "folder") << path;
  }
  EXPECT_EQ(RegularFile(folder / "none").error(), ENOENT);
  EXPECT_EQ(RegularFile(folder / "pipe/none").error(), ENOTDIR);
}

TEST(RegularFiles, LinksAreFollowedUnlessRefused) {
  const ScratchFolder folder;
  write_text(folder / "file", "text");
  fs::create_symlink("file", folder / "link");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_TRUE(RegularFile(folder / "link").is_open());
  EXPECT_EQ(RegularFile(folder / "loop").error(), ELOOP);
  const RegularFile refused(folder / "link", RegularFile::Links::kRefuse);
  EXPECT_FALSE(refused.is_open());
  EXPECT_EQ(refused.error(), 0);
}

TEST(Utf8, IsToldAndShown) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("r\u00e9sultats"));
  EXPECT_FALSE(is_utf8("r\xe9sultats"));
  EXPECT_EQ(escaped_bytes("r\xe9\n"), "r\\xe9\\x0a");
}

}  // namespace
}  // namespace peakbench::records
