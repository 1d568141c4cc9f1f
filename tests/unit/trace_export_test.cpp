// The exports: what stock Python and PyTorch's own viewer module make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/errors.h"
#include "support/fake_trace.h"
#include "support/synthetic_trace.h"
#include "trace/chrome_export.h"
#include "trace/snapshot_export.h"

namespace peakbench::trace {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Export : public testing::Test {
 protected:
  Export()
      : folder_(std::filesystem::temp_directory_path() /
                ("peakbench-trace-export-" + std::to_string(getpid()))),
        path_((folder_ / "snapshot.pickle").string()) {
    std::filesystem::create_directories(folder_);
  }
  ~Export() override { std::filesystem::remove_all(folder_); }

  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }

  // The output of Python, standard error included; the test fails with it where Python does.
  std::string python(const std::string& arguments) const {
    const auto output = in_folder("output");
    const auto command =
        std::string("\"") + PEAKBENCH_PYTHON + "\" " + arguments + " > " + output + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << content(output);
    return content(output);
  }

  // PyTorch's own module; it needs nothing else of torch.
  std::string viewer(const std::string& arguments) const {
    return python(PEAKBENCH_TORCH_DIR "/cuda/_memory_viz.py " + arguments);
  }

  json load() const {
    return json::parse(
        python("-c \"import json, pickle, sys; "
               "print(json.dumps(pickle.load(open(sys.argv[1], 'rb'))))\" " +
               path_));
  }

  void write(const FakeTrace& fake) const {
    write_memory_snapshot(fake.trace(), lifetimes(fake.trace()), path_);
  }

  std::filesystem::path folder_;
  std::string path_;
};

constexpr std::uint64_t kBase = 0x7f0000000000;

FakeTrace card() {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 20 << 20);
  fake.at("encoder", "aten::empty").named(Role::kParameter, "encoder.weight", "[250]", "fp32");
  fake.alloc(1000, 1024);
  fake.forward(0).at("encoder", "aten::mm");
  const auto hidden = fake.alloc(3000, 3072);
  fake.backward(0).at("", "MmBackward0").free_requested(hidden).free(hidden);
  const auto waiting = fake.alloc(500, 512);
  fake.free_requested(waiting);
  fake.out_of_memory(1 << 30).trace().events.back().address = 12345;  // free on the card
  for (auto& event : fake.trace().events)
    event.time_ns = (&event - fake.trace().events.data()) * 2000;
  return fake;
}

std::vector<std::string> actions(const json& trace) {
  std::vector<std::string> found;
  for (const auto& entry : trace) found.push_back(entry.at("action"));
  return found;
}

TEST_F(Export, ASnapshotAsPyTorchWritesIt) {
  write(card());
  const auto snapshot = load();
  const auto& entries = snapshot.at("device_traces").at(0);
  EXPECT_THAT(actions(entries),
              ElementsAre("segment_alloc", "alloc", "alloc", "free_requested", "free_completed",
                          "alloc", "free_requested", "oom", "snapshot"));
  EXPECT_EQ(entries[1].at("addr"), kBase);
  EXPECT_EQ(entries[1].at("size"), 1000) << "requested bytes, as the allocator reports them";
  EXPECT_EQ(entries[1].at("category"), "parameter");
  EXPECT_EQ(entries[2].at("category"), "activation");
  EXPECT_EQ(entries[2].at("time_us"), 4);
  EXPECT_EQ(entries[7].at("device_free"), 12345);
  EXPECT_EQ(entries[8].at("category"), "unknown") << "MemoryViz.js needs one";
  const json frames = {{{"filename", "parameter"}, {"line", 0}, {"name", "encoder.weight"}},
                       {{"filename", "operator"}, {"line", 0}, {"name", "aten::empty"}},
                       {{"filename", "module"}, {"line", 0}, {"name", "encoder"}},
                       {{"filename", "peakbench"}, {"line", 0}, {"name", "build"}}};
  EXPECT_EQ(entries[1].at("frames"), frames);
  EXPECT_EQ(entries[2].at("frames").back(),
            json({{"filename", "step"}, {"line", 0}, {"name", "forward"}}));
  EXPECT_EQ(snapshot.at("peakbench").at("time_us"), "since the first event");
}

TEST_F(Export, SegmentsHoldWhatIsThereAtTheEnd) {
  write(card());
  const auto segments = load().at("segments");
  ASSERT_EQ(segments.size(), 1U);
  const auto& segment = segments[0];
  EXPECT_EQ(segment.at("device"), 0);
  EXPECT_EQ(segment.at("address"), kBase);
  EXPECT_EQ(segment.at("total_size"), 20 << 20);
  EXPECT_EQ(segment.at("allocated_size"), 1024);
  EXPECT_EQ(segment.at("active_size"), 1024 + 512);
  EXPECT_EQ(segment.at("segment_type"), "large");
  EXPECT_EQ(segment.at("segment_pool_id"), json::array({0, 0}));
  std::vector<std::string> states;
  std::int64_t bytes = 0;
  for (const auto& block : segment.at("blocks")) {
    states.push_back(block.at("state"));
    EXPECT_EQ(block.at("address"), kBase + static_cast<std::uint64_t>(bytes));
    bytes += block.at("size").get<std::int64_t>();
  }
  EXPECT_EQ(bytes, 20 << 20) << "blocks fill their segment";
  EXPECT_THAT(states,
              ElementsAre("active_allocated", "inactive", "active_pending_free", "inactive"));
}

TEST_F(Export, ExpandableSegmentsGrowAndShrink) {
  FakeTrace fake("cuda:0");
  constexpr std::int64_t kPage = 2 << 20;
  for (const int page : {1, 0, 2, 3, 5})
    fake.segment(EventKind::kSegmentMap, kPage, kBase + static_cast<std::uint64_t>(page * kPage));
  fake.alloc(3 * kPage);
  fake.segment(EventKind::kSegmentUnmap, kPage, kBase + static_cast<std::uint64_t>(3 * kPage));
  write(fake);
  const auto snapshot = load();
  ASSERT_EQ(snapshot.at("segments").size(), 2U);
  EXPECT_EQ(snapshot.at("segments")[0].at("total_size"), 3 * kPage);
  EXPECT_EQ(snapshot.at("segments")[0].at("is_expandable"), true);
  EXPECT_EQ(snapshot.at("segments")[1].at("total_size"), kPage);
  EXPECT_THAT(viewer("stats " + path_), HasSubstr("total_reserved: 8.0MiB"));
}

TEST_F(Export, AnEmulatedCardNumbersItsEventsAndSaysSo) {
  auto fake = card();
  fake.emulated();
  for (auto& event : fake.trace().events) event.time_ns = -1;
  write(fake);
  const auto snapshot = load();
  const auto& entries = snapshot.at("device_traces").at(0);
  for (std::size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].at("time_us"), i);
  EXPECT_THAT(snapshot.at("peakbench").at("time_us"), HasSubstr("the event's number"));
  EXPECT_THAT(entries.back().at("frames")[0].at("name"), HasSubstr("the event's number"));
}

TEST_F(Export, WithoutSegmentsStretchesOfAddressesAreSegments) {
  FakeTrace fake;  // cpu
  const auto freed = fake.alloc(100000);
  fake.free(freed);
  fake.alloc(70000);
  fake.trace().events.push_back(fake.trace().events.back());
  fake.trace().events.back().address = kBase + (std::uint64_t{1} << 30);
  fake.trace().events.back().requested_bytes = fake.trace().events.back().block_bytes = 5000;
  write(fake);
  const auto snapshot = load();
  const auto& segments = snapshot.at("segments");
  ASSERT_EQ(segments.size(), 2U) << "a GiB apart is another stretch";
  EXPECT_EQ(segments[0].at("address"), kBase);
  EXPECT_EQ(segments[0].at("total_size"), 42 * 4096) << "of all that was ever used, in pages";
  EXPECT_EQ(segments[1].at("total_size"), 2 * 4096);
  EXPECT_THAT(actions(snapshot.at("device_traces").at(0)),
              ElementsAre("segment_alloc", "segment_alloc", "alloc", "free_requested",
                          "free_completed", "alloc", "alloc", "snapshot"));
  EXPECT_THAT(viewer("stats " + path_), HasSubstr("total_allocated: 73.2KiB"));
}

TEST_F(Export, EverySpaceIsADevice) {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 4096).alloc(1000, 1024);
  fake.in("cpu").alloc(50);
  write(fake);
  const auto snapshot = load();
  EXPECT_EQ(snapshot.at("device_traces").size(), 2U);
  EXPECT_EQ(snapshot.at("segments")[1].at("device"), 1);
  EXPECT_EQ(snapshot.at("peakbench").at("spaces"), json::array({"cuda:0", "cpu"}));
  EXPECT_EQ(snapshot.at("peakbench").at("own_space"), 0);
}

TEST_F(Export, HostileNamesStayText) {
  FakeTrace fake;
  fake.at("a\"b\\c\n", "\xff\xfe").named(Role::kParameter, "</script>\xF0\x9F\x8E\x89").alloc(10);
  write(fake);
  const auto frames = load().at("device_traces")[0][1].at("frames");
  EXPECT_EQ(frames[0].at("name"), "</script>\xF0\x9F\x8E\x89");
  EXPECT_EQ(frames[1].at("name"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(frames[2].at("name"), "a\"b\\c\n");
  const auto chrome = in_folder("trace.json");
  write_chrome_trace(fake.trace(), lifetimes(fake.trace()), chrome);
  EXPECT_NO_THROW(json::parse(content(chrome)));
}

TEST_F(Export, TheStockViewerModuleAcceptsIt) {
  write(card());
  EXPECT_THAT(viewer("stats " + path_),
              AllOf(HasSubstr("segments: 1\n"), HasSubstr("total_reserved: 20.0MiB"),
                    HasSubstr("[a"), Not(HasSubstr("Error"))));
  EXPECT_THAT(viewer("trace " + path_),
              AllOf(HasSubstr("Device 0"), HasSubstr("a = cudaMalloc(139637976727552, 20.0MiB)"),
                    HasSubstr("b = a[0:1000.0B]"), HasSubstr("c = a[1536:2.9KiB]"),
                    HasSubstr("del c # 2.9KiB"), HasSubstr("# free completed for c 2.9KiB"),
                    HasSubstr("raise OutOfMemoryError # 1.0GiB requested, 12.1KiB free")));
  const auto page = in_folder("page.html");
  for (const std::string plot :
       {"trace_plot ", "trace_plot -s ", "trace_plot -f ", "segment_plot "}) {
    viewer(plot + path_ + " -o " + page);
    EXPECT_THAT(content(page), HasSubstr("add_local_files")) << plot;
  }
}

TEST_F(Export, TheStockViewerModuleAcceptsALongOne) {
  for (const bool on_card : {true, false}) {
    const auto trace = synthetic_trace(20'000, on_card);
    const auto found = lifetimes(trace);
    write_memory_snapshot(trace, found, path_);
    EXPECT_THAT(viewer("stats " + path_), HasSubstr("total_reserved"));
    const auto printed = viewer("trace " + path_);
    EXPECT_GT(std::count(printed.begin(), printed.end(), '\n'), 20'000);
    viewer("segment_plot " + path_ + " -o " + in_folder("page.html"));
  }
}

// The unpickler of MemoryViz.js takes protocols 2 to 4, and passes a whole batch as arguments of
// one call.
TEST_F(Export, OnlyOldOpcodesInSmallBatches) {
  const auto trace = synthetic_trace(5'000);
  write_memory_snapshot(trace, lifetimes(trace), path_);
  const auto found =
      json::parse(python("-c \"\nimport json, pickletools, sys\n"
                         "proto, batch, stack = 0, 0, []\n"
                         "for op, arg, at in pickletools.genops(open(sys.argv[1], 'rb').read()):\n"
                         "    proto = max(proto, op.proto)\n"
                         "    if op.name == 'MARK': stack.append(0)\n"
                         "    elif op.name in ('APPENDS', 'SETITEMS'):\n"
                         "        batch = max(batch, stack.pop())\n"
                         "        if op.name == 'SETITEMS' and stack: stack[-1] += 1\n"
                         "print(json.dumps({'proto': proto, 'batch': batch}))\n\" " +
                         path_));
  EXPECT_EQ(found.at("proto"), 2);
  EXPECT_EQ(found.at("batch"), 1000);
}

TEST_F(Export, WhereItCannotBeWritten) {
  const auto nowhere = in_folder("missing/snapshot.pickle");
  const auto fake = card();
  const auto found = lifetimes(fake.trace());
  const auto error = [&](auto&& write) -> std::string {
    try {
      write(fake.trace(), found, nowhere);
    } catch (const HostError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error(write_memory_snapshot), AllOf(HasSubstr(nowhere), HasSubstr("cannot write")));
  EXPECT_THAT(error(write_chrome_trace), AllOf(HasSubstr(nowhere), HasSubstr("cannot write")));
  std::filesystem::create_directories(in_folder("taken/full"));
  EXPECT_THROW(write_chrome_trace(fake.trace(), found, in_folder("taken")), HostError);
}

std::vector<json> of_kind(const json& trace, const std::string& kind) {
  std::vector<json> found;
  for (const auto& entry : trace.at("traceEvents"))
    if (entry.at("ph") == kind) found.push_back(entry);
  return found;
}

TEST_F(Export, ChromeCountersFollowTheCategories) {
  const auto fake = card();
  const auto path = in_folder("trace.json");
  write_chrome_trace(fake.trace(), lifetimes(fake.trace()), path);
  const auto trace = json::parse(content(path));
  std::map<std::string, std::vector<std::pair<double, std::int64_t>>> counters;
  for (const auto& entry : of_kind(trace, "C"))
    counters[entry.at("name")].emplace_back(entry.at("ts"), entry.at("args").at("bytes"));
  using testing::Pair;
  EXPECT_THAT(counters.at("activation"), ElementsAre(Pair(0, 0), Pair(4, 3000), Pair(6, 0)));
  EXPECT_THAT(counters.at("allocated"), ElementsAre(Pair(0, 0), Pair(2, 1024), Pair(4, 4096),
                                                    Pair(6, 1024), Pair(10, 1536), Pair(12, 1024)));
  EXPECT_THAT(counters.at("reserved"), ElementsAre(Pair(0, 20 << 20)));
  EXPECT_EQ(of_kind(trace, "i").at(0).at("ts"), 4);
  EXPECT_EQ(of_kind(trace, "i").at(0).at("args").at("allocated_bytes"), 4096);
  std::vector<std::string> phases;
  for (const auto& entry : of_kind(trace, "B")) phases.push_back(entry.at("name"));
  EXPECT_THAT(phases, ElementsAre("build", "forward", "backward"));
  EXPECT_EQ(trace.at("otherData").at("time"), "since the first event");
}

TEST_F(Export, ChromePhasesStandWithTheOwnSpace) {
  auto fake = card();
  fake.own("cuda:1");
  const auto path = in_folder("trace.json");
  write_chrome_trace(fake.trace(), lifetimes(fake.trace()), path);
  for (const auto& slice : of_kind(json::parse(content(path)), "B")) EXPECT_EQ(slice.at("pid"), 1);
}

TEST_F(Export, ChromeOfAnEmulatedCardCountsEvents) {
  auto fake = card();
  fake.emulated();
  const auto path = in_folder("trace.json");
  write_chrome_trace(fake.trace(), lifetimes(fake.trace()), path);
  const auto trace = json::parse(content(path));
  EXPECT_THAT(trace.at("otherData").at("time"), HasSubstr("one event is one microsecond"));
  EXPECT_EQ(trace.at("traceEvents")[0].at("args").at("name"), "cuda:0 (emulated)");
  EXPECT_EQ(of_kind(trace, "E").back().at("ts"), 8);
}

TEST_F(Export, NothingComesOfNothing) {
  const FakeTrace fake;
  write(fake);
  EXPECT_THAT(viewer("stats " + path_), HasSubstr("segments: 0"));
  write_chrome_trace(fake.trace(), {}, in_folder("trace.json"));
  EXPECT_NO_THROW(json::parse(content(in_folder("trace.json"))));
}

}  // namespace
}  // namespace peakbench::trace
