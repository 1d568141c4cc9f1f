// Somebody's PyTorch: what its files say, and libraries that are compiled for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "host/compiled_library.h"
#include "host/compiler.h"
#include "host/torch_in_use.h"
#include "support/plugin_file.h"
#include "support/scratch.h"

namespace peakbench::pytorch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const auto kNever = [] { return false; };

class Folder : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    chmod((folder_ / name).c_str(), mode);
    return folder_ / name;
  }

  const testing::ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

using ProgramFile = Folder;

TEST_F(ProgramFile, WithoutALoaderNothingIsPutUnderIt) {
  const auto why = why_not_preloaded(write("alone", testing::elf_bytes(".text", "code")));
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("alone is linked statically"));
}

TEST_F(ProgramFile, WhatIsNoProgramIsRunByAnother) {
  EXPECT_EQ(why_not_preloaded(write("train.py", "#!/usr/bin/env python3\n")), std::nullopt);
  EXPECT_EQ(why_not_preloaded(folder_ / "gone"), std::nullopt);
}

// Nor does it end us: under the address sanitizer, nothing outside of the file is read.
TEST_F(ProgramFile, ADamagedOneIsNotJudged) {
  const std::string whole = testing::elf_bytes(".dynamic", std::string(64, '\1'));
  for (std::size_t size = 0; size < whole.size(); ++size)
    why_not_preloaded(write("cut", whole.substr(0, size)));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = '\xff';
    why_not_preloaded(write("spoilt", bytes));
  }
}

TEST_F(ProgramFile, ThisOneIsLoadedDynamically) {
  EXPECT_EQ(why_not_preloaded("/proc/self/exe"), std::nullopt);
}

using InWorkingFolder = Folder;

// Python itself puts the working folder before its own modules.
TEST_F(InWorkingFolder, NoCodeRunsWhileTorchIsLookedFor) {
  for (const char* name : {"importlib", "os", "re", "collections"})
    write(std::string(name) + "/__init__.py", "open('ran', 'w')\n");
  write("scripts/torch/__init__.py", "open('ran', 'w')\n");
  const auto before = fs::current_path();
  fs::current_path(folder_);
  const auto found = torch_folder_of_python(PEAKBENCH_PYTHON, folder_ / "scripts", kNever);
  const auto of_code = torch_folder_of_command({PEAKBENCH_PYTHON, "-c", "pass"}, kNever);
  fs::current_path(before);
  EXPECT_EQ(found, folder_ / "scripts/torch");
  EXPECT_NE(of_code, folder_ / "scripts/torch");
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

// A PyTorch that is nothing but its files, and compilers that are scripts.
class Compiled : public Folder {
 protected:
  void SetUp() override {
    write("torch/share/cmake/Torch/TorchConfig.cmake", "");
    write("sources/values/whole.cpp", "// nothing\n");
    setenv("XDG_CACHE_HOME", (folder_ / "home/cache").c_str(), 1);
    compiler(R"(for word; do out=$word; done; echo once >> $0.calls; echo library > "$out")");
    torch_ = {.version = "2.99.0+cpu",
              .cuda = "",
              .hip = "",
              .git_version = "",
              .folder = folder_ / "torch"};
    sources_ = {.kind = "values",
                .folder = folder_ / "sources",
                .whole = "values/whole.cpp",
                .libraries = {"libc10.so"}};
    mask_ = umask(022);
  }
  void TearDown() override { umask(mask_); }

  // The last argument is what it is to write to.
  void compiler(const std::string& script) const {
    setenv("CXX", write("compiler", "#!/bin/sh\n" + script + "\n", 0755).c_str(), 1);
  }
  CompiledLibrary compile(const std::function<bool()>& cancelled = [] { return false; }) const {
    return compiled_library(torch_, sources_, cancelled);
  }
  fs::path cache() const { return folder_ / "home/cache/peakbench/values"; }
  std::size_t calls() const {
    std::ifstream file(folder_ / "compiler.calls");
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  static unsigned mode_of(const fs::path& path) {
    struct stat facts {};
    return stat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
  }

  TorchInUse torch_;
  LibrarySources sources_;
  mode_t mask_ = 0;
};

TEST_F(Compiled, IsKept) {
  const auto library = compile();
  EXPECT_EQ(library.problem, "");
  EXPECT_EQ(library.path.parent_path(), cache());
  EXPECT_THAT(library.path.filename().string(),
              ::testing::MatchesRegex(R"(2\.99\.0\+cpu-[0-9a-f]+\.so)"));
  EXPECT_EQ(compile().path, library.path);
  EXPECT_EQ(calls(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), {}), 1) << "and nothing else";
}

TEST_F(Compiled, AnewFromOtherSources) {
  const auto before = compile().path;
  write("sources/values/value.h", "// changed\n");
  EXPECT_NE(compile().path, before);
  EXPECT_EQ(calls(), 2u);
}

TEST_F(Compiled, ForThisUserAlone) {
  umask(0);
  const auto library = compile();
  for (const char* each :
       {"home", "home/cache", "home/cache/peakbench", "home/cache/peakbench/values"})
    EXPECT_EQ(mode_of(folder_ / each), 0700u) << each;
  EXPECT_EQ(mode_of(library.path), 0700u);
}

TEST_F(Compiled, AFolderOfOursThatIsOpenToOthersIsClosed) {
  compile();
  chmod(cache().c_str(), 0777);
  chmod(cache().parent_path().c_str(), 0755);
  compile();
  EXPECT_EQ(mode_of(cache()), 0700u);
  EXPECT_EQ(mode_of(cache().parent_path()), 0700u);
  EXPECT_EQ(mode_of(folder_ / "home/cache"), 0700u);
  chmod((folder_ / "home/cache").c_str(), 0755);
  compile();
  EXPECT_EQ(mode_of(folder_ / "home/cache"), 0755u) << "what is above is the user's own affair";
}

TEST_F(Compiled, OneThatOthersCanWriteIsNotLoaded) {
  const auto library = compile().path;
  chmod(library.c_str(), 0777);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(compile().path, library);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(library.string() +
                        " can be written by others: it is not loaded, and compiled anew\n"));
  EXPECT_EQ(calls(), 2u);
  EXPECT_EQ(mode_of(library), 0700u);
}

TEST_F(Compiled, OneOfAnotherUsersIsNotLoaded) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const auto library = compile().path;
  ASSERT_EQ(chown(library.c_str(), 12345, 12345), 0);
  EXPECT_EQ(why_not_loaded(library), "is another user's");
  EXPECT_EQ(compile().path, library);
  EXPECT_EQ(calls(), 2u);
  ASSERT_EQ(chown(cache().c_str(), 12345, 12345), 0);
  EXPECT_EQ(compile().problem,
            cache().string() + ": is another user's; set XDG_CACHE_HOME to a folder of your own");
}

TEST_F(Compiled, ALinkIsNotLoaded) {
  const auto library = compile().path;
  fs::rename(library, folder_ / "elsewhere.so");
  fs::create_symlink(folder_ / "elsewhere.so", library);
  EXPECT_EQ(compile().path, library);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(library)));
}

TEST_F(Compiled, WithAProgramBeforeTheCompiler) {
  compiler(R"(for word; do out=$word; done; echo library > "$out")");
  setenv("CXX", ("env " + (folder_ / "compiler").string()).c_str(), 1);
  EXPECT_EQ(compile().problem, "");
  setenv("CXX", "no-such-program g++", 1);
  EXPECT_FALSE(is_command("no-such-program g++"));
  EXPECT_FALSE(is_command(" "));
}

TEST_F(Compiled, OneAtHandIsNeverCompiled) {
  const LibraryBuilds builds{.built = folder_ / "built.so",
                             .built_for = "2.98.0",
                             .workers = folder_ / "workers",
                             .in_worker = "lib/values.so",
                             .libraries = folder_ / "libraries",
                             .sources = sources_};
  write("built.so", "");
  const auto at_hand = [&] { return library_at_hand(torch_, builds); };
  EXPECT_FALSE(at_hand());
  EXPECT_FALSE(fs::exists(folder_ / "home")) << "nothing is made";
  const auto library = library_for(torch_, builds, [] { return false; }).path;
  ASSERT_TRUE(at_hand());
  EXPECT_EQ(at_hand()->path, library);
  EXPECT_EQ(at_hand()->torch_version, "2.99.0+cpu");
  chmod(library.c_str(), 0777);
  EXPECT_FALSE(at_hand()) << "others can write to it";
  EXPECT_EQ(calls(), 1u);

  write("workers/torch-2.99.0+cpu/lib/values.so", "");
  EXPECT_EQ(at_hand()->path, folder_ / "workers/torch-2.99.0+cpu/lib/values.so");
  torch_.version = "2.98.0";
  EXPECT_EQ(at_hand()->path, folder_ / "built.so");
  EXPECT_EQ(library_at_hand(std::nullopt, builds)->torch_version, "2.98.0");
  EXPECT_EQ(calls(), 1u);
}

// A wheel's libraries: one for a release, its CUDA and its C++ ABI.
TEST_F(Compiled, OneBundledForTheReleaseIsNeverCompiled) {
  const LibraryBuilds builds{.built = folder_ / "lib/values.so",
                             .built_for = "2.98.0",
                             .workers = folder_ / "workers",
                             .in_worker = "lib/values.so",
                             .libraries = folder_ / "libraries",
                             .sources = sources_};
  torch_.version = "2.6.0+cu124";
  torch_.cuda = "12.4";
  torch_.git_version = "1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340";
  write("libraries/torch-2.6.0-1eba9b3aa3c4-cu12-abi1/values.so", "");
  const auto path = [&] {
    const auto found = library_at_hand(torch_, builds);
    return found ? found->path.lexically_relative(folder_).string() : "";
  };
  EXPECT_EQ(path(), "libraries/torch-2.6.0-1eba9b3aa3c4-cu12-abi1/values.so");
  torch_.version = "2.6.0+cu126";
  torch_.cuda = "12.6";
  EXPECT_EQ(path(), "libraries/torch-2.6.0-1eba9b3aa3c4-cu12-abi1/values.so");
  EXPECT_EQ(library_at_hand(torch_, builds)->torch_version, "2.6.0+cu126");
  torch_.cuda = "13.0";
  EXPECT_EQ(path(), "") << "another CUDA";
  torch_.cuda = "";
  EXPECT_EQ(path(), "") << "no CUDA";
  torch_.cuda = "12.6";
  torch_.git_version[0] = '2';
  EXPECT_EQ(path(), "") << "built from another revision";
  torch_.git_version = "";
  EXPECT_EQ(path(), "");
  torch_.git_version = "1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340";
  torch_.version = "2.6.1";
  EXPECT_EQ(path(), "") << "another release";
  torch_.version = "2.6.0";
  fs::create_directories(torch_.folder / "share/cmake/Torch");
  std::ofstream(torch_.folder / "share/cmake/Torch/TorchConfig.cmake")
      << "set(TORCH_CXX_FLAGS \"-D_GLIBCXX_USE_CXX11_ABI=0\")\n";
  EXPECT_EQ(path(), "") << "another C++ ABI";
  EXPECT_EQ(calls(), 0u);
  const auto unknown = library_at_hand(std::nullopt, builds);
  EXPECT_NE(unknown->problem.find("not known before it starts"), std::string::npos);
}

TEST_F(Compiled, WhyNot) {
  compiler("echo 'a.cpp:1: error: no such type' >&2; echo more >&2; exit 1");
  EXPECT_EQ(compile().problem,
            (folder_ / "compiler").string() + " could not compile them: error: no such type");
  compiler("exit 0");
  EXPECT_EQ(compile().problem, (folder_ / "compiler").string() + " could not compile them: ");
  torch_.cuda = "13.0";
  unsetenv("CUDA_HOME");
  if (!fs::exists("/usr/local/cuda/include/cuda_runtime_api.h")) {
    EXPECT_THAT(compile().problem, HasSubstr("no cuda_runtime_api.h next to it"));
  }
  torch_.cuda = "";
  setenv("XDG_CACHE_HOME", "", 1);
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  unsetenv("HOME");
  EXPECT_THAT(compile().problem, HasSubstr("set XDG_CACHE_HOME or HOME"));
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

TEST_F(Compiled, OneThatPrintsWithoutEndIsEnded) {
  compiler("yes");
  EXPECT_EQ(compile().problem, (folder_ / "compiler").string() + " printed more than 16 MiB");
}

TEST_F(Compiled, AnInterruptionLeavesNothingBehind) {
  // A compiler as they are: it has begun to write, and started another program.
  compiler(
      R"(for word; do out=$word; done; echo part > "$out"; sleep 600 & echo $! > $0.pid; wait)");
  const auto pid_file = folder_ / "compiler.pid";
  const auto library = compile([&] { return fs::exists(pid_file) && fs::file_size(pid_file) > 0; });
  EXPECT_EQ(library.problem, "interrupted");
  EXPECT_TRUE(fs::is_empty(cache()));
  pid_t sleeper = 0;
  std::ifstream(pid_file) >> sleeper;
  ASSERT_GT(sleeper, 0);
  const auto stat_file = "/proc/" + std::to_string(sleeper) + "/stat";
  const auto is_running = [&] {
    std::string text;
    std::ifstream file(stat_file);
    std::getline(file, text);
    return !text.empty() && text.find(") Z") == std::string::npos;
  };
  for (int i = 0; i < 100 && is_running(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_running());
}

TEST_F(Compiled, WhatAKilledCallLeftIsTakenAway) {
  const auto library = compile().path;
  fs::remove(library);
  write("home/cache/peakbench/values/" + library.filename().string() + ".tmp-4711", "part");
  write("home/cache/peakbench/values/" + library.filename().string() + ".lock", "");
  EXPECT_EQ(compile().path, library);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), {}), 1);
}

TEST_F(Compiled, OnceWhereTwoBeginAtATime) {
  compiler(
      R"(for word; do out=$word; done; echo once >> $0.calls; sleep 1; echo library > "$out")");
  ::testing::internal::CaptureStderr();
  CompiledLibrary first;
  std::thread other([&] { first = compile(); });
  const auto second = compile();
  other.join();
  EXPECT_EQ(first.path, second.path);
  EXPECT_EQ(first.problem + second.problem, "");
  EXPECT_EQ(calls(), 1u);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("peakbench: waiting for another process, which compiles the values library "
                        "for PyTorch 2.99.0+cpu\n"));
}

}  // namespace
}  // namespace peakbench::pytorch
