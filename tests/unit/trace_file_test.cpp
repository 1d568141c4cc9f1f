// trace.sqlite: round trip, the documented query, and every way a file can be unreadable.
#include "trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/database.h"
#include "base/errors.h"
#include "support/fake_trace.h"
#include "trace/lifetimes.h"

namespace peakbench::trace {
namespace {

using sqlite::Database;
using sqlite::Statement;

using testing::AllOf;
using testing::HasSubstr;

class TraceFile : public testing::Test {
 protected:
  TraceFile()
      : folder_(std::filesystem::temp_directory_path() /
                ("peakbench-trace-file-" + std::to_string(getpid()))),
        path_((folder_ / "trace.sqlite").string()) {
    std::filesystem::create_directories(folder_);
  }
  ~TraceFile() override { std::filesystem::remove_all(folder_); }

  std::string error_of_reading() const {
    try {
      read_trace(path_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  void execute(const std::string& sql) const {
    auto database = Database::create(path_);  // opens what is there
    database.execute(sql);
    database.close();
  }

  std::filesystem::path folder_;
  std::string path_;
};

// Every field differs from its default somewhere.
FakeTrace rich() {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 4096);
  fake.from({fake.frame("train.py", "<module>", 3), fake.frame("mödel.py", "forward", 7)});
  fake.trace().counts_build = true;
  fake.trace().counted_steps = {{0, 3}, {5, 5}};
  fake.named(Role::kParameter, "liné\"ar.weight", "[10, 25]", "fp32").alloc(1000, 1024);
  fake.forward(0).at("encoder.linear", "aten::mm").recompute(3);
  const auto hidden = fake.within({"epoch", "rollout"}).alloc(100, 512);
  fake.within({}).end_recompute().backward(0).in_update(true);
  fake.in("pinned").free(fake.alloc(50));
  fake.in("cuda:0").free_requested(hidden).free(hidden).out_of_memory(1 << 20);
  auto& events = fake.trace().events;
  for (std::size_t i = 0; i < events.size(); ++i) events[i].time_ns = static_cast<int>(i) * 10;
  events[1].stream = 2;
  events[2].address = 0xfedcba9876543210ULL;  // above 2^63
  for (auto& event : events)
    if (event.requested_bytes == 100) event.address = events[2].address;
  events[4].thread = 1;
  events[2].pool = 3;
  fake.trace().scopes = {{.event = 0},
                         {.event = 2, .phase = Phase::kForward, .step = 0},
                         {.event = 2, .kind = ScopeKind::kRecomputation},
                         {.event = 3, .kind = ScopeKind::kRecomputation, .ends = true},
                         {.event = 3, .phase = Phase::kOptimizerStep, .step = 0},
                         {.event = 3, .kind = ScopeKind::kModule},
                         {.event = 3, .kind = ScopeKind::kBackwardNode, .thread = 1},
                         {.event = 3, .kind = ScopeKind::kUpdate, .thread = 1},
                         {.event = 8, .kind = ScopeKind::kUpdate, .ends = true, .thread = 1},
                         {.event = 8, .kind = ScopeKind::kCapture}};
  return fake;
}

void expect_equal(const Trace& read, const Trace& written) {
  EXPECT_EQ(read.device, written.device);
  EXPECT_EQ(read.emulated, written.emulated);
  EXPECT_EQ(read.spaces, written.spaces);
  EXPECT_EQ(read.own_space, written.own_space);
  EXPECT_EQ(read.modules, written.modules);
  EXPECT_EQ(read.operators, written.operators);
  EXPECT_EQ(read.files, written.files);
  EXPECT_EQ(read.functions, written.functions);
  EXPECT_EQ(read.frames, written.frames);
  EXPECT_EQ(read.ranges, written.ranges);
  EXPECT_EQ(read.counts_build, written.counts_build);
  EXPECT_EQ(read.counted_steps, written.counted_steps);
  ASSERT_EQ(read.events.size(), written.events.size());
  for (std::size_t i = 0; i < read.events.size(); ++i) {
    const auto fields = [](const Event& e) {
      return std::tuple(e.kind, e.phase, e.in_update, e.in_recompute, e.space, e.step, e.module,
                        e.op, e.stream, e.recompute, e.thread, e.stack, e.range, e.pool, e.address,
                        e.requested_bytes, e.block_bytes, e.time_ns);
    };
    EXPECT_EQ(fields(read.events[i]), fields(written.events[i])) << "event " << i;
  }
  ASSERT_EQ(read.names.size(), written.names.size());
  for (std::size_t i = 0; i < read.names.size(); ++i) {
    const auto fields = [](const Name& n) {
      return std::tuple(n.event, n.role, n.name, n.shape, n.dtype);
    };
    EXPECT_EQ(fields(read.names[i]), fields(written.names[i]));
  }
  ASSERT_EQ(read.scopes.size(), written.scopes.size());
  for (std::size_t i = 0; i < read.scopes.size(); ++i) {
    const auto fields = [](const ScopeMark& m) {
      return std::tuple(m.event, m.kind, m.ends, m.phase, m.step, m.thread);
    };
    EXPECT_EQ(fields(read.scopes[i]), fields(written.scopes[i])) << "scope " << i;
  }
}

TEST_F(TraceFile, RoundTrip) {
  const auto fake = rich();
  write_trace(fake.trace(), path_);
  expect_equal(read_trace(path_), fake.trace());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(TraceFile, RoundTripOfAnEmptyEmulatedTrace) {
  FakeTrace fake("cuda:0");
  fake.emulated();
  write_trace(fake.trace(), path_);
  expect_equal(read_trace(path_), fake.trace());
}

TEST_F(TraceFile, ReplacesAnOlderFile) {
  write_trace(rich().trace(), path_);
  FakeTrace other;
  other.alloc(7);
  write_trace(other.trace(), path_);
  expect_equal(read_trace(path_), other.trace());
}

TEST_F(TraceFile, ATraceThatDoesNotAddUpIsKeptWithItsError) {
  FakeTrace fake;
  fake.free(fake.alloc(10)).free(0);
  write_trace(fake.trace(), path_);
  expect_equal(read_trace(path_), fake.trace());
  const auto database = Database::open_read_only(path_);
  Statement row(database, "SELECT problem, (SELECT count(*) FROM allocations) FROM trace");
  ASSERT_TRUE(row.next());
  EXPECT_THAT(row.text(0), HasSubstr("event 2"));
  EXPECT_EQ(row.integer(1), 0);
}

// The first ```sql block of docs/reference/trace.md.
std::string documented_query() {
  std::ifstream file(PEAKBENCH_SOURCE_DIR "/docs/reference/trace.md");
  std::stringstream content;
  content << file.rdbuf();
  const auto text = content.str();
  const std::string fence = "```sql\n";
  const auto begin = text.find(fence) + fence.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

TEST_F(TraceFile, TheDocumentedQueryAnswers) {
  FakeTrace fake("cuda:0");
  fake.in("cuda:1").own("cuda:1");
  fake.named(Role::kParameter, "a").alloc(1000, 1024);
  fake.named(Role::kParameter, "b").alloc(3000, 3072);
  fake.forward(0);
  const auto hidden = fake.alloc(5000, 5120);
  fake.in("cpu").alloc(9999);
  fake.in("cuda:1").backward(0).free(hidden);
  write_trace(fake.trace(), path_);
  const auto database = Database::create(path_);  // a person's own: with views
  Statement rows(database, documented_query());
  std::vector<std::pair<std::string, std::int64_t>> found;
  while (rows.next()) found.emplace_back(rows.text(0), rows.integer(1));
  EXPECT_THAT(found, testing::ElementsAre(testing::Pair("activation", 5120),
                                          testing::Pair("parameter", 4096)));
}

TEST_F(TraceFile, TheViewOfEventsSpeaksInWords) {
  write_trace(rich().trace(), path_);
  const auto database = Database::create(path_);  // a person's own: with views
  Statement row(database,
                "SELECT kind, phase, space, module, operator, range, pool FROM events_in_words "
                "WHERE id = 2");
  ASSERT_TRUE(row.next());
  EXPECT_EQ(row.text(0), "alloc");
  EXPECT_EQ(row.text(1), "forward");
  EXPECT_EQ(row.text(2), "cuda:0");
  EXPECT_EQ(row.text(3), "encoder.linear");
  EXPECT_EQ(row.text(4), "aten::mm");
  EXPECT_EQ(row.text(5), "rollout");
  EXPECT_EQ(row.integer(6), 3);
}

TEST_F(TraceFile, ARangeThatIsNotThereIsDamage) {
  write_trace(rich().trace(), path_);
  execute("UPDATE events SET range = 2 WHERE id = 2");
  EXPECT_THAT(error_of_reading(), HasSubstr("event 2: range 2"));
  execute("UPDATE events SET range = 0; UPDATE ranges SET parent = 1 WHERE id = 1");
  EXPECT_THAT(error_of_reading(), HasSubstr("outer range 1"));
}

TEST_F(TraceFile, MissingFile) {
  EXPECT_THAT(error_of_reading(), AllOf(HasSubstr(path_), HasSubstr("no such file"),
                                        HasSubstr("trace.sqlite of a case")));
}

TEST_F(TraceFile, Folder) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(error_of_reading(), HasSubstr("a folder"));
}

// Reading one might never end.
TEST_F(TraceFile, NoFile) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(error_of_reading(), HasSubstr("a named pipe, not a file"));
  std::filesystem::remove(path_);
  for (const char* device : {"/dev/zero", "/dev/full"}) {
    std::filesystem::create_symlink(device, path_);
    EXPECT_THAT(error_of_reading(), HasSubstr("a device, not a file"));
    std::filesystem::remove(path_);
  }
}

TEST_F(TraceFile, NotSqlite) {
  std::ofstream(path_) << "{\"run\": 1}";
  EXPECT_THAT(error_of_reading(), HasSubstr("not an SQLite file"));
  std::ofstream(path_, std::ios::trunc).close();
  EXPECT_THAT(error_of_reading(), HasSubstr("not an SQLite file"));
}

TEST_F(TraceFile, AnotherSqliteFile) {
  execute("CREATE TABLE recipes (id INTEGER)");
  EXPECT_THAT(error_of_reading(), HasSubstr("an SQLite file, but not a trace"));
}

TEST_F(TraceFile, CutShortAtAnyLength) {
  write_trace(rich().trace(), path_);
  const auto whole = std::filesystem::file_size(path_);
  for (const auto left : {whole - 1, whole / 2, std::uintmax_t{4096}, std::uintmax_t{100}}) {
    std::filesystem::resize_file(path_, left);
    EXPECT_THAT(error_of_reading(), HasSubstr("cut short")) << left;
  }
  std::filesystem::resize_file(path_, 10);
  EXPECT_THAT(error_of_reading(), HasSubstr("not an SQLite file"));
}

TEST_F(TraceFile, OfAnotherSchema) {
  write_trace(rich().trace(), path_);
  execute("UPDATE schema_version SET version = 9");
  EXPECT_THAT(error_of_reading(), AllOf(HasSubstr("newer Peakbench"), HasSubstr("schema 9"),
                                        HasSubstr("reads 8"), HasSubstr("update Peakbench")));
  execute("UPDATE schema_version SET version = 7");
  EXPECT_THAT(error_of_reading(), AllOf(HasSubstr("older Peakbench"), HasSubstr("schema 7"),
                                        HasSubstr("run the case again")));
}

TEST_F(TraceFile, Damaged) {
  const auto damaged = [&](const std::string& sql) {
    write_trace(rich().trace(), path_);
    execute(sql);
    return error_of_reading();
  };
  EXPECT_THAT(damaged("DELETE FROM events WHERE id = 2"), HasSubstr("event 2 is missing"));
  EXPECT_THAT(damaged("DELETE FROM events WHERE id = 7"), HasSubstr("7 events of 8"));
  EXPECT_THAT(damaged("UPDATE events SET kind = 99 WHERE id = 2"), HasSubstr("event kind 99"));
  EXPECT_THAT(damaged("UPDATE events SET space = 9 WHERE id = 2"), HasSubstr("space 9"));
  EXPECT_THAT(damaged("UPDATE events SET module = 9 WHERE id = 2"), HasSubstr("module 9"));
  EXPECT_THAT(damaged("UPDATE events SET stack = 2 WHERE id = 2"), HasSubstr("stack 2"));
  EXPECT_THAT(damaged("UPDATE frames SET parent = 1 WHERE id = 1"), HasSubstr("calling frame 1"));
  EXPECT_THAT(damaged("UPDATE frames SET file = 9"), HasSubstr("file 9"));
  EXPECT_THAT(damaged("UPDATE trace SET counts_build = 2"), HasSubstr("counts_build 2"));
  EXPECT_THAT(damaged("UPDATE counted_steps SET first = 3 WHERE id = 1"),
              HasSubstr("counted step 3"));
  EXPECT_THAT(damaged("UPDATE counted_steps SET last = -1"), HasSubstr("counted step -1"));
  EXPECT_THAT(damaged("DROP TABLE frames"), HasSubstr("frames"));
  EXPECT_THAT(damaged("UPDATE trace SET own_space = 9"), HasSubstr("own space 9"));
  EXPECT_THAT(damaged("UPDATE names SET event = 99"), HasSubstr("named event 99"));
  EXPECT_THAT(damaged("DELETE FROM schema_version"), HasSubstr("no schema version"));
  EXPECT_THAT(damaged("DELETE FROM trace"), HasSubstr("the table `trace` is empty"));
  EXPECT_THAT(damaged("DROP TABLE names"), HasSubstr("no such table: names"));
}

TEST_F(TraceFile, DamagedScopes) {
  const auto damaged = [&](const std::string& sql) {
    write_trace(rich().trace(), path_);
    execute(sql);
    return error_of_reading();
  };
  EXPECT_THAT(damaged("DROP TABLE scopes"), HasSubstr("no such table: scopes"));
  EXPECT_THAT(damaged("ALTER TABLE events DROP COLUMN thread"), HasSubstr("thread"));
  EXPECT_THAT(damaged("UPDATE events SET thread = -1 WHERE id = 3"),
              HasSubstr("event 3: thread -1"));
  EXPECT_THAT(damaged("DELETE FROM scopes WHERE id = 3"), HasSubstr("scope 3 is missing"));
  EXPECT_THAT(damaged("UPDATE scopes SET event = 9 WHERE id = 8"), HasSubstr("scope 8: event 9"));
  EXPECT_THAT(damaged("UPDATE scopes SET event = 1 WHERE id = 3"),
              HasSubstr("scope 3: before event 1, after one before event 2"));
  EXPECT_THAT(damaged("UPDATE scopes SET kind = 8 WHERE id = 2"),
              HasSubstr("scope 2: scope kind 8"));
  EXPECT_THAT(damaged("UPDATE scopes SET ends = 2 WHERE id = 2"), HasSubstr("scope 2: ends 2"));
  EXPECT_THAT(damaged("UPDATE scopes SET thread = 1 << 31 WHERE id = 2"),
              HasSubstr("scope 2: thread 2147483648"));
  EXPECT_THAT(damaged("UPDATE scopes SET phase = 8 WHERE id = 1"), HasSubstr("scope 1: phase 8"));
  EXPECT_THAT(damaged("UPDATE scopes SET phase = NULL WHERE id = 1"),
              HasSubstr("scope 1: a phase scope without a phase"));
  EXPECT_THAT(damaged("UPDATE scopes SET phase = 1 WHERE id = 2"),
              HasSubstr("scope 2: a phase in another scope"));
  EXPECT_THAT(damaged("UPDATE scopes SET step = 1 WHERE id = 1"),
              HasSubstr("scope 4: step 0 after step 1"));
  EXPECT_THAT(damaged("UPDATE scopes SET ends = 1 WHERE id = 2"),
              HasSubstr("scope 2: the end of what did not begin"));
  EXPECT_THAT(damaged("UPDATE scopes SET thread = 0 WHERE id = 8"),
              HasSubstr("scope 8: the end of what did not begin"));
  EXPECT_THAT(damaged("UPDATE scopes SET ends = 1 WHERE id = 5"),
              HasSubstr("scope 5: the end of what did not begin"));
  EXPECT_THAT(damaged("UPDATE scopes SET kind = 'module' WHERE id = 5"), HasSubstr("damaged"));
}

TEST_F(TraceFile, PagesOverwritten) {
  FakeTrace fake;
  for (int i = 0; i < 2000; ++i) fake.alloc(100);
  write_trace(fake.trace(), path_);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 * 5);
  file << std::string(static_cast<std::size_t>(std::filesystem::file_size(path_)) - 4096 * 5, 'x');
  file.close();
  EXPECT_THAT(error_of_reading(), HasSubstr("damaged"));
}

TEST_F(TraceFile, WhereItCannotBeWritten) {
  const auto nowhere = (folder_ / "missing" / "trace.sqlite").string();
  try {
    write_trace(rich().trace(), nowhere);
    FAIL() << "written";
  } catch (const HostError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr(nowhere), HasSubstr("cannot be written: No such file")));
  }
  std::filesystem::create_directories(path_);  // a folder where the file should be
  std::ofstream(path_ + "/full") << "x";
  EXPECT_THROW(write_trace(rich().trace(), path_), HostError);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

// SQLite's own words for it say nothing of the limit.
TEST_F(TraceFile, WhereItsSizeIsLimited) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 8192;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  try {
    write_trace(rich().trace(), path_);
  } catch (const HostError& error) {
    said = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(said, AllOf(HasSubstr(path_), HasSubstr("File too large"), HasSubstr("ulimit -f")));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

}  // namespace
}  // namespace peakbench::trace
