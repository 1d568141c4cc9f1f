// Settings of the CUDA allocator: as people type them, as cases have them.
#include "base/errors.h"
#include "planning/device.h"
#include "planning/plan.h"
#include "support/fake_plugins.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using records::Axis;
using testing::fake_plugins;
using testing::message_of;

using Texts = std::vector<std::string>;

Plan plan_with(const Texts& devices, const Texts& settings) {
  Request request;
  request.ablation = false;
  request.lists[Axis::kModel] = {"vit-l-16"};
  request.lists[Axis::kStrategy] = {"baseline"};
  request.lists[Axis::kDevice] = devices;
  request.lists[Axis::kAllocator] = settings;
  return make_plan(request, fake_plugins());
}

Texts ids(const Plan& plan) {
  Texts found;
  for (const auto& one : plan.cases) found.push_back(one.spec.id);
  return found;
}

TEST(Allocator, HasOneForm) {
  for (const char* text : {"", " ", "default", "expandable_segments:False", "backend:native",
                           "per_process_memory_fraction:1.0", "large_segment_size_mb:20"})
    EXPECT_EQ(normal_allocator(text), "") << text << " is PyTorch's own";
  for (const char* text : {"expandable_segments:True", "expandable_segments=on",
                           " expandable_segments : 1 ", "backend:native,expandable_segments:true"})
    EXPECT_EQ(normal_allocator(text), "expandable_segments:True") << text;
  EXPECT_EQ(normal_allocator("max_split_size_mb:0128,garbage_collection_threshold:0.80"),
            "garbage_collection_threshold:0.8,max_split_size_mb:128");
  EXPECT_EQ(normal_allocator("roundup_power2_divisions:[256:1, 512:02,>:4],max_split_size_mb=64"),
            "max_split_size_mb:64,roundup_power2_divisions:[256:1,512:2,>:4]");
  EXPECT_EQ(normal_allocator("roundup_power2_divisions:8"), "roundup_power2_divisions:8");
}

TEST(Allocator, WrongOnesSayWhatIsRight) {
  const auto error = [](const std::string& text) {
    return message_of<ConfigError>([&] { normal_allocator(text); });
  };
  EXPECT_EQ(error("expandable_segment:True"),
            "unknown allocator setting \"expandable_segment\"; did you mean "
            "\"expandable_segments\"?");
  EXPECT_EQ(error("expandable_segments"),
            "allocator setting \"expandable_segments\": expected KEY:VALUE, like "
            "expandable_segments:True");
  EXPECT_EQ(error("expandable_segments:maybe"),
            "allocator setting expandable_segments:maybe: expected True or False");
  for (const char* value : {"19", "-1", "x", "64MiB", "99999999999999999999"})
    EXPECT_EQ(error(std::string("max_split_size_mb:") + value),
              std::string("allocator setting max_split_size_mb:") + value +
                  ": expected an integer of 20 or more, in MiB");
  EXPECT_EQ(error("max_split_size_mb:50,large_segment_size_mb:100"),
            "allocator setting max_split_size_mb:50: expected an integer of 100 or more, in MiB "
            "(large_segment_size_mb)");
  for (const char* value : {"0", "1", "nan", ""})
    EXPECT_EQ(error(std::string("garbage_collection_threshold:") + value),
              std::string("allocator setting garbage_collection_threshold:") + value +
                  ": expected a number between 0 and 1");
  for (const char* value : {"3", "0", "[256:3]", "[>:4]", "[>:1,256:2]", "[256]", "[]", "[256:1"})
    EXPECT_TRUE(
        error(std::string("roundup_power2_divisions:") + value)
            .ends_with(": expected a power of two, or a list of sizes in MiB with one each, "
                       "like [256:1,512:2,>:4]"))
        << value;
  EXPECT_EQ(error("expandable_segments:True,expandable_segments:False"),
            "allocator setting expandable_segments is given twice");
  EXPECT_EQ(error("expandable_segments:True,"),
            "allocator setting \"\": expected KEY:VALUE, like expandable_segments:True");
  EXPECT_EQ(error("backend:cudaMallocAsync"),
            "allocator setting backend:cudaMallocAsync cannot be measured: Peakbench traces every "
            "allocation in PyTorch's native allocator, and this backend leaves them to the driver, "
            "which reports none. Leave `backend` out");
  EXPECT_EQ(error("pinned_use_background_threads:True"),
            "allocator setting pinned_use_background_threads is about speed, addresses or pinned "
            "host memory and changes nothing that a card's allocator takes: leave it out");
}

TEST(Allocator, IsAnAxisOfCards) {
  const std::string card = "emulated:h100-80gb";
  const auto plan = plan_with({"cpu", card}, {"", "expandable_segments=on", "default"});
  EXPECT_EQ(ids(plan),
            (Texts{"vit-l-16/baseline/cpu/fp32/b1", "vit-l-16/baseline/emulated:h100-80gb/fp32/b1",
                   "vit-l-16/baseline/emulated:h100-80gb/fp32/b1/"
                   "expandable_segments:True"}));
  EXPECT_EQ(plan.cases[1].spec.allocator, "");
  EXPECT_EQ(plan.cases[2].spec.allocator, "expandable_segments:True");
  EXPECT_EQ(message_of<ConfigError>([] {
              plan_with({"cpu"}, {"", "max_split_size_mb:64"});
            }),
            "allocator max_split_size_mb:64: no case runs on a CUDA card, real or emulated, whose "
            "allocator alone has such settings; add one, like --device emulated:h100-80gb");
  EXPECT_EQ(ids(plan_with({"cpu"}, {""})), Texts{"vit-l-16/baseline/cpu/fp32/b1"});
}

// Suites had the settings in `device_options` before there was an axis.
TEST(Allocator, IsReadWhereSuitesHadIt) {
  const std::string cases =
      "models = [\"vit-l-16\"]\nstrategies = [\"baseline\"]\ndevices = [\"cuda:0\"]\n";
  const auto read = [&](const std::string& more) {
    return suite_from_text(cases + more, "s.toml").lists.at(Axis::kAllocator);
  };
  EXPECT_EQ(read(""), Texts{""});
  EXPECT_EQ(read("allocator = [\"\", \"max_split_size_mb:64\"]\n"),
            (Texts{"", "max_split_size_mb:64"}));
  const std::string both =
      "[device_options]\ncudnn = false\nexpandable_segments = true\nmax_split_size_mb = 64\n";
  EXPECT_EQ(read(both), Texts{"expandable_segments:true,max_split_size_mb:64"});
  EXPECT_EQ(message_of<ConfigError>([&] { read("allocator = [\"\"]\n" + both); }),
            "s.toml:7:23: expandable_segments: the suite's list `allocator` has such settings; put "
            "this one there");
  EXPECT_EQ(message_of<ConfigError>([&] { read("[device_options]\nmax_split_size_mb = 1\n"); }),
            "s.toml:5:21: allocator setting max_split_size_mb:1: expected an integer of 20 or "
            "more, in MiB");
}

}  // namespace
}  // namespace peakbench::planning
