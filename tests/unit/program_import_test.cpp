// Memory snapshots of PyTorch as runs: what becomes of them, and of files that are none.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/errors.h"
#include "programs/import.h"
#include "programs/run_folder.h"
#include "support/fake_trace.h"
#include "support/scratch.h"
#include "trace/lines.h"
#include "trace/maxima.h"
#include "trace/snapshot_export.h"
#include "trace/timeline.h"
#include "trace/trace_file.h"

namespace peakbench {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::ScratchFolder;
using trace::EventKind;

// Pickles as Python writes them, a value at a time.
std::string text(const std::string& value) {
  return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
}
std::string number(std::uint64_t value) {
  std::string bytes("\x8a\x09", 2);
  for (int i = 0; i < 9; ++i) bytes += static_cast<char>(i < 8 ? value >> (8U * i) & 0xFFU : 0);
  return bytes;
}
std::string dict(const std::vector<std::string>& keys_and_values) {
  std::string bytes = "}(";
  for (const auto& one : keys_and_values) bytes += one;
  return bytes + "u";
}
std::string list(const std::vector<std::string>& items) {
  std::string bytes = "](";
  for (const auto& one : items) bytes += one;
  return bytes + "e";
}
std::string pickle(const std::string& value) { return "\x80\x04" + value + "."; }

std::string frame(const std::string& file, const std::string& function, std::uint64_t line) {
  return dict(
      {text("filename"), text(file), text("name"), text(function), text("line"), number(line)});
}
std::string entry(const std::string& action, std::uint64_t address, std::uint64_t bytes,
                  const std::vector<std::string>& frames = {}) {
  return dict({text("action"), text(action), text(action == "oom" ? "device_free" : "addr"),
               number(address), text("size"), number(bytes), text("stream"), number(0),
               text("time_us"), number(1000), text("frames"), list(frames)});
}
std::string block(std::uint64_t bytes, std::uint64_t requested, const std::string& state) {
  return dict({text("size"), number(bytes), text("requested_size"), number(requested),
               text("state"), text(state)});
}
std::string segment(std::uint64_t address, std::uint64_t bytes,
                    const std::vector<std::string>& blocks) {
  return dict({text("device"), number(0), text("address"), number(address), text("total_size"),
               number(bytes), text("stream"), number(0), text("blocks"), list(blocks)});
}
std::string snapshot(const std::vector<std::string>& segments,
                     const std::vector<std::string>& entries) {
  return pickle(
      dict({text("segments"), list(segments), text("device_traces"), list({list(entries)})}));
}

programs::ProgramRun imported(const std::string& path, const std::string& name = "") {
  return programs::import_snapshots(path, programs::snapshot_files(path), name);
}

class Import : public ::testing::Test {
 protected:
  programs::ProgramRun import(const std::string& bytes) {
    testing::write_text(folder_ / "mine.pickle", bytes);
    return imported(folder_ / "mine.pickle");
  }
  std::string refusal(const std::string& bytes) {
    return message_of<ConfigError>([&] { import(bytes); });
  }
  static trace::Peak peak(const programs::ProgramRun& run) {
    const auto& trace = run.processes.at(0).trace;
    return trace::find_peak(trace, trace::lifetimes(trace));
  }

  const ScratchFolder folder_;
};

constexpr std::uint64_t kMiB = 1 << 20, kAt = 0x7f0000000000;

TEST_F(Import, HasThePeakAndTheLinesOfTheSnapshot) {
  const std::vector<std::string> stack{frame("/lib/site-packages/torch/x.py", "f", 1),
                                       frame("a.cpp", "at::empty()", 0), frame("train.py", "g", 7)};
  const auto run = import(snapshot(
      {segment(kAt, 20 * kMiB, {block(20 * kMiB, 0, "inactive")})},
      {entry("segment_alloc", kAt, 20 * kMiB), entry("alloc", kAt, 3 * kMiB + 1, stack),
       entry("free_requested", kAt, 3 * kMiB + 1), entry("free_completed", kAt, 3 * kMiB + 1)}));
  EXPECT_EQ(run.name, "train.py");
  EXPECT_EQ(run.device, "cuda:0");
  EXPECT_EQ(peak(run).allocated_bytes, static_cast<std::int64_t>(3 * kMiB + 512));
  const auto& trace = run.processes[0].trace;
  EXPECT_TRUE(trace.counts_build);
  ASSERT_EQ(trace.frames.size(), 2U) << "C++'s is left out";
  EXPECT_EQ(trace::own_line(trace, trace.events[1].stack), (trace::SourceLine{"train.py", "g", 7}));
  EXPECT_EQ(run.settings.count("from_before"), 0U);
}

std::string note(const std::string& stage, const std::string& name, std::uint64_t time_us) {
  return dict({text("stage"), text(stage), text("name"), text(name), text("device"), number(0),
               text("time_us"), number(time_us)});
}

// Two steps of a loop whose ranges are not closed in order, as an annotation names no number.
TEST_F(Import, PhasesAndRangesAreThoseOfTheAnnotations) {
  const auto at = [](std::uint64_t time_us, std::uint64_t address) {
    return dict({text("action"), text("alloc"), text("addr"), number(address), text("size"),
                 number(512), text("stream"), number(0), text("time_us"), number(time_us),
                 text("frames"), list({})});
  };
  std::vector<std::string> entries{entry("segment_alloc", kAt, 20 * kMiB)};
  for (std::uint64_t i = 0; i < 7; ++i) entries.push_back(at(1010 + 10 * i, kAt + 512 * i));
  const auto run = import(pickle(dict(
      {text("segments"), list({}), text("device_traces"), list({list(entries)}),
       text("external_annotations"),
       list({note("START", "ProfilerStep#2", 1005), note("START", "## step 2 ##", 1006),
             note("START", "Optimizer.step#AdamW.step", 1020),
             note("END", "Optimizer.step#AdamW.step", 1020), note("END", "## step 2 ##", 1035),
             note("START", "Optimizer.zero_grad#AdamW.zero_grad", 1040),
             note("END", "Optimizer.zero_grad#AdamW.zero_grad", 1040),
             note("END", "ProfilerStep#2", 1045), note("START", "ProfilerStep#3", 1050),
             note("START", "Optimizer.step#AdamW.step", 1055),
             note("END", "Optimizer.step#AdamW.step", 1065), note("END", "never begun", 1066)})})));
  const auto& trace = run.processes[0].trace;
  ASSERT_EQ(trace.events.size(), 8U);
  std::vector<bool> updates;
  std::vector<std::int32_t> steps;
  std::vector<std::string> ranges;
  for (std::size_t i = 1; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    updates.push_back(event.phase == trace::Phase::kOptimizerStep);
    steps.push_back(event.step);
    ranges.push_back(event.range == trace::kNone ? "" : trace.ranges.at(event.range).name);
  }
  EXPECT_EQ(updates, (std::vector<bool>{false, true, false, false, false, true, false}));
  EXPECT_EQ(steps, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(ranges, (std::vector<std::string>{"## step 2 ##", "## step 2 ##", "## step 2 ##", "",
                                              "", "", ""}));
  EXPECT_EQ(trace::why_not_readable(trace), "");
}

// As _set_memory_metadata() leaves it, beside fields and entries that say nothing of a size.
TEST_F(Import, WhatTheProgramLabelledIsInARangeOfThatName) {
  const auto labelled = [](std::uint64_t time_us, std::uint64_t address, const std::string& label) {
    return dict({text("action"), text("alloc"), text("addr"), number(address), text("size"),
                 number(512), text("stream"), number(0), text("time_us"), number(time_us),
                 text("compile_context"), text("0/0"), text("user_metadata"), text(label),
                 text("frames"), list({})});
  };
  const auto other = dict({text("action"), text("annotate"), text("addr"), number(kAt)});
  const auto run = import(pickle(dict(
      {text("segments"), list({}), text("device_traces"),
       list({list({labelled(10, kAt, "kv cache"), other, labelled(20, kAt + 512, "kv cache"),
                   labelled(30, kAt + 1024, "")})}),
       text("host_traces"), list({list({labelled(10, kAt, "")})}), text("external_annotations"),
       list({note("START", "mine", 15), note("END", "mine", 25)})})));
  const auto& trace = run.processes[0].trace;
  ASSERT_EQ(trace.events.size(), 3U);
  EXPECT_EQ(trace::range_name(trace, trace.events[0].range), "kv cache");
  EXPECT_EQ(trace.ranges.at(trace.events[1].range).name, "kv cache");
  EXPECT_EQ(trace.ranges.at(trace.ranges.at(trace.events[1].range).parent).name, "mine");
  EXPECT_EQ(trace.events[2].range, trace::kNone);
}

TEST_F(Import, StepsOfTheProfilerNeedNoOptimizer) {
  const auto at = [](std::uint64_t time_us) {
    return dict({text("action"), text("alloc"), text("addr"), number(kAt + 512 * time_us),
                 text("size"), number(512), text("time_us"), number(time_us)});
  };
  const auto run = import(
      pickle(dict({text("segments"), list({}), text("device_traces"),
                   list({list({at(1), at(3), at(5)})}), text("external_annotations"),
                   list({note("START", "ProfilerStep#0", 2), note("END", "ProfilerStep#0", 4),
                         note("START", "ProfilerStep#1", 4), note("END", "ProfilerStep#1", 6)})})));
  std::vector<std::int32_t> steps;
  for (const auto& event : run.processes[0].trace.events) steps.push_back(event.step);
  EXPECT_EQ(steps, (std::vector<std::int32_t>{trace::kNone, 0, 1}));
}

TEST_F(Import, ABlockThatIsNotSplitIsLargerThanItWasAskedFor) {
  const auto of = [&](std::uint64_t bytes) {
    return peak(import(snapshot(
                    {}, {entry("segment_alloc", kAt, 20 * kMiB), entry("alloc", kAt, bytes)})))
        .allocated_bytes;
  };
  EXPECT_EQ(of(19 * kMiB + 512), static_cast<std::int64_t>(20 * kMiB));
  EXPECT_EQ(of(19 * kMiB), static_cast<std::int64_t>(20 * kMiB)) << "1 MiB is not split off";
  EXPECT_EQ(of(19 * kMiB - 512), static_cast<std::int64_t>(19 * kMiB - 512));
}

TEST_F(Import, WhatWasThereBeforeIsAllocatedAtTheBeginning) {
  const auto run = import(snapshot(
      {segment(kAt, 2 * kMiB,
               {block(1024, 1000, "active_allocated"), block(2 * kMiB - 1024, 0, "inactive")})},
      {entry("free_requested", kAt + 4096, 100), entry("free_completed", kAt + 4096, 100),
       entry("alloc", kAt + 8192, 512)}));
  EXPECT_EQ(peak(run).allocated_bytes, 1024 + 512);
  const auto& events = run.processes[0].trace.events;
  EXPECT_EQ(events[0].kind, EventKind::kSegmentAlloc);
  EXPECT_EQ(events[1].requested_bytes, 1000);
  EXPECT_EQ(events[2].requested_bytes, 100);
  EXPECT_THAT(run.settings.at("from_before").get<std::string>(),
              HasSubstr("2 allocations of 1536 bytes"));
}

TEST_F(Import, WithoutAHistoryItIsWhatWasThere) {
  const auto run =
      import(snapshot({segment(kAt, 2 * kMiB, {block(512, 7, "active_allocated")})}, {}));
  EXPECT_EQ(peak(run).allocated_bytes, 512);
  EXPECT_EQ(run.name, "mine");
  EXPECT_EQ(run.settings.count("from_before"), 0U);
  // As torch.cuda.memory_snapshot() returns it.
  EXPECT_EQ(
      peak(import(pickle(list({segment(kAt, 2 * kMiB, {block(512, 7, "active_allocated")})}))))
          .allocated_bytes,
      512);
  EXPECT_THAT(refusal(pickle(list({entry("alloc", kAt, 512)}))), HasSubstr("no memory snapshot"));
  EXPECT_THAT(run.settings.at("history").get<std::string>(), HasSubstr("was not on"));
}

// As `skip_actions` of _record_memory_history() leaves them out.
TEST_F(Import, EntriesThatWereSkippedAreReported) {
  const auto of = [&](const std::vector<std::string>& actions) {
    std::vector<std::string> entries;
    for (std::uint64_t i = 0; i < 2; ++i)
      for (const auto& action : actions) entries.push_back(entry(action, kAt, 512));
    return import(snapshot({}, entries));
  };
  const auto requested = of({"alloc", "free_requested"});
  EXPECT_EQ(requested.settings.count("lost"), 0U);
  EXPECT_EQ(requested.processes[0].trace.events.back().kind, EventKind::kFree);
  EXPECT_THAT(requested.settings.at("above_reserved").get<std::string>(),
              HasSubstr("512 bytes more are allocated than reserved"));
  EXPECT_THAT(of({"alloc"}).settings.at("lost").get<std::string>(),
              HasSubstr("the frees of 1 allocations"));
  EXPECT_EQ(of({"segment_alloc", "alloc", "free_completed", "segment_free"})
                .settings.count("above_reserved"),
            0U);
}

TEST_F(Import, OutOfMemoryIsTheOutcomeWhereNothingWasAllocatedAfterIt) {
  const std::vector<std::string> entries{entry("segment_alloc", kAt, 2 * kMiB),
                                         entry("alloc", kAt, 512), entry("oom", 1000, 80 * kMiB)};
  const auto run = import(snapshot({}, entries));
  EXPECT_EQ(run.status, records::Status::kOutOfMemory);
  EXPECT_EQ(run.out_of_memory->allocated_bytes, 512);
  EXPECT_EQ(run.out_of_memory->limit_bytes, static_cast<std::int64_t>(2 * kMiB + 1000));
  auto caught = entries;
  caught.push_back(entry("alloc", kAt + 512, 512));
  EXPECT_EQ(import(snapshot({}, caught)).status, records::Status::kOk);
}

TEST_F(Import, AFolderHasAFileARank) {
  trace::FakeTrace fake("cuda:0");
  fake.alloc(1000, 1024);
  std::filesystem::create_directory(folder_ / "ranks");
  for (const auto* name : {"ranks/rank_10.pickle", "ranks/rank_2.pickle"})
    trace::write_memory_snapshot(fake.trace(), trace::lifetimes(fake.trace()), folder_ / name);
  testing::write_text(folder_ / "ranks/notes.txt", "");
  const auto run = imported(folder_ / "ranks", "mine");
  ASSERT_EQ(run.processes.size(), 2U);
  EXPECT_EQ(run.processes[0].rank, 2);
  EXPECT_EQ(run.processes[1].rank, 10);
  EXPECT_EQ(run.name, "mine");
  EXPECT_EQ(peak(run).allocated_bytes, 1024);
  std::filesystem::create_directory(folder_ / "none");
  EXPECT_THAT(message_of<ConfigError>([&] { imported(folder_ / "none"); }),
              HasSubstr("none: holds no snapshot; expected files *.pickle"));
  EXPECT_THAT(message_of<ConfigError>([&] { imported(folder_ / "absent"); }),
              HasSubstr("absent: there is no such file"));
}

TEST_F(Import, RefusesWhatIsNoSnapshotInOneSentence) {
  const auto whole = snapshot({}, {entry("alloc", kAt, 512)});
  EXPECT_THAT(refusal(""), HasSubstr("mine.pickle: is empty"));
  EXPECT_THAT(refusal("hello"), HasSubstr("is no pickle of protocol 2 to 5"));
  EXPECT_THAT(refusal(R"({"traceEvents": []})"), HasSubstr("is JSON, as torch.profiler writes"));
  EXPECT_THAT(refusal("\x1f\x8b\x08"), HasSubstr("compressed by gzip: unpack it with gunzip"));
  EXPECT_THAT(refusal("\x80\x09."), HasSubstr("protocol 9; expected 2 to 5"));
  for (std::size_t at = 2; at < whole.size(); ++at)
    EXPECT_THAT(refusal(whole.substr(0, at)),
                ::testing::AnyOf(HasSubstr("ends in the middle, at byte"), HasSubstr("is empty")))
        << at;
  EXPECT_THAT(refusal(pickle("N")), HasSubstr("is a pickle, and no memory snapshot of PyTorch"));
  EXPECT_THAT(refusal(snapshot({}, {})), HasSubstr("holds no allocation"));
  EXPECT_THAT(refusal("\x80\x04\xff."), HasSubstr("has the opcode 0xff at byte 3"));
  EXPECT_THAT(refusal("\x80\x04"
                      "e."),
              HasSubstr("is damaged at byte 3"));
}

// As PyTorch writes stacks of C++ where libraries have no debugging symbols.
TEST_F(Import, ObjectFilesAreNobodysCode) {
  const std::vector<std::string> cpp{frame("??", "torch::unwind::unwind()", 0),
                                     frame("thread48.o", "execute_native_thread_routine", 0),
                                     frame("/opt/conda/bin/python3.12", "_start", 0),
                                     frame("eval.c.h", "_PyEval_EvalFrameDefault", 0)};
  const std::vector<std::string> script{frame("/bin/train", "main", 3),
                                        frame("/bin/train", "<module>", 9),
                                        frame("<frozen runpy>", "_run_code", 88)};
  const auto run =
      import(snapshot({}, {entry("alloc", kAt, 512, script), entry("alloc", kAt + 512, 512, cpp),
                           entry("alloc", kAt + 1024, 512, cpp)}));
  const auto& trace = run.processes[0].trace;
  EXPECT_EQ(run.name, "train") << "a script without an ending";
  EXPECT_EQ(trace.events[1].stack, trace::kNone);
  EXPECT_EQ(trace::own_line(trace, trace.events[0].stack),
            (trace::SourceLine{"/bin/train", "main", 3}));
}

// Closed forms of the rule in PyTorch's documentation: four steps between powers of two.
TEST_F(Import, SizesAreRoundedAsTheFilesSettingsSay) {
  const auto of = [&](const std::vector<std::pair<int, int>>& divisions, std::uint64_t bytes) {
    std::vector<std::string> fields;
    for (const auto& [from, count] : divisions) {
      fields.push_back(text(std::to_string(from)));
      fields.push_back(number(static_cast<std::uint64_t>(count)));
    }
    const auto settings = dict({text("roundup_power2_divisions"), dict(fields)});
    return peak(import(pickle(dict({text("segments"), list({}), text("device_traces"),
                                    list({list({entry("segment_alloc", kAt, 2048 * kMiB),
                                                entry("alloc", kAt, bytes)})}),
                                    text("allocator_settings"), settings}))))
        .allocated_bytes;
  };
  const std::vector<std::pair<int, int>> four{{1, 4}, {2, 4}};
  EXPECT_EQ(of(four, 33 * kMiB + 1), static_cast<std::int64_t>(40 * kMiB));
  EXPECT_EQ(of(four, 40 * kMiB), static_cast<std::int64_t>(40 * kMiB));
  EXPECT_EQ(of(four, 64 * kMiB), static_cast<std::int64_t>(64 * kMiB));
  EXPECT_EQ(of(four, 5000), 5120);
  EXPECT_EQ(of(four, 1200), 1536) << "too small for four steps";
  EXPECT_EQ(of({{1, 1}, {2, 8}}, kMiB + 1), static_cast<std::int64_t>(kMiB + 512));
  EXPECT_EQ(of({{1, 1}, {2, 8}}, 2 * kMiB + 1), static_cast<std::int64_t>(2 * kMiB + kMiB / 4));
  EXPECT_EQ(of({{1, 0}, {2, 0}}, 33 * kMiB + 1), static_cast<std::int64_t>(33 * kMiB + 512));
}

// A file of some bytes that refers to one thing many times would take memory and time without end.
TEST_F(Import, WhatStandsOnceIsTakenOnce) {
  const std::string memoize = "\x94", again("h\0", 2);
  const auto shared = [&](const std::string& first) { return list({first + memoize, again}); };
  const auto refused = HasSubstr("one and the same segment, block, history or annotation several");
  const auto annotated = [&](const std::string& annotations) {
    return refusal(pickle(dict({text("segments"), list({}), text("device_traces"), list({}),
                                text("external_annotations"), annotations})));
  };
  EXPECT_THAT(annotated(shared(note("START", "x", 1))), refused);
  const auto active = block(512, 512, "active_allocated");
  const auto with = [&](const std::string& segments, const std::string& histories) {
    return refusal(pickle(dict({text("segments"), segments, text("device_traces"), histories})));
  };
  EXPECT_THAT(with(shared(segment(kAt, 2 * kMiB, {active})), list({})), refused);
  const auto blocks = dict({text("address"), number(kAt), text("total_size"), number(2 * kMiB),
                            text("blocks"), shared(active)});
  EXPECT_THAT(with(list({blocks}), list({})), refused);
  EXPECT_THAT(with(list({}), shared(list({entry("alloc", kAt, 512)}))), refused);
  EXPECT_THAT(with(list({}), list({shared(entry("alloc", kAt, 512))})),
              HasSubstr("an entry in `device_traces` without an `action`"));
}

TEST_F(Import, ABlockAtNoAddressHasNoCategory) {
  const auto with = [&](const std::vector<std::string>& notes) {
    return peak(import(pickle(
                    dict({text("segments"),
                          list({segment(0, 2 * kMiB, {block(512, 512, "active_allocated")})}),
                          text("device_traces"), list({list({entry("alloc", kAt, 1024)})}),
                          text("external_annotations"), list(notes)}))))
        .allocated_bytes;
  };
  const auto begin = note("START", "Optimizer.step#SGD.step", 1001);
  EXPECT_EQ(with({begin, note("END", "Optimizer.step#SGD.step", 1002)}), 1024);
  EXPECT_EQ(with({begin}), 1024) << "the dump was in the step";
}

TEST_F(Import, ANegativeSizeIsRefused) {
  const std::string minus_one = "\x8a\x08" + std::string(8, '\xff');
  const auto broken = dict({text("size"), number(512), text("requested_size"), minus_one,
                            text("state"), text("active_allocated")});
  EXPECT_THAT(refusal(snapshot({segment(kAt, 2 * kMiB, {broken})}, {})),
              HasSubstr("an entry of -1 bytes (`requested_size`)"));
}

TEST_F(Import, ALongTextIsCutSoThatItsTraceCanBeRead) {
  const std::size_t size = 2 << 20;
  std::string length;
  for (unsigned i = 0; i < 4; ++i) length += static_cast<char>(size >> (8U * i) & 0xFFU);
  const auto long_frame = dict({text("filename"), "X" + length + std::string(size - 3, 'x') + ".py",
                                text("name"), text("f"), text("line"), number(1)});
  const auto run = import(snapshot({}, {entry("alloc", kAt, 512, {long_frame})}));
  EXPECT_EQ(trace::why_not_readable(run.processes[0].trace), "");
  EXPECT_LT(run.processes[0].trace.files.at(0).size(), 5000U);
}

using programs::RankFile;

programs::RankFiles ranks_of(std::vector<std::string> names) {
  return programs::ranks_of(std::move(names));
}

TEST(RanksOf, NumbersBehindRankAreSureOthersAreNot) {
  const auto sure =
      ranks_of({"memory_rank10_step6.pkl", "memory_rank2_step6.pkl", "x_RANK-0.pickle"});
  EXPECT_TRUE(sure.is_sure);
  EXPECT_EQ(sure.files, (std::vector<RankFile>{{0, "x_RANK-0.pickle"},
                                               {2, "memory_rank2_step6.pkl", 6},
                                               {10, "memory_rank10_step6.pkl", 6}}));
  EXPECT_EQ(ranks_of({"local_rank0_rank5.pkl", "local_rank0_rank4.pkl"}).files[0],
            (RankFile{4, "local_rank0_rank4.pkl"}));
  EXPECT_EQ(ranks_of({"local_rank1.pkl", "local_rank0.pkl"}).files[1],
            (RankFile{1, "local_rank1.pkl"}));
  const auto only = ranks_of({"snap_7_step30.pkl", "snap_11_step30.pkl"});
  EXPECT_FALSE(only.is_sure);
  EXPECT_EQ(only.files[1], (RankFile{11, "snap_11_step30.pkl", 30}));
  // Both numbers differ: the order, numbers as numbers.
  EXPECT_EQ(ranks_of({"a10_3.pkl", "a9_4.pkl"}).files[0], (RankFile{0, "a9_4.pkl"}));
  EXPECT_EQ(ranks_of({"mine_step6.pkl"}).files[0].rank, 0);
  EXPECT_EQ(ranks_of({"rank99999999999999999999.pkl"}).files[0].rank, 0);
}

// As Composer and Megatron-Bridge name them.
TEST(RanksOf, StepsOfARankAreNoRanks) {
  const auto composer =
      ranks_of({"rank0.5.memory_snapshot.pickle", "rank0.10.memory_snapshot.pickle",
                "rank1.5.memory_snapshot.pickle", "rank1.10.memory_snapshot.pickle"});
  EXPECT_TRUE(composer.is_sure);
  EXPECT_EQ(composer.files, (std::vector<RankFile>{{0, "rank0.10.memory_snapshot.pickle", 10},
                                                   {1, "rank1.10.memory_snapshot.pickle", 10}}));
  EXPECT_EQ(composer.earlier, (std::vector<RankFile>{{0, "rank0.5.memory_snapshot.pickle", 5},
                                                     {1, "rank1.5.memory_snapshot.pickle", 5}}));
  const auto twice = ranks_of({"epoch2_step1.pkl", "epoch1_step9.pkl", "epoch1_step10.pkl"});
  EXPECT_EQ(twice.files, (std::vector<RankFile>{{0, "epoch2_step1.pkl", 1}}));
  EXPECT_EQ(twice.earlier,
            (std::vector<RankFile>{{0, "epoch1_step9.pkl", 9}, {0, "epoch1_step10.pkl", 10}}));
  const auto mixed =
      ranks_of({"snapshot_0.pickle", "snapshot_1.pickle", "snapshot_oom_rank-2.pkl"});
  EXPECT_FALSE(mixed.is_sure);
  EXPECT_EQ(mixed.files[2], (RankFile{2, "snapshot_oom_rank-2.pkl"}));
  const auto both = message_of<std::invalid_argument>([] {
    ranks_of({"snapshot_1.pickle", "snapshot_oom_rank-1.pickle"});
  });
  EXPECT_THAT(both, HasSubstr("two files of rank 1, snapshot_1.pickle and snapshot_oom_rank-1"));
}

TEST(SafeName, TwoNamesStayTwo) {
  using programs::safe_name;
  EXPECT_EQ(safe_name("my train.py"), "my-train.py");
  EXPECT_EQ(safe_name("-.-"), "program");
  EXPECT_NE(safe_name("\u8bad\u7ec3.py"), safe_name("\u8bc4\u4f30.py"));
  EXPECT_NE(safe_name(std::string(70, 'a') + "1"), safe_name(std::string(70, 'a') + "2"));
  EXPECT_EQ(safe_name(std::string(70, 'a')).size(), 60U);
}

TEST_F(Import, RunsNothingOfAFile) {
  const auto marker = folder_ / "run";
  const auto call = text("touch " + marker) + "\x85R.";
  EXPECT_THAT(refusal("\x80\x02"
                      "cos\nsystem\n" +
                      call),
              HasSubstr("would run code (os.system) when it is unpickled"));
  EXPECT_THAT(refusal("\x80\x04" + text("posix") + text("system") + "\x93" + call),
              HasSubstr("would run code (posix.system)"));
  for (const std::string opcode : {"R", "b", "o", "\x81", "\x92", "\x82", "\x83", "\x84", "Q"})
    EXPECT_THAT(refusal("\x80\x04NN" + opcode + "."), HasSubstr("would run code"));
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(Import, CountsThatNoFileHoldsTakeNoMemory) {
  const std::string huge(8, '\x7f');
  EXPECT_THAT(refusal("\x80\x04\x8d" + huge), HasSubstr("ends in the middle"));
  EXPECT_THAT(refusal("\x80\x04\x8e" + huge), HasSubstr("ends in the middle"));
  EXPECT_THAT(refusal("\x80\x04X" + huge.substr(4)), HasSubstr("ends in the middle"));
  EXPECT_THAT(refusal("\x80\x04\x8b" + huge.substr(4)), HasSubstr("a number of 2139062143 bytes"));
  EXPECT_THAT(refusal("\x80\x04Nr" + huge.substr(4)), HasSubstr("is damaged"));
  EXPECT_THAT(refusal("\x80\x04j" + huge.substr(4)), HasSubstr("is damaged"));
  EXPECT_THAT(refusal("\x80\x04" + std::string(2000, '(')),
              HasSubstr("more than 1000 lists inside lists"));
  EXPECT_THAT(refusal(snapshot({}, {entry("alloc", kAt, std::uint64_t{1} << 62U)})),
              HasSubstr("which no device has"));
  EXPECT_THAT(refusal(snapshot({}, {entry("alloc", ~std::uint64_t{0}, 512)})),
              HasSubstr("beyond the last address"));
  const std::vector<std::string> many(3000, entry("segment_alloc", kAt, std::uint64_t{1} << 50U));
  EXPECT_THAT(refusal(snapshot({}, many)), HasSubstr("add up to more than any device has"));
}

}  // namespace
}  // namespace peakbench
