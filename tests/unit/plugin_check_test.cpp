// What `peakbench check` makes of its runs: what was not compared is never passed.
#include "cli/plugin_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "records/setting.h"

namespace peakbench::cli {
namespace {

using records::CaseResult;

CaseResult ran(const std::string& device, const std::vector<std::string>& stack,
               const std::string& verdict, const std::string& reason = "") {
  CaseResult made;
  made.spec.model.id = "tiny";
  made.spec.device = device;
  for (const auto& id : stack) made.spec.strategies.push_back({id, {}});
  made.spec.id = "tiny/" + records::stack_text(made.spec.strategies) + "/" + device;
  made.memory = records::Memory{};
  made.equivalence = records::Equivalence{};
  made.equivalence->promise = "bit_identical";
  made.equivalence->verdict = verdict;
  made.equivalence->reason = reason;
  return made;
}

planning::Entry entry(const std::string& promise) {
  planning::Entry made;
  made.id = "mine";
  made.promise = promise;
  return made;
}

std::vector<Finding> found(const CheckRuns& runs, const std::string& promise = "bit_identical") {
  const auto own = entry(promise);
  return findings_of({planning::Kind::kStrategy, &own}, runs);
}

std::vector<Finding> of(const std::vector<Finding>& findings, const std::string& question) {
  std::vector<Finding> some;
  std::ranges::copy_if(findings, std::back_inserter(some),
                       [&](const Finding& one) { return one.question == question; });
  return some;
}

TEST(PluginCheck, CountsStacksThatWereComparedWithNothingApart) {
  CheckRuns runs;
  runs.card.cases = {ran("emulated:a", {"mine"}, "not_checked", "no values"),
                     ran("emulated:a", {"mine", "graphs"}, "not_checked", "no values"),
                     ran("emulated:a", {"mine", "held"}, "not_checked", "no values")};
  runs.cpu.cases = {ran("cpu", {"mine"}, "held"), ran("cpu", {"mine", "held"}, "held"),
                    ran("cpu", {"mine", "lora"}, "not_checked", "no reference"),
                    ran("cpu", {"mine", "sgd"}, "not_checked", "no reference")};
  const auto stacks = of(found(runs), "stacks");
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0].answer, Answer::kPassed);
  EXPECT_EQ(stacks[0].text,
            "4 of 4 stacks run, on the card and on the CPU; 1 were seen to train as promised");
  EXPECT_EQ(stacks[1].answer, Answer::kNotChecked);
  EXPECT_EQ(stacks[1].text,
            "3 stacks ran and were compared with nothing: mine+lora, mine+sgd (no reference); "
            "mine+graphs (no values)");
  const auto text = findings_text(found(runs), 200);
  EXPECT_NE(text.find("\n  not checked  stacks      3 stacks ran"), std::string::npos) << text;
  EXPECT_NE(text.find("1 not checked\n"), std::string::npos) << text;
}

TEST(PluginCheck, APromiseThatOneModelLeavesOpenIsNotKeptThere) {
  CheckRuns runs;
  auto other = ran("cpu", {"mine"}, "not_checked", "the reference case ended crashed");
  other.spec.id = "other/mine/cpu";
  runs.cpu.cases = {ran("cpu", {"mine"}, "held"), other};
  const auto promise = of(found(runs), "promise");
  ASSERT_EQ(promise.size(), 2U);
  EXPECT_EQ(promise[0].answer, Answer::kPassed);
  EXPECT_EQ(promise[1].answer, Answer::kNotChecked);
  EXPECT_EQ(promise[1].text,
            "1 case ran and was compared with nothing: other/mine/cpu (the reference case ended "
            "crashed)");
}

TEST(PluginCheck, APromiseThatIsBrokenOnTheCardAloneIsBroken) {
  CheckRuns runs;
  runs.card.cases = {ran("emulated:a", {"mine"}, "broken", "leaves block 1 out")};
  runs.cpu.cases = {ran("cpu", {"mine"}, "held")};
  const auto promise = of(found(runs), "promise");
  ASSERT_EQ(promise.size(), 1U);
  EXPECT_EQ(promise[0].answer, Answer::kFailed);
  EXPECT_EQ(promise[0].failures, std::vector<std::string>{"tiny/mine/emulated:a: promises "
                                                          "bit_identical: leaves block 1 out"});
}

TEST(PluginCheck, AStrategyThatTrainsDifferentlyIsNotChecked) {
  CheckRuns runs;
  runs.cpu.cases = {ran("cpu", {"mine"}, "not_checked", "the strategy changes what is trained")};
  const auto promise = of(found(runs, "different_problem"), "promise");
  ASSERT_EQ(promise.size(), 1U);
  EXPECT_EQ(promise[0].answer, Answer::kNotChecked);
}

}  // namespace
}  // namespace peakbench::cli
