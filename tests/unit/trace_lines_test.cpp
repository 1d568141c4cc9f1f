// Lines of a program that hold what is alive.
#include <gtest/gtest.h>

#include <numeric>

#include "support/fake_trace.h"
#include "trace/lines.h"
#include "trace/maxima.h"

namespace peakbench::trace {
namespace {

constexpr const char* kTorch = "/env/lib/python3.12/site-packages/torch/nn/modules/linear.py";
constexpr const char* kLibrary = "/env/lib/python3.12/site-packages/transformers/trainer.py";

TEST(Lines, AreTheInnermostOfTheProgramsOwn) {
  FakeTrace fake("cuda:0");
  const auto main = fake.frame("/home/me/train.py", "<module>", 40);
  const auto model = fake.frame("/home/me/model.py", "forward", 12);
  const auto library = fake.frame(kLibrary, "train", 900);
  const auto torch = fake.frame(kTorch, "forward", 134);
  fake.forward(0);
  fake.from({main, library, model, torch}).alloc(1000, 1024);
  fake.from({main, library, torch}).alloc(500, 512);
  fake.from({library, torch}).alloc(200, 512);
  fake.from({torch}).alloc(2000, 2048);
  fake.from({}).alloc(10, 512);
  const auto& trace = fake.trace();
  const auto stack = [&](std::size_t event) { return own_line(trace, trace.events[event].stack); };
  EXPECT_EQ(stack(0), (SourceLine{"/home/me/model.py", "forward", 12}));
  EXPECT_EQ(stack(1), (SourceLine{"/home/me/train.py", "<module>", 40}));
  EXPECT_EQ(stack(2), (SourceLine{kLibrary, "train", 900}));
  EXPECT_EQ(stack(3), (SourceLine{kTorch, "forward", 134}));
  EXPECT_EQ(stack(4), SourceLine{});
}

TEST(Lines, OfWhatACompilerWroteAreALibrarys) {
  EXPECT_TRUE(is_library_file("/tmp/torchinductor_me/z4/cz4srkfu.py"));
  EXPECT_FALSE(is_library_file("/home/me/train.py"));
}

TEST(CallingLine, IsWhereTheModelWasCalledOrTheNextOutwards) {
  FakeTrace fake("cuda:0");
  const auto main = fake.frame("/home/me/train.py", "main", 40);
  const auto call = fake.frame(kTorch, "forward", 134);
  const auto module = fake.frame("/env/lib/python3.12/site-packages/torch/nn/modules/module.py",
                                 "_call_impl", 1790);
  const auto model = fake.frame("/home/me/model.py", "forward", 12);
  const auto block = fake.frame("/home/me/model.py", "block", 30);
  const auto loss = fake.frame("/home/me/losses.py", "loss_of", 7);
  const auto calling = [&](const std::vector<StackFrame>& frames) {
    fake.forward(0).from(frames).alloc(1000);
    return calling_line(fake.trace(), fake.trace().events.back().stack);
  };
  const SourceLine in_main{"/home/me/train.py", "main", 40};
  EXPECT_EQ(calling({main, module, model, module, block, call}), in_main);
  EXPECT_EQ(calling({main, loss, call}), in_main);
  EXPECT_EQ(calling({main, module, call}), SourceLine{}) << "it is the own line itself";
  EXPECT_EQ(calling({main, call}), SourceLine{});
  EXPECT_EQ(calling({call}), SourceLine{});
  EXPECT_EQ(calling({}), SourceLine{});
}

TEST(Lines, SumToWhatIsAllocated) {
  FakeTrace fake("cuda:0");
  const auto a = fake.frame("a.py", "f", 1), b = fake.frame("a.py", "f", 2);
  fake.build().from({a}).named(Role::kParameter, "weight").alloc(1000, 1024);
  fake.forward(0).from({b});
  const auto gone = fake.alloc(700, 1024);
  fake.free(gone);
  const auto hidden = fake.alloc(3000, 3072);
  fake.alloc(100, 512);
  fake.in("cpu").alloc(9000);
  fake.in("cuda:0").backward(0).from({}).alloc(1, 512);
  fake.free(hidden);
  const auto& trace = fake.trace();
  const auto found = lifetimes(trace);
  const auto peak = find_peak(trace, found);
  const auto lines = lines_at(trace, found, peak.event);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].line, (SourceLine{"a.py", "f", 2}));
  EXPECT_EQ(lines[0].bytes, 3072 + 512);
  EXPECT_EQ(lines[0].allocations, 2);
  EXPECT_EQ(lines[1].line, (SourceLine{"a.py", "f", 1}));
  EXPECT_EQ(lines[1].by_category[static_cast<std::size_t>(Category::kParameter)], 1000);
  EXPECT_EQ(lines[1].by_category[static_cast<std::size_t>(Category::kAllocatorSlack)], 24);
  EXPECT_EQ(lines[2].line, SourceLine{});
  EXPECT_EQ(lines[2].bytes, 512);
  const auto sum =
      std::accumulate(lines.begin(), lines.end(), std::int64_t{0},
                      [](std::int64_t bytes, const LineShare& line) { return bytes + line.bytes; });
  EXPECT_EQ(sum, peak.allocated_bytes);
}

TEST(Lines, APeakOfATraceThatCountsItsBuildMayBeInIt) {
  FakeTrace fake("cuda:0");
  fake.build();
  const auto loaded = fake.alloc(5000, 5120);
  fake.free(loaded);
  fake.forward(0).alloc(1000, 1024);
  EXPECT_EQ(find_peak(fake.trace(), lifetimes(fake.trace())).allocated_bytes, 1024);
  fake.trace().counts_build = true;
  const auto peak = find_peak(fake.trace(), lifetimes(fake.trace()));
  EXPECT_EQ(peak.allocated_bytes, 5120);
  EXPECT_EQ(peak.phase, Phase::kBuild);
}

TEST(Lines, FilesOfLibrariesAreThoseThatAreInstalled) {
  EXPECT_TRUE(is_library_file(kTorch));
  EXPECT_TRUE(is_library_file("/usr/lib/python3/dist-packages/six.py"));
  EXPECT_TRUE(is_library_file("/usr/lib/python3.11/contextlib.py"));
  EXPECT_EQ(library_file(kLibrary), "transformers/trainer.py");
  EXPECT_EQ(library_file("/usr/lib/python3.11/contextlib.py"), "python3.11/contextlib.py");
  EXPECT_EQ(library_file("/home/me/python/peakbench/bench.py"), "peakbench/bench.py");
  EXPECT_EQ(library_file("/home/me/train.py"), "/home/me/train.py");
  EXPECT_TRUE(is_library_file("<frozen importlib._bootstrap>"));
  EXPECT_TRUE(is_library_file("<ipython-input->"));
  EXPECT_FALSE(is_library_file("<ipython-input-3-1f0a2b>"));
  EXPECT_FALSE(is_library_file("/tmp/ipykernel_4711/2345678.py"));
  EXPECT_TRUE(is_library_file("/home/me/peakbench/python/peakbench/bench.py"));
  EXPECT_FALSE(is_library_file("/home/me/train.py"));
  EXPECT_FALSE(is_library_file("train.py"));
}

}  // namespace
}  // namespace peakbench::trace
