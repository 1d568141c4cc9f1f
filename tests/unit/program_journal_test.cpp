// What a traced process leaves, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "programs/journal.h"
#include "recording/journal.h"
#include "trace/lifetimes.h"
#include "trace/lines.h"
#include "trace/maxima.h"
#include "trace/trace_file.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;
using recording::Mark;
using recording::Record;
using recording::Tag;
using ::testing::HasSubstr;
using trace::EventKind;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    folder_ = fs::temp_directory_path() /
              ("journal." + std::to_string(getpid()) + "." +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    EXPECT_TRUE(writer_.open(folder_.string()));
    writer_.set_rank(3, recording::RankSource::kEnvironment);
    Record space{};
    space.tag = Tag::kSpace;
    space.named_space.name = writer_.text("cuda:0");
    writer_.add(space);
  }
  ~JournalTest() override { fs::remove_all(folder_); }

  // As CUDA's allocator is seen: what it counts before an allocation and after a free.
  void alloc(std::uint64_t address, std::int64_t bytes, std::int64_t block) {
    add(EventKind::kAlloc, address, bytes);
    total_ += block;
    current_ += block;
    blocks_[address] = block;
  }
  void alloc_in(const char* module, std::uint64_t address) {
    module_ = writer_.text(module);
    alloc(address, 1000, 1024);
    module_ = -1;
  }
  void free(std::uint64_t address) {
    current_ -= blocks_[address];
    add(EventKind::kFreeRequested, address, 0);
    add(EventKind::kFree, address, 0);
  }
  void add(EventKind kind, std::uint64_t address, std::int64_t bytes) {
    Record record{};
    record.tag = Tag::kEvent;
    record.kind = static_cast<std::uint8_t>(kind);
    record.event = {module_, pool_, address, bytes, -1, total_, current_, 0};
    writer_.add(record);
  }
  void name(std::uint64_t address, trace::Role role, const char* name) {
    Record record{};
    record.tag = Tag::kName;
    record.kind = static_cast<std::uint8_t>(role);
    record.name = {writer_.text(name), writer_.text("[2]"), address, writer_.text("float32")};
    writer_.add(record);
  }
  void range(const char* name, std::uint64_t number, std::int32_t stack) {
    Record record{};
    record.tag = Tag::kRange;
    record.range = {writer_.text(name), stack, number};
    writer_.add(record);
  }
  void end_range(std::uint64_t number) {
    Record record{};
    record.tag = Tag::kRange;
    record.range = {-1, -1, number};
    writer_.add(record);
  }
  void mark(Mark what) {
    Record record{};
    record.tag = Tag::kMark;
    record.kind = static_cast<std::uint8_t>(what);
    writer_.add(record);
  }
  void where(std::int32_t stack, const char* op) {
    Record record{};
    record.tag = Tag::kWhere;
    record.where = {stack, writer_.text(op), -1, -1};
    writer_.add(record);
  }
  void final() {
    Record record{};
    record.tag = Tag::kFinal;
    record.final = {total_, current_, 7000, 8000};
    writer_.add(record);
    writer_.end();
  }

  fs::path path() const { return folder_ / (std::to_string(getpid()) + recording::kSuffix); }
  Journal read(bool failed = false) const {
    return read_journal(path(), {.device = "cuda:0", .emulated = true, .failed = failed});
  }
  std::string error() const {
    try {
      read();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
  recording::JournalWriter writer_;
  std::int64_t total_ = 0, current_ = 0;
  std::int32_t module_ = -1, pool_ = 0;
  std::map<std::uint64_t, std::int64_t> blocks_;
};

// A buffer that one line makes from its last state in each of three steps, and a tensor that
// another line joins.
TEST_F(JournalTest, ABufferThatIsJoinedToItsLastStateHasAName) {
  const auto file = writer_.text("/home/me/train.py"), function = writer_.text("main");
  const auto line = writer_.frame(-1, file, function, 12);
  const auto other = writer_.frame(-1, file, function, 13);
  const auto join = [&](std::uint64_t from, std::uint64_t to, std::int32_t stack) {
    Record record{};
    record.tag = Tag::kMark;
    record.kind = static_cast<std::uint8_t>(Mark::kJoins);
    record.mark.storage = from;
    writer_.add(record);
    alloc(to, static_cast<std::int64_t>(to), static_cast<std::int64_t>(to));
    where(stack, "aten::cat");
  };
  alloc(0x1000, 512, 512);
  where(line, "aten::empty");
  for (const std::uint64_t state : {0x2000, 0x3000, 0x4000}) {
    mark(Mark::kForwardBegins);
    mark(Mark::kUpdateBegins);
    mark(Mark::kUpdateEnds);
    join(state - 0x1000, state, line);
    join(state, state + 0x800, other);
  }
  final();
  const auto trace = read().trace;
  std::vector<std::int64_t> named;
  for (const auto& one : trace.names) {
    EXPECT_EQ(one.name, "joined buffer 1");
    EXPECT_EQ(one.role, trace::Role::kKept);
    named.push_back(trace.events[one.event].requested_bytes);
  }
  EXPECT_THAT(named, ::testing::ElementsAre(0x2000, 0x3000, 0x4000));
}

TEST_F(JournalTest, BlocksAreAsLargeAsTheAllocatorCounts) {
  alloc(0x1000, 1000, 1024);
  alloc(0x2000, 3'000'000, 4'194'304);  // a block that was not split
  free(0x1000);
  alloc(0x1000, 10, 512);
  final();
  const auto journal = read();
  const auto& events = journal.trace.events;
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0].block_bytes, 1024);
  EXPECT_EQ(events[1].block_bytes, 4'194'304);
  EXPECT_EQ(events[2].block_bytes, 1024);
  EXPECT_EQ(events[4].block_bytes, 512);
  EXPECT_EQ(journal.disagreements, 0U);
  EXPECT_EQ(journal.rank, 3);
  const auto lifetimes = trace::lifetimes(journal.trace);
  EXPECT_EQ(trace::find_peak(journal.trace, lifetimes).allocated_bytes, 1024 + 4'194'304);
}

TEST_F(JournalTest, OfAKilledProgramTheLastBlockIsRounded) {
  alloc(0x1000, 1000, 1024);
  alloc(0x2000, 1025, 1536);
  const auto journal = read();
  EXPECT_EQ(journal.trace.events[1].block_bytes, 1536);
}

TEST_F(JournalTest, WhatTheAllocatorSaysOtherwiseIsCounted) {
  alloc(0x1000, 1000, 1024);
  current_ += 512;
  alloc(0x2000, 1000, 1024);
  final();
  EXPECT_EQ(read().disagreements, 2U);
}

TEST_F(JournalTest, AllocationsGetThePlaceThatIsToldOfThemLater) {
  const auto file =
      writer_.text("/home/me/a file with a name that is longer than one record has.py");
  const auto outer = writer_.frame(-1, file, writer_.text("<module>"), 7);
  const auto inner = writer_.frame(outer, file, writer_.text("forward"), 12);
  alloc(0x1000, 1000, 1024);
  alloc(0x2000, 1000, 1024);
  where(inner, "aten::mm");
  alloc(0x3000, 1000, 1024);
  final();
  const auto journal = read();
  const auto& trace = journal.trace;
  EXPECT_EQ(trace.events[0].stack, inner);
  EXPECT_EQ(trace.events[1].stack, inner);
  EXPECT_EQ(trace.events[2].stack, trace::kNone);
  EXPECT_EQ(trace.operators, std::vector<std::string>{"aten::mm"});
  ASSERT_EQ(trace.frames.size(), 2U);
  EXPECT_EQ(trace.frames[1].parent, 0);
  EXPECT_EQ(trace.files[static_cast<std::size_t>(trace.frames[1].file)],
            "/home/me/a file with a name that is longer than one record has.py");
  EXPECT_EQ(trace.frames[1].line, 12);
}

TEST_F(JournalTest, NamesBindToAllocationsAndInputsToWhatNoModelMade) {
  alloc(0x1000, 1000, 1024);
  name(0x1000, trace::Role::kParameter, "weight");
  name(0x1000, trace::Role::kParameter, "weight");
  alloc(0x2000, 1000, 1024);
  mark(Mark::kForwardBegins);
  alloc_in("encoder", 0x3000);
  name(0x2000, trace::Role::kInput, "");
  name(0x3000, trace::Role::kInput, "");
  name(0x4000, trace::Role::kBuffer, "never allocated");
  mark(Mark::kCallEnds);
  mark(Mark::kBackwardBegins);
  alloc(0x5000, 1000, 1024);
  name(0x5000, trace::Role::kGradient, "");
  name(0x5000, trace::Role::kGradient, "weight");
  mark(Mark::kBackwardEnds);
  final();
  const auto trace = read().trace;
  ASSERT_EQ(trace.names.size(), 3U);
  EXPECT_EQ(trace.names[0].event, 0U);
  EXPECT_EQ(trace.names[1].event, 1U);
  EXPECT_EQ(trace.names[1].role, trace::Role::kInput);
  EXPECT_EQ(trace.names[2].name, "weight");
  const auto lifetimes = trace::lifetimes(trace);
  EXPECT_EQ(lifetimes[2].category, trace::Category::kActivation);
}

TEST_F(JournalTest, RangesAreOfTheThreadAndGoWithItsEvents) {
  const auto mine = writer_.frame(-1, writer_.text("/home/me/train.py"), writer_.text("f"), 7);
  const auto torch =
      writer_.frame(mine, writer_.text("/env/lib/python3/site-packages/torch/optim/optimizer.py"),
                    writer_.text("step"), 9);
  range("rollout", 1, mine);
  alloc(0x1000, 1000, 1024);
  range("Optimizer.step#SGD.step", 2, torch);
  alloc(0x2000, 1000, 1024);
  end_range(2);
  end_range(1);
  alloc(0x3000, 1000, 1024);
  final();
  const auto trace = read().trace;
  ASSERT_EQ(trace.ranges.size(), 1U);
  EXPECT_EQ(trace.ranges[0].name, "rollout");
  EXPECT_EQ(trace.events[0].range, 0);
  EXPECT_EQ(trace.events[1].range, 0) << "PyTorch's own range is none";
  EXPECT_EQ(trace.events[2].range, trace::kNone);
}

TEST_F(JournalTest, WhatACaptureLeavesIsTheGraphs) {
  alloc(0x1000, 1000, 1024);
  mark(Mark::kCaptureEnds);  // of one that did not begin
  mark(Mark::kCaptureBegins);
  pool_ = 1;
  alloc(0x2000, 1000, 1024);
  pool_ = 0;
  mark(Mark::kCaptureEnds);
  alloc(0x3000, 1000, 1024);
  final();
  const auto trace = read().trace;
  const auto found = trace::lifetimes(trace);
  EXPECT_EQ(found[0].category, trace::Category::kKept);
  EXPECT_EQ(found[1].category, trace::Category::kGraphPool);
  EXPECT_EQ(trace.events[1].pool, 0);
  EXPECT_EQ(found[2].category, trace::Category::kKept);
}

TEST_F(JournalTest, WhatACollectiveWasGivenIsCommunication) {
  alloc(0x1000, 1000, 1024);
  name(0x1000, trace::Role::kParameter, "weight");
  mark(Mark::kForwardBegins);
  alloc(0x2000, 1000, 1024);
  name(0x1000, trace::Role::kCommunication, "");
  name(0x2000, trace::Role::kCommunication, "");
  free(0x2000);
  final();
  const auto found = trace::lifetimes(read().trace);
  EXPECT_EQ(found[0].category, trace::Category::kParameter);
  EXPECT_EQ(found[1].category, trace::Category::kCommunication);
}

TEST_F(JournalTest, OfAFailedProgramTheTraceEndsWhereMemoryRanOut) {
  alloc(0x1000, 1000, 1024);
  mark(Mark::kForwardBegins);
  add(EventKind::kOutOfMemory, 4096, 1 << 30);
  free(0x1000);
  EXPECT_EQ(read(true).trace.events.size(), 2U);
  EXPECT_EQ(read(false).trace.events.size(), 4U) << "it caught the error, and went on";
  mark(Mark::kForwardBegins);
  EXPECT_EQ(read(true).trace.events.size(), 4U) << "it failed of something else, later";
}

TEST_F(JournalTest, WhoAllocatesAgainHasCaughtTheFailure) {
  add(EventKind::kOutOfMemory, 4096, 1 << 30);
  alloc(0x1000, 1000, 1024);
  EXPECT_EQ(read(true).trace.events.size(), 2U);
}

TEST_F(JournalTest, ANewSpaceOfFreesOnlyIsNoTrouble) {
  free(0x9000);  // allocated before the tracer came
  final();
  EXPECT_TRUE(read().trace.events.empty());
  const auto recorded = read_journals(folder_, {.device = "cuda:0"});
  EXPECT_TRUE(recorded.journals.empty() && recorded.unread.empty() && recorded.any_silent);
}

TEST_F(JournalTest, DamagedFilesAreToldByName) {
  alloc(0x1000, 1000, 1024);
  mark(static_cast<Mark>(99));
  EXPECT_THAT(error(),
              ::testing::AllOf(HasSubstr(path().string()), HasSubstr("a mark of no kind")));
  fs::resize_file(path(), recording::kHeaderBytes + 70);
  EXPECT_THAT(error(), HasSubstr("cut short"));
  fs::resize_file(path(), 10);
  EXPECT_THAT(error(), HasSubstr("could not be begun"));
}

// Of a folder of several processes the others are read; a pipe is waited for by nobody.
TEST_F(JournalTest, ALostRecordingIsToldWithTheOthers) {
  alloc(0x1000, 1000, 1024);
  const auto whole = folder_ / "5.journal";
  fs::copy_file(path(), folder_ / "11.journal");
  fs::rename(path(), whole);
  std::ofstream(folder_ / "12.journal").close();
  fs::copy_file(whole, folder_ / "13.journal");
  fs::resize_file(folder_ / "13.journal", recording::kHeaderBytes + 70);
  mkfifo((folder_ / "14.journal").c_str(), 0600);
  fs::copy_file(whole, folder_ / "15.journal");
  std::fstream(folder_ / "15.journal", std::ios::in | std::ios::out | std::ios::binary)
      .write("\0\0\0\0\0\0\0\0", 8);
  const auto recorded = read_journals(folder_, {.device = "cuda:0"});
  EXPECT_EQ(recorded.journals.size(), 2U);
  std::vector<std::pair<int, std::string>> unread;
  for (const auto& one : recorded.unread) unread.emplace_back(one.pid, one.why);
  const std::string never =
      "its recording could not be begun, as the disk was full or a limit forbids larger files";
  EXPECT_EQ(unread,
            (std::vector<std::pair<int, std::string>>{
                {12, never}, {13, "it is cut short"}, {14, "it is no regular file"}, {15, never}}));
}

TEST_F(JournalTest, OneThatMemoryDoesNotSufficeForIsNotRead) {
  for (int i = 0; i < 100; ++i) alloc(0x1000 + 4096 * i, 1000, 1024);
  const auto records = static_cast<std::int64_t>(read().recorded_bytes);
  EXPECT_GE(records, 100 * 64);
  const auto why = [&](std::int64_t available) {
    const auto recorded = read_journals(folder_, {.available_bytes = available});
    return recorded.unread.empty() ? "" : recorded.unread[0].why;
  };
  EXPECT_EQ(why(3 * records), "");
  EXPECT_THAT(why(3 * records - 1), HasSubstr("of memory, and the machine has"));
  EXPECT_EQ(most_recorded_bytes(std::int64_t{8} << 30), std::int64_t{2} << 30);
  EXPECT_EQ(most_recorded_bytes(std::int64_t{1} << 40), std::int64_t{16} << 30);
}

// Whatever stands in any place of a journal: it is refused in words, or what is made of it is a
// trace that adds up and that every reader takes.
TEST_F(JournalTest, NoByteOfACorruptedOneDoesHarm) {
  const auto file = writer_.text("train.py"), function = writer_.text("main");
  const auto outer = writer_.frame(-1, file, function, 3);
  alloc(0x1000, 1000, 1024);
  where(writer_.frame(outer, file, function, 7), "aten::mm");
  name(0x1000, trace::Role::kParameter, "weight");
  name(0x1000, trace::Role::kCommunication, "bucket");
  mark(Mark::kForwardBegins);
  range("rollout", 1, outer);
  alloc_in("linear", 0x2000);
  where(outer, "aten::add");
  mark(Mark::kCaptureBegins);
  alloc(0x3000, 3000, 4096);
  mark(Mark::kCaptureEnds);
  end_range(1);
  mark(Mark::kBackwardBegins);
  mark(Mark::kRecomputationBegins);
  free(0x2000);
  mark(Mark::kRecomputationEnds);
  mark(Mark::kBackwardEnds);
  mark(Mark::kUpdateBegins);
  mark(Mark::kUpdateEnds);
  add(EventKind::kSegmentAlloc, 0x100000, 2 << 20);
  add(EventKind::kOutOfMemory, 1 << 20, 1 << 30);
  final();
  std::ifstream stream(path(), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(stream)), {});
  const auto end = recording::kHeaderBytes + static_cast<std::size_t>(read().recorded_bytes);
  std::size_t refused = 0, taken = 0;
  std::fstream bytes(path(), std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, char byte) {
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(byte);
    bytes.flush();
  };
  const auto look_at = [&](std::size_t at, char byte) {
    if (good[at] == byte) return;
    put(at, byte);
    std::optional<Journal> journal;
    try {
      journal = read(true);
    } catch (const ConfigError&) {
      ++refused;
      return;
    }
    ++taken;
    ASSERT_EQ(trace::why_not_readable(journal->trace), "") << at;
    const auto peak = trace::find_peak(journal->trace, trace::lifetimes(journal->trace));
    ASSERT_LE(peak.allocated_bytes, std::int64_t{1} << 50) << at;
    for (const auto& event : journal->trace.events)
      if (event.stack != trace::kNone) trace::own_line(journal->trace, event.stack);
  };
  for (std::size_t at = 0; at < end; ++at) {
    if (at == sizeof(recording::Header)) at = recording::kHeaderBytes;  // nothing is in between
    for (const int byte : {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff})
      look_at(at, static_cast<char>(byte));
    put(at, good[at]);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(taken, 1000U);
  for (auto size = end - 1; size > 0; size -= std::min<std::size_t>(size, 31)) {
    fs::resize_file(path(), size);
    EXPECT_NE(error(), "") << size;
  }
}

}  // namespace
}  // namespace peakbench::programs
