// What a worker prints and what it says of its progress, however much it is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "host/worker_output.h"
#include "support/scratch.h"

namespace peakbench::process {
namespace {

using namespace peakbench::testing;

class KeptOutputTest : public ::testing::Test {
 protected:
  KeptOutputTest() : file_(open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  ~KeptOutputTest() override { close(file_); }
  std::string path() const { return scratch / "log"; }

  ScratchFolder scratch;
  int file_;
};

TEST_F(KeptOutputTest, ALittleIsKeptWholeAndAtOnce) {
  KeptOutput kept(file_);
  kept.add("one\n");
  EXPECT_EQ(read_text(path()), "one\n");
  kept.add("two\n");
  kept.finish();
  EXPECT_EQ(read_text(path()), "one\ntwo\n");
  EXPECT_EQ(kept.last_words(), "one\ntwo\n");
  EXPECT_EQ(kept.error(), 0);
}

TEST_F(KeptOutputTest, NothingIsLeftOutUpToBothLimits) {
  std::string all;
  for (std::size_t i = 0; all.size() < kKeptHead + kKeptTail; ++i) all += std::to_string(i) + "\n";
  all.resize(kKeptHead + kKeptTail);
  KeptOutput kept(file_);
  for (std::size_t at = 0; at < all.size(); at += 99'991) kept.add(all.substr(at, 99'991));
  kept.finish();
  EXPECT_TRUE(read_text(path()) == all);
}

TEST_F(KeptOutputTest, MoreLosesItsMiddle) {
  KeptOutput kept(file_);
  kept.add(std::string(kKeptHead, 'a') + std::string(12345, 'b') + std::string(kKeptTail, 'c'));
  kept.finish();
  EXPECT_TRUE(read_text(path()) ==
              std::string(kKeptHead, 'a') +
                  "\n[12345 bytes left out: a log keeps the beginning and the end, 8 MiB each]\n" +
                  std::string(kKeptTail, 'c'));
}

TEST_F(KeptOutputTest, AFullLogTakesTheLastWords) {
  ftruncate(file_, static_cast<off_t>(kKeptHead + kKeptTail));
  KeptOutput kept(file_);
  kept.add(std::string(1 << 20, 'a') + "the last words");
  kept.finish();
  const auto log = read_text(path());
  EXPECT_LT(log.size(), kKeptHead + kKeptTail + 66'000);
  EXPECT_TRUE(log.ends_with("the last words"));
}

TEST(KeptOutput, AnErrorIsKeptAndLosesNoLastWords) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  KeptOutput kept(full);
  kept.add("the last words");
  kept.finish();
  close(full);
  EXPECT_EQ(kept.error(), ENOSPC);
  EXPECT_EQ(kept.last_words(), "the last words");
}

class ProgressLinesTest : public ::testing::Test {
 protected:
  ProgressLinesTest() {
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    lines = std::make_unique<ProgressLines>(ends[0]);
  }
  ~ProgressLinesTest() override {
    close(ends[0]);
    close(ends[1]);
  }
  void say(const std::string& text) {
    ASSERT_EQ(write(ends[1], text.data(), text.size()), text.size());
  }
  std::vector<std::string> read() {
    std::vector<std::string> found;
    open = lines->read_some([&](const std::string& line) { found.push_back(line); });
    return found;
  }

  int ends[2];
  bool open = true;
  std::unique_ptr<ProgressLines> lines;
};

using Found = std::vector<std::string>;

TEST_F(ProgressLinesTest, ComeWholeAndInOrder) {
  say("a\nb\nc");
  EXPECT_EQ(read(), (Found{"a", "b"}));
  EXPECT_EQ(read(), Found{});
  EXPECT_TRUE(open);
  say("d\n\n");
  EXPECT_EQ(read(), (Found{"cd", ""}));
}

TEST_F(ProgressLinesTest, OfManyTheFirstAndTheNewest) {
  for (int i = 0; i < 1000; ++i) say(std::to_string(i) + "\n");
  const auto found = read();
  EXPECT_LE(found.size(), 20u);
  EXPECT_EQ(found.front(), "0");
  EXPECT_EQ(found.back(), "999");
}

TEST_F(ProgressLinesTest, TooLongOnesAreDroppedAlone) {
  say("a\n" + std::string(5000, 'x'));
  EXPECT_EQ(read(), Found{"a"});
  say(std::string(5000, 'x') + "\nb\n");
  EXPECT_EQ(read(), Found{"b"});
}

TEST_F(ProgressLinesTest, TheEndIsTold) {
  say("a");
  close(ends[1]);
  EXPECT_EQ(read(), Found{});
  EXPECT_FALSE(open);
}

}  // namespace
}  // namespace peakbench::process
