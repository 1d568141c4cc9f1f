// Which stacks are proposed, on strategies whose savings are a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "search/propose.h"

namespace peakbench::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kBaseline = 100'000;

// What each strategy takes off the baseline's peak, wherever it is.
struct World {
  std::map<std::string, std::int64_t> saves;
  std::map<std::string, std::int64_t> on_host;
  std::set<std::set<std::string>> conflicts;
  std::map<std::string, std::string> needs;  // runs only beside the other
  std::set<std::string> slow;

  Probe probe(const std::string& stack) const {
    std::set<std::string> parts;
    std::string part;
    for (const char c : stack + "+") {
      if (c != '+') {
        part += c;
      } else if (!part.empty()) {
        parts.insert(part);
        part.clear();
      }
    }
    Probe probe{.runs = true, .bytes = kBaseline};
    for (const auto& one : parts) {
      probe.bytes -= saves.contains(one) ? saves.at(one) : 0;
      probe.host_bytes += on_host.contains(one) ? on_host.at(one) : 0;
      if (needs.contains(one) && !parts.contains(needs.at(one)))
        return {.runs = false, .why_not = one + " needs " + needs.at(one)};
      if (slow.contains(one)) return {.runs = false, .why_not = "slow", .is_slow = true};
      for (const auto& other : parts)
        if (conflicts.contains({one, other}) && one != other)
          return {.runs = false, .why_not = one + " conflicts with " + other};
    }
    return probe;
  }
};

Proposal proposed(const World& world, const std::vector<Candidate>& candidates) {
  return propose(candidates, [&](const std::string& stack) { return world.probe(stack); });
}

const LeftOut& left_out(const Proposal& proposal, const std::string& stack) {
  for (const auto& one : proposal.left_out)
    if (one.stack == stack) return one;
  ADD_FAILURE() << stack << " is not left out";
  static const LeftOut kNone;
  return kNone;
}

const std::vector<Candidate> kAll{{"recompute", "bit_identical"},
                                  {"fused", "bit_identical"},
                                  {"offload", "bit_identical"},
                                  {"chunked", "within_tolerance"},
                                  {"adapters", "different_problem", true},
                                  {"four-bit", "different_problem", true},
                                  {"clip", "within_tolerance"}};

TEST(Propose, FromCheapToCostly) {
  const World world{.saves = {{"recompute", 20'000},
                              {"fused", 10'000},
                              {"offload", 30'000},
                              {"chunked", 5'000},
                              {"adapters", 25'000},
                              {"four-bit", 12'000}},
                    .on_host = {{"offload", 50'000}},
                    .conflicts = {},
                    .needs = {{"four-bit", "adapters"}},
                    .slow = {}};
  const auto proposal = proposed(world, kAll);
  EXPECT_THAT(proposal.stacks, ElementsAre("baseline", "recompute+fused", "recompute+fused+chunked",
                                           "recompute+fused+chunked+offload",
                                           "recompute+fused+chunked+adapters+four-bit"));
  ASSERT_EQ(proposal.left_out.size(), 1U);
  EXPECT_EQ(left_out(proposal, "clip").why, WhyLeftOut::kSavesNothing);
}

TEST(Propose, AHundredthIsWorthItAndLessIsNot) {
  const World world{.saves = {{"recompute", 1000}, {"fused", 999}},
                    .on_host = {},
                    .conflicts = {},
                    .needs = {},
                    .slow = {}};
  const auto proposal =
      proposed(world, {{"recompute", "bit_identical"}, {"fused", "bit_identical"}});
  EXPECT_THAT(proposal.stacks, ElementsAre("baseline", "recompute"));
  EXPECT_THAT(left_out(proposal, "fused").reason, HasSubstr("saves nothing worth it here"));
}

// Of two parts of a step the larger is the peak: what lowers the other one counts once the first is
// low, and not before.
TEST(Propose, WhatHoldsThePeakChangesWithTheStack) {
  const auto probe = [](const std::string& stack) {
    const bool recomputes = stack.find("recompute") != std::string::npos;
    const bool fuses = stack.find("fused") != std::string::npos;
    Probe found{.runs = true};
    found.phases = {{"backward", recomputes ? 20'000 : 80'000},
                    {"optimizer_step", fuses ? 10'000 : 100'000}};
    found.bytes = std::max(found.phases["backward"], found.phases["optimizer_step"]);
    return found;
  };
  const std::vector<Candidate> both{{"recompute", "bit_identical"}, {"fused", "bit_identical"}};
  EXPECT_THAT(propose(both, probe).stacks, ElementsAre("baseline", "fused+recompute"));
  const auto alone = propose({{"recompute", "bit_identical"}}, probe);
  EXPECT_THAT(alone.stacks, ElementsAre("baseline"));
  EXPECT_EQ(left_out(alone, "recompute").why, WhyLeftOut::kSavesNothing);
}

TEST(Propose, OtherProblemsAreOneWithAllWeightsAndOneWithAdapters) {
  const World world{.saves = {{"sign", 40'000}, {"adapters", 30'000}},
                    .on_host = {},
                    .conflicts = {{"sign", "adapters"}},
                    .needs = {},
                    .slow = {}};
  const auto proposal =
      proposed(world, {{"adapters", "different_problem", true}, {"sign", "different_problem"}});
  EXPECT_THAT(proposal.stacks, ElementsAre("baseline", "sign", "adapters"));
}

TEST(Propose, WhatIsRuledOutSaysWhy) {
  const World world{.saves = {{"recompute", 20'000}, {"fused", 10'000}, {"offload", 30'000}},
                    .on_host = {{"offload", 50'000}},
                    .conflicts = {{"recompute", "fused"}},
                    .needs = {},
                    .slow = {"offload"}};
  const auto proposal = proposed(
      world,
      {{"recompute", "bit_identical"}, {"fused", "bit_identical"}, {"offload", "bit_identical"}});
  EXPECT_THAT(proposal.stacks, ElementsAre("baseline", "recompute"));
  EXPECT_EQ(left_out(proposal, "fused").why, WhyLeftOut::kRuledOut);
  EXPECT_THAT(left_out(proposal, "fused").reason, HasSubstr("conflicts with"));
  EXPECT_EQ(left_out(proposal, "offload").why, WhyLeftOut::kTooSlow);
}

TEST(Propose, WithoutABaselineNothingIsCompared) {
  const auto proposal = propose(kAll, [](const std::string&) {
    return Probe{.runs = false, .why_not = "ended crashed: SIGSEGV"};
  });
  EXPECT_THAT(proposal.stacks, ElementsAre("baseline"));
  EXPECT_EQ(proposal.left_out.size(), kAll.size());
  EXPECT_THAT(proposal.left_out.front().reason, HasSubstr("ended crashed: SIGSEGV"));
}

}  // namespace
}  // namespace peakbench::search
