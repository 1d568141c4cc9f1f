// Which memory of a program is communication, from who made it and what collectives were given.
#include <gtest/gtest.h>

#include <algorithm>

#include "programs/inferred_names.h"
#include "support/fake_trace.h"
#include "trace/lifetimes.h"

namespace peakbench::programs {
namespace {

using trace::Category;
using trace::Role;
using Allocation = trace::FakeTrace::Allocation;

class Communication : public ::testing::Test {
 protected:
  Communication() {
    fake_.trace().counts_build = true;
    fake_.build().from({mine()});
  }
  trace::StackFrame mine() { return fake_.frame("/home/me/train.py", "<module>", 7); }
  trace::StackFrame torch(const std::string& file, const std::string& function) {
    return fake_.frame("/env/lib/python3.12/site-packages/torch/" + file, function, 9);
  }
  Allocation made(const trace::StackFrame& by) {
    fake_.from({mine(), by});
    const auto allocation = fake_.alloc(1000, 1024);
    fake_.from({mine()});
    return allocation;
  }
  void give(Allocation allocation) {
    given_.push_back({allocation, fake_.trace().events.size(), "[250]", "Float"});
    fake_.free(fake_.alloc(1));  // what follows
  }
  // After the last event.
  std::vector<Category> categories(const std::vector<Allocation>& of) {
    name_communication(fake_.trace(), given_, hooks_);
    const auto lifetimes = trace::lifetimes(fake_.trace());
    std::vector<Category> found;
    for (const auto allocation : of)
      for (const auto& lifetime : lifetimes)
        if (lifetime.first == allocation) found.push_back(lifetime.category);
    return found;
  }
  Category category(Allocation of) { return categories({of}).front(); }

  trace::FakeTrace fake_{"cuda:0"};
  std::vector<Communicated> given_;
  std::unordered_map<std::uint64_t, std::int32_t> hooks_;
};

TEST_F(Communication, BucketsAreByTheLineThatMakesThemWhateverIsInThem) {
  const auto first = made(torch("nn/parallel/distributed.py", "_ddp_init_helper"));
  fake_.forward(0);
  fake_.named(Role::kGradient, "weight");  // gradient_as_bucket_view
  const auto rebuilt = made(torch("nn/parallel/distributed.py", "_pre_forward"));
  const auto other = made(torch("nn/parallel/distributed.py", "forward"));
  fake_.backward(0).free(other);
  EXPECT_EQ(
      categories({first, rebuilt, other}),
      (std::vector{Category::kCommunication, Category::kCommunication, Category::kActivation}));
  const auto& names = fake_.trace().names;
  EXPECT_EQ(std::ranges::count(names, rebuilt, &trace::Name::event), 1);
  EXPECT_EQ(names.back().name, "DDP bucket");
}

TEST_F(Communication, OfFsdpAreItsBuffersAndNotWhatTheyLeave) {
  fake_.forward(0);
  const auto gathering =
      made(torch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", "allocate"));
  const auto gathered =
      made(torch("distributed/fsdp/_fully_shard/_fsdp_param.py", "alloc_storage"));
  const auto scratch = made(torch("distributed/fsdp/_fully_shard/_fsdp_param.py", "other"));
  give(gathering);
  fake_.backward(0);
  fake_.named(Role::kGradient, "weight");
  const auto scattered =
      made(torch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", "allocate"));
  give(scattered);
  const auto in_hook = fake_.alloc(1000, 1024);  // its stack is the forward operator's
  hooks_[in_hook] = fake_.trace().events[gathered].stack;
  for (const auto allocation : {gathering, gathered, scratch, scattered, in_hook})
    fake_.free(allocation);
  EXPECT_EQ(categories({gathering, gathered, scratch, scattered, in_hook}),
            (std::vector{Category::kCommunication, Category::kParameter, Category::kActivation,
                         Category::kGradient, Category::kParameter}));
}

// The first time they are made in a list comprehension, which has a frame up to Python 3.11.
TEST_F(Communication, OfFsdpIsWhatIsGatheredFirst) {
  const auto* const file = "distributed/fsdp/_fully_shard/_fsdp_param.py";
  fake_.forward(0).from(
      {mine(), torch(file, "init_all_gather_outputs"), torch(file, "<listcomp>")});
  const auto gathered = fake_.alloc(1000, 1024);
  fake_.from({mine(), torch(file, "other"), torch(file, "<listcomp>")});
  const auto scratch = fake_.alloc(1000, 1024);
  fake_.backward(0).free(gathered).free(scratch);
  EXPECT_EQ(categories({gathered, scratch}),
            (std::vector{Category::kParameter, Category::kActivation}));
}

TEST_F(Communication, WhatACollectiveIsGivenIsItWhereItIsNothingElse) {
  fake_.named(Role::kParameter, "weight");
  const auto parameter = fake_.alloc(1000, 1024);
  const auto average = fake_.alloc(1000, 1024);  // broadcast once, before the first step
  const auto buffer = fake_.alloc(1000, 1024);
  give(parameter);
  give(average);
  fake_.data(0);
  const auto flag = fake_.alloc(4, 512);
  give(flag);
  fake_.forward(0);
  const auto activation = fake_.alloc(1000, 1024);
  const auto temporary = fake_.alloc(1000, 1024);
  const auto untold = fake_.alloc(1000, 1024);
  give(activation);
  give(temporary);
  give(buffer);
  fake_.free(temporary).free(untold);
  fake_.alloc(1, 512);
  fake_.backward(0).free(activation).free(flag).alloc(1, 512);
  EXPECT_EQ(categories({parameter, average, buffer, flag, activation, temporary, untold}),
            (std::vector{Category::kParameter, Category::kKept, Category::kCommunication,
                         Category::kCommunication, Category::kActivation, Category::kCommunication,
                         Category::kTemporary}));
}

TEST_F(Communication, BehindTheEndOfATraceThereIsNothing) {
  const auto allocation = fake_.alloc(1000, 1024);
  given_.push_back({77, 80, "", ""});
  EXPECT_EQ(category(allocation), Category::kKept);
}

}  // namespace
}  // namespace peakbench::programs
