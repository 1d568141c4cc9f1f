// From what is typed to cases: the grammar, options, canonical order, ids, conflicts, rules.
#include "planning/plan.h"

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/numbers.h"
#include "planning/selection.h"
#include "support/fake_plugins.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using nlohmann::json;
using records::Axis;
using records::Status;
using testing::fake_plugins;
using testing::message_of;
using Texts = std::vector<std::string>;

Request request_of(const Texts& models, const Texts& strategies) {
  Request request;
  request.lists[Axis::kModel] = models;
  request.lists[Axis::kStrategy] = strategies;
  return request;
}

Plan plan_of(const Request& request) {
  static const planning::Found kPlugins = fake_plugins();
  return make_plan(request, kPlugins);
}

PlannedCase case_of(const std::string& stack, const std::string& model = "vit-l-16") {
  const auto plan = plan_of(request_of({model}, {stack}));
  EXPECT_EQ(plan.cases.size(), 1u);
  return plan.cases.at(0);
}

Texts ids_of(const Plan& plan) {
  Texts ids;
  for (const auto& planned : plan.cases) ids.push_back(planned.spec.id);
  return ids;
}

std::string error_of(const Request& request) {
  return message_of<ConfigError>([&] { plan_of(request); });
}

std::string stack_error(const std::string& stack) {
  return error_of(request_of({"vit-l-16"}, {stack}));
}

TEST(Grammar, NamesOptionsAndStacks) {
  const auto one = parse_selection("emulated:h100-80gb,memory=60GiB,count=2");
  EXPECT_EQ(one.id, "emulated:h100-80gb");
  EXPECT_EQ(one.options, (std::vector<std::pair<std::string, std::string>>{{"memory", "60GiB"},
                                                                           {"count", "2"}}));
  const auto stack = parse_stack("lora,rank=16+checkpointing,every=2+foreach-off");
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[1].id, "checkpointing");
  EXPECT_EQ(stack[1].options[0].second, "2");
  EXPECT_EQ(parse_selection("m,weights=/a+b=c").options[0].second, "/a+b=c");
  EXPECT_EQ(parse_selection("m,weights=\"/a,b\",n=1").options[0].second, "/a,b");
  EXPECT_EQ(parse_stack("s,p=\"a+b\"+t")[0].options[0].second, "a+b");
}

TEST(Grammar, ErrorsShowWhere) {
  const auto error = [](const std::string& text) {
    return message_of<ConfigError>([&] { parse_stack(text); });
  };
  EXPECT_EQ(error(""), "\"\", column 1: expected a name");
  EXPECT_EQ(error("lora+"), "\"lora+\", column 6: expected a name");
  EXPECT_EQ(error("lora,"), "\"lora,\", column 6: expected key=value");
  EXPECT_EQ(error("lora,rank"), "\"lora,rank\", column 6: expected key=value");
  EXPECT_EQ(error("lora,rank="), "\"lora,rank=\", column 11: expected a value after '='");
  EXPECT_EQ(error("lora,=3"), "\"lora,=3\", column 6: expected key=value");
  EXPECT_EQ(error("rank=3"), "\"rank=3\", column 1: expected NAME,key=value; the name is missing");
  EXPECT_EQ(error("lora,a=1,a=2"), "\"lora,a=1,a=2\", column 10: option \"a\" is given twice");
  EXPECT_EQ(error("lora,a=\"x"), "\"lora,a=\"x\", column 8: the quote is not closed");
  EXPECT_EQ(error("lora,a=\"x\"y"),
            "\"lora,a=\"x\"y\", column 11: expected ',' after the closing quote");
  EXPECT_EQ(error("lora,a=x\"y"), "\"lora,a=x\"y\", column 8: a quote stands around a whole value");
}

TEST(Bytes, AreReadAsPeopleTypeThem) {
  EXPECT_EQ(bytes_from_text("60GiB"), 60ll << 30);
  EXPECT_EQ(bytes_from_text("1.5 GB"), 1'500'000'000);
  EXPECT_EQ(bytes_from_text("4096"), 4096);
  EXPECT_EQ(bytes_from_text("1TiB"), 1ll << 40);
  for (const char* text : {"", "0", "-1GiB", "1 gib", "GiB", "1e30", "nan", "inf", "1GiB "}) {
    EXPECT_EQ(bytes_from_text(text), std::nullopt) << text;
  }
}

TEST(CaseId, LeavesDefaultsOutAndOrdersStrategies) {
  EXPECT_EQ(case_of("baseline").spec.id, "vit-l-16/baseline/cpu/fp32/b1");
  EXPECT_EQ(case_of("checkpointing,every=2+lora,rank=16").spec.id,
            "vit-l-16/lora,rank=16+checkpointing,every=2/cpu/fp32/b1");
  EXPECT_EQ(case_of("baseline+lora,rank=8,adapter_dtype=fp32").spec.id,
            "vit-l-16/lora/cpu/fp32/b1");
  EXPECT_EQ(case_of("lora", "qwen2.5-0.5b,layers=4").spec.id,
            "qwen2.5-0.5b,layers=4/lora/cpu/fp32/b1/s512");
  EXPECT_EQ(case_of("baseline", "vit-l-16,weights=\"/a,b\"").spec.id,
            "vit-l-16,weights=\"/a,b\"/baseline/cpu/fp32/b1");
}

TEST(CaseId, ABaselineWithOptionsStays) {
  const auto planned = case_of("lora+baseline,seed=3");
  EXPECT_EQ(planned.spec.id, "vit-l-16/baseline,seed=3+lora/cpu/fp32/b1");
  EXPECT_EQ(planned.strategies[0].options, json({{"seed", 3}}));
}

TEST(CaseId, TypesAreTheManifests) {
  const auto planned = case_of("lora,rank=16", "vit-l-16,layers=4");
  EXPECT_EQ(planned.spec.model.options, json({{"layers", 4}}));
  EXPECT_EQ(planned.model.options, json({{"layers", 4}, {"weights", ""}}));
  EXPECT_EQ(planned.model.path, "/p/vit.so");
  ASSERT_EQ(planned.strategies.size(), 2u);
  EXPECT_EQ(planned.strategies[0].selection.id, "baseline");
  EXPECT_EQ(planned.strategies[0].path, "/p/baseline.so");
  EXPECT_EQ(planned.strategies[1].options, json({{"rank", 16}, {"adapter_dtype", "fp32"}}));
}

TEST(Slug, IsASafeFileNameThatStaysTheSame) {
  EXPECT_EQ(slug("vit-l-16/baseline/cpu/fp32/b1"), "vit-l-16-baseline-cpu-fp32-b1-7fc4d828");
  const std::string safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_+=";
  const std::string hostile = slug("m,weights=\"/../ \n\xff;rm\"/" + std::string(500, 'x'));
  EXPECT_LE(hostile.size(), 100u);
  EXPECT_EQ(hostile.find_first_not_of(safe), std::string::npos) << hostile;
  EXPECT_NE(slug("m,a/x"), slug("m/a,x"));
  EXPECT_NE(slug(std::string(500, 'x') + "a"), slug(std::string(500, 'x') + "b"));
}

TEST(Options, AreCheckedAgainstTheManifest) {
  EXPECT_EQ(stack_error("lora,rnak=4"), "unknown option \"rnak\" of lora; did you mean \"rank\"?");
  EXPECT_EQ(stack_error("foreach-off,rank=4"),
            "unknown option \"rank\" of foreach-off; none is known");
  EXPECT_EQ(stack_error("lora,rank=0"), "lora,rank=0: expected an integer from 1 to 4096");
  EXPECT_EQ(stack_error("lora,rank=many"), "lora,rank=many: expected an integer from 1 to 4096");
  EXPECT_EQ(stack_error("lora,adapter_dtype=fp16"),
            "lora,adapter_dtype=fp16: expected one of fp32, bf16");
}

TEST(Parts, ThatAreNoneAreRefusedAndThoseThatAModelLacksAreUnsupported) {
  EXPECT_EQ(
      stack_error("dora,targets=mpl"),
      "dora,targets=mpl: expected auto, or some of q_proj, k_proj, v_proj, qkv_proj, "
      "output_proj, mlp, output, joined by ':', each as it is or with =N, an integer from 1 to 64");
  EXPECT_EQ(case_of("dora,targets=mlp=4:acme.gate").decided, std::nullopt);
  EXPECT_EQ(case_of("dora").decided, std::nullopt);
  const auto planned = case_of("dora,targets=mlp:q_proj:v_proj");
  EXPECT_EQ(planned.decided, Status::kUnsupported);
  EXPECT_EQ(
      planned.reason,
      "dora,targets=mlp:q_proj:v_proj: vit-l-16 has no q_proj layer: its attention is packed; "
      "dora,targets=mlp:q_proj:v_proj: vit-l-16 has no v_proj layer");
  // A model that does not say which parts it has is asked when it is built.
  EXPECT_EQ(case_of("dora,targets=q_proj", "qwen2.5-0.5b").decided, std::nullopt);
}

TEST(Names, UnknownOnesGetTheNearest) {
  EXPECT_EQ(stack_error("loar"), "unknown strategy \"loar\"; did you mean \"lora\"?");
  EXPECT_EQ(stack_error("lora+chekpointing"),
            "unknown strategy \"chekpointing\"; did you mean \"checkpointing\"?");
  EXPECT_EQ(error_of(request_of({"google/vit-l-61"}, {"baseline"})),
            "unknown model \"google/vit-l-61\"; did you mean \"vit-l-16\"?");
  EXPECT_EQ(error_of(request_of({"zzz"}, {"baseline"})),
            "unknown model \"zzz\"; known: contrastive, experts, lengths, masked, plain, "
            "qwen2.5-0.5b, uncounted, "
            "vit-l-16");
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.lists[Axis::kDtype] = {"fp16"};
  EXPECT_EQ(error_of(request), "unknown dtype \"fp16\"; known: fp32, bf16");
}

TEST(Names, OnesWrittenAsPeopleDoAreTheManifests) {
  const auto plan =
      plan_of(request_of({"ViT_L_16", "Qwen/Qwen2.5-0.5B,layers=2"}, {"LoRA+part_checkpointing"}));
  EXPECT_EQ(ids_of(plan),
            (Texts{"vit-l-16/lora+part-checkpointing/cpu/fp32/b1",
                   "qwen2.5-0.5b,layers=2/lora+part-checkpointing/cpu/fp32/b1/s512"}));
  EXPECT_EQ(case_of("gradient-checkpointing").strategies.back().selection.id, "checkpointing");
  EXPECT_EQ(stack_error("gradient-checkpointing+checkpointing"),
            "strategy \"checkpointing\" is in the stack twice; name it once");
  auto request = request_of({"vit-l-16"}, {"LoRA"});
  for (const std::string dtype : {"bfloat16", "torch.bfloat16", "BF16"}) {
    request.lists[Axis::kDtype] = {dtype};
    EXPECT_EQ(plan_of(request).cases.at(0).spec.dtype, "bf16") << dtype;
  }
  request.strategy_options["lora"] = {{"rank", "4"}};
  EXPECT_EQ(plan_of(request).cases.at(0).spec.strategies.at(0).options.at("rank"), 4);
  request.strategy_options = {{"LoRA", {{"rank", "4"}}}};
  EXPECT_EQ(error_of(request), "a table for \"LoRA\" is named \"lora\"");
}

TEST(Names, OneThatTwoAreCalledIsNotTaken) {
  planning::Found found = fake_plugins();
  for (auto& plugin : found.plugins)
    for (auto& entry : plugin.entries)
      if (entry.id == "lora" || entry.id == "dora") entry.aliases = {"adapter"};
  EXPECT_TRUE(message_of<ConfigError>([&] {
                make_plan(request_of({"vit-l-16"}, {"adapter"}), found);
              }).starts_with("unknown strategy \"adapter\""));
}

TEST(Names, AllMistakesAreSaidAtOnce) {
  auto request = request_of({"vit-l-61"}, {"loar"});
  request.lists[Axis::kDtype] = {"fp31"};
  request.lists[Axis::kDevice] = {"cdua:0"};
  EXPECT_EQ(error_of(request),
            "4 mistakes:\n"
            "  unknown model \"vit-l-61\"; did you mean \"vit-l-16\"?\n"
            "  unknown strategy \"loar\"; did you mean \"lora\"?\n"
            "  unknown device \"cdua:0\"; did you mean \"cuda:0\"?\n"
            "  unknown dtype \"fp31\"; did you mean \"fp32\"?");
}

TEST(Names, APluginLeftOutIsMentioned) {
  planning::Found found = fake_plugins();
  found.problems = {"/p/mine.so: broken"};
  EXPECT_EQ(message_of<ConfigError>([&] { make_plan(request_of({"vit-l-16"}, {"mine"}), found); }),
            "unknown strategy \"mine\"; known: adam-8bit, baseline, checkpointing, clip, dora, "
            "foreach-off, fused-in-backward, graphs, half, lamb, layer-dropping, lisa, lora, "
            "micro-batches, part-checkpointing, quantised, rounding "
            "(plugins "
            "left out: "
            "1; `peakbench doctor` says why)");
}

TEST(Stack, AStrategyTwiceIsBadInput) {
  EXPECT_EQ(stack_error("lora+lora,rank=4"),
            "strategy \"lora\" is in the stack twice; name it once");
  EXPECT_EQ(stack_error("baseline+baseline"),
            "strategy \"baseline\" is in the stack twice; name it once");
}

TEST(Stack, TwoOwnersOfASlotConflict) {
  const auto planned = case_of("lora+dora");
  EXPECT_EQ(planned.decided, Status::kConflict);
  EXPECT_EQ(planned.reason,
            "lora and dora both take the slot adapters; a stack can have one of them");
  EXPECT_FALSE(case_of("baseline+lora+checkpointing+foreach-off+clip+micro-batches").decided);
  EXPECT_FALSE(case_of("baseline+lora+checkpointing+fused-in-backward").decided);
}

// One of the two would have no effect, or another one than it says.
TEST(Stack, UpdatesInBackwardConflictWithWhatNeedsTheWholeStep) {
  const std::vector<std::pair<std::string, std::string>> expected{
      {"clip+fused-in-backward",
       "clip needs all gradients at once; fused-in-backward updates each parameter as its gradient "
       "is complete"},
      {"lamb+fused-in-backward",
       "lamb needs all gradients at once; fused-in-backward updates each parameter as its gradient "
       "is complete"},
      {"micro-batches+fused-in-backward",
       "micro-batches updates once after several micro-batches; fused-in-backward would update in "
       "each"},
      {"foreach-off+fused-in-backward",
       "foreach-off chooses how many tensors a kernel updates; fused-in-backward updates one "
       "parameter at a time"}};
  for (const auto& [stack, reason] : expected) {
    const auto planned = case_of(stack);
    EXPECT_EQ(planned.decided, Status::kConflict) << stack;
    EXPECT_EQ(planned.reason, reason);
  }
}

// A replay does again what the first step did.
TEST(Stack, ReplayedStepsConflictWithWhatIsDecidedInEach) {
  const std::vector<std::pair<std::string, std::string>> expected{
      {"lisa+graphs",
       "lisa changes from step to step which parameters are trained; graphs repeats what the first "
       "step did"},
      {"layer-dropping+graphs",
       "layer-dropping decides on the host what runs in each step; graphs repeats what the first "
       "step decided"}};
  for (const auto& [stack, reason] : expected) {
    const auto planned = case_of(stack);
    EXPECT_EQ(planned.decided, Status::kConflict) << stack;
    EXPECT_EQ(planned.reason, reason);
  }
  EXPECT_FALSE(case_of("lisa+layer-dropping").decided);
  EXPECT_FALSE(case_of("checkpointing+graphs").decided);
}

TEST(Stack, DeclaredConflictsHoldBothWays) {
  const auto planned = case_of("rounding+lora+dora");
  EXPECT_EQ(planned.decided, Status::kConflict);
  EXPECT_EQ(planned.reason,
            "lora and dora both take the slot adapters; a stack can have one of them; "
            "rounding cannot be stacked with dora: both round");
}

TEST(Stack, ARequiredSlotIsTakenByAnother) {
  EXPECT_FALSE(case_of("lora+quantised").decided);
  EXPECT_FALSE(case_of("dora+quantised+checkpointing").decided);
  for (const auto* alone : {"quantised", "quantised+checkpointing"}) {
    const auto planned = case_of(alone);
    EXPECT_EQ(planned.decided, Status::kConflict) << alone;
    EXPECT_EQ(planned.reason, "quantised needs another strategy that takes the slot adapters");
  }
}

TEST(Stack, WhatAModelLacksIsUnsupported) {
  const auto planned = case_of("lora+checkpointing", "plain");
  EXPECT_EQ(planned.decided, Status::kUnsupported);
  EXPECT_EQ(planned.reason,
            "lora needs linear_layers, which plain does not have; checkpointing needs blocks, "
            "which plain does not have");
  EXPECT_EQ(case_of("lora+dora", "plain").decided, Status::kConflict);
  EXPECT_FALSE(case_of("foreach-off", "plain").decided);
}

TEST(Stack, AChoiceNeedsFactsOfItsOwn) {
  const auto reason_of = [](const std::string& stack, const std::string& model) {
    const auto planned = case_of(stack, model);
    if (planned.decided) {
      EXPECT_EQ(planned.decided, Status::kUnsupported);
    }
    return planned.decided ? planned.reason : "";
  };
  EXPECT_EQ(reason_of("part-checkpointing", "plain"), "");
  EXPECT_EQ(reason_of("part-checkpointing,parts=attention", "lengths"), "");
  EXPECT_EQ(reason_of("part-checkpointing,parts=attention", "plain"),
            "part-checkpointing,parts=attention needs attention_part, which plain does not have");
  EXPECT_EQ(reason_of("part-checkpointing,parts=mlp", "lengths"),
            "part-checkpointing,parts=mlp needs mlp_part, which lengths does not have; "
            "part-checkpointing,parts=mlp needs blocks, which lengths does not have");
}

TEST(Stack, WhatAModelDecidesAnewInEachStepIsNotReplayed) {
  auto planned = case_of("graphs", "lengths");
  EXPECT_EQ(planned.decided, Status::kUnsupported);
  EXPECT_EQ(planned.reason,
            "lengths is given another batch in each step; graphs repeats the first step with the "
            "first batch");
  planned = case_of("graphs", "experts");
  EXPECT_EQ(planned.decided, Status::kUnsupported);
  EXPECT_EQ(planned.reason,
            "experts decides on the host what runs in each step; graphs repeats what the first "
            "step decided");
  EXPECT_FALSE(case_of("foreach-off", "lengths").decided);
}

TEST(Stack, ALossOfTheWholeBatchIsNotSplit) {
  auto planned = case_of("micro-batches", "contrastive");
  EXPECT_EQ(planned.decided, Status::kUnsupported);
  EXPECT_EQ(
      planned.reason,
      "micro-batches splits the batch, and the loss of contrastive is of the whole batch: that "
      "of a sample depends on the others");
  EXPECT_FALSE(case_of("foreach-off", "contrastive").decided);
  EXPECT_FALSE(case_of("micro-batches", "masked").decided);
  planned = case_of("micro-batches", "uncounted");
  EXPECT_EQ(planned.decided, Status::kUnsupported);
  EXPECT_EQ(
      planned.reason,
      "micro-batches splits the batch, and the loss of uncounted is a mean over tokens, which "
      "nobody can count without its output_head");
}

TEST(Stack, MemoryThatTakesMoreStepsIsAWarning) {
  const auto warning_of = [](const std::string& stack, std::int64_t steps) {
    auto request = request_of({"vit-l-16"}, {stack});
    request.steps = steps;
    return plan_of(request).cases.at(0).warning;
  };
  EXPECT_EQ(warning_of("lisa", 3), "lisa shows its memory in 21 steps, and 3 are run (--steps 21)");
  EXPECT_EQ(warning_of("lisa", 21), "");
  EXPECT_EQ(warning_of("lisa,interval=2+checkpointing", 3), "");
  EXPECT_EQ(warning_of("lisa,interval=1", 1),
            "lisa shows its memory in 2 steps, and 1 is run (--steps 2)");
  EXPECT_EQ(warning_of("lisa+graphs", 3), "") << "it is not run";
}

TEST(Stack, PromisesTheWeakest) {
  EXPECT_EQ(case_of("foreach-off+checkpointing").promise.promise, "bit_identical");
  EXPECT_EQ(case_of("foreach-off").promise.verdict, "not_checked");
  EXPECT_FALSE(case_of("foreach-off").promise.different_problem);
  const auto tolerant = case_of("rounding+foreach-off").promise;
  EXPECT_EQ(tolerant.promise, "within_tolerance");
  EXPECT_EQ(tolerant.tolerance, 2e-3);
  EXPECT_EQ(tolerant.relative_tolerance, std::nullopt);
}

TEST(Stack, TolerancesAddUpAbsoluteAndRelativeApart) {
  const auto all = case_of("rounding+adam-8bit+half+foreach-off").promise;
  EXPECT_EQ(all.promise, "within_tolerance");
  EXPECT_DOUBLE_EQ(all.tolerance.value(), 3e-3);
  EXPECT_DOUBLE_EQ(all.relative_tolerance.value(), 4e-2);
  const auto relative = case_of("half+foreach-off").promise;
  EXPECT_EQ(relative.promise, "within_tolerance");
  EXPECT_EQ(relative.tolerance, std::nullopt);
  EXPECT_EQ(relative.relative_tolerance, 3e-2);
}

// Each stack, what it is held against, and what it promises then.
TEST(Stack, IsHeldAgainstItsPartsThatSolveADifferentProblem) {
  struct Expected {
    std::string stack, reference, promise;
    bool different_problem;
  };
  const std::vector<Expected> all{
      {"baseline", "baseline", "bit_identical", false},
      {"checkpointing+foreach-off", "baseline", "bit_identical", false},
      {"baseline,seed=1", "baseline,seed=1", "bit_identical", false},
      {"baseline,seed=1+foreach-off", "baseline,seed=1", "bit_identical", false},
      {"lora", "lora", "different_problem", true},
      {"lora,rank=4", "lora,rank=4", "different_problem", true},
      {"lora,rank=4+checkpointing,every=2", "lora,rank=4", "bit_identical", true},
      {"lora+lamb", "lora+lamb", "different_problem", true},
      {"lora+checkpointing+lamb", "lora+lamb", "bit_identical", true},
      {"baseline,seed=1+lora+checkpointing", "baseline,seed=1+lora", "bit_identical", true},
      {"lora+rounding+checkpointing", "lora", "within_tolerance", true}};
  for (const auto& expected : all) {
    const auto planned = case_of(expected.stack);
    EXPECT_EQ(records::stack_text(planned.reference), expected.reference) << expected.stack;
    EXPECT_EQ(planned.promise.promise, expected.promise) << expected.stack;
    EXPECT_EQ(planned.promise.different_problem, expected.different_problem) << expected.stack;
    EXPECT_EQ(planned.promise.tolerance.has_value(), expected.promise == "within_tolerance");
  }
}

TEST(Stack, WhereOnePromiseIsCheckedIsComparedWithTheStackWithoutItsStrategy) {
  struct Expected {
    std::string stack, reference, promise;
  };
  const std::vector<Expected> all{
      {"checkpointing", "baseline", "bit_identical"},
      {"rounding+checkpointing", "rounding", "bit_identical"},
      {"lora+rounding+checkpointing,every=2", "lora+rounding", "bit_identical"},
      {"baseline,seed=1+checkpointing+foreach-off", "baseline,seed=1+foreach-off", "bit_identical"},
      {"rounding+foreach-off", "baseline", "within_tolerance"}};  // it has no such strategy
  for (const auto& expected : all) {
    auto request = request_of({"vit-l-16"}, {expected.stack});
    request.checked_promises = {"checkpointing"};
    const auto planned = plan_of(request).cases.at(0);
    EXPECT_EQ(records::stack_text(planned.reference), expected.reference) << expected.stack;
    EXPECT_EQ(planned.promise.promise, expected.promise) << expected.stack;
  }
}

TEST(Product, AxesMultiplyInAFixedOrderAndOnce) {
  auto request =
      request_of({"vit-l-16", "qwen2.5-0.5b", "vit-l-16,layers=24"}, {"foreach-off", "baseline"});
  request.lists[Axis::kDtype] = {"fp32", "bf16"};
  request.lists[Axis::kSequenceLength] = {"128", "256"};
  const auto ids = ids_of(plan_of(request));
  const Texts expected{
      "vit-l-16/foreach-off/cpu/fp32/b1",          "vit-l-16/baseline/cpu/fp32/b1",
      "vit-l-16/foreach-off/cpu/bf16/b1",          "vit-l-16/baseline/cpu/bf16/b1",
      "qwen2.5-0.5b/foreach-off/cpu/fp32/b1/s128", "qwen2.5-0.5b/baseline/cpu/fp32/b1/s128",
      "qwen2.5-0.5b/foreach-off/cpu/fp32/b1/s256", "qwen2.5-0.5b/baseline/cpu/fp32/b1/s256",
      "qwen2.5-0.5b/foreach-off/cpu/bf16/b1/s128", "qwen2.5-0.5b/baseline/cpu/bf16/b1/s128",
      "qwen2.5-0.5b/foreach-off/cpu/bf16/b1/s256", "qwen2.5-0.5b/baseline/cpu/bf16/b1/s256"};
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

TEST(Product, TheReferenceIsTheStackNamedFirst) {
  EXPECT_EQ(plan_of(request_of({"vit-l-16"}, {"checkpointing+lora", "baseline"})).reference,
            "lora+checkpointing");
}

TEST(Product, SettingsReachEveryCase) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.seed = 7;
  request.lists[Axis::kBatchSize] = {"4"};
  request.device_options = {{"cudnn", "off"}};
  const auto spec = plan_of(request).cases[0].spec;
  EXPECT_EQ(spec.seed, 7u);
  EXPECT_EQ(spec.batch_size, 4);
  EXPECT_EQ(spec.device_options, json({{"cudnn", false}}));
  EXPECT_EQ(spec.slug, slug(spec.id));
  request.device_options = {{"cuddn", "off"}};
  EXPECT_EQ(error_of(request), "unknown device option \"cuddn\"; did you mean \"cudnn\"?");
}

TEST(Product, NumbersOutOfRangeAreNamed) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.steps = 0;
  EXPECT_EQ(error_of(request), "steps: expected an integer of 1 or more, got 0");
  request.steps = 3;
  request.lists[Axis::kBatchSize] = {"1", "0"};
  EXPECT_EQ(error_of(request), "batch_sizes: expected an integer of 1 or more, got 0");
  request.lists[Axis::kBatchSize] = {"1"};
  request.lists[Axis::kSequenceLength] = {"-1"};
  EXPECT_EQ(error_of(request), "sequence_lengths: expected an integer of 1 or more, got -1");
}

TEST(Product, LengthsThatNoModelHasAreRefused) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.lists[Axis::kSequenceLength] = {"128"};
  EXPECT_EQ(error_of(request),
            "sequence length 128: no model that runs has sequences; leave it out, or add a "
            "language model");
}

// What overflowed somewhere: seconds became milliseconds below zero, and a worker timed out at
// once.
TEST(Product, NumbersThatNothingCanHoldAreNamed) {
  constexpr std::int64_t kHuge = 9'223'372'037;
  const auto refused = [](auto&& set, const std::string& expected) {
    auto request = request_of({"vit-l-16"}, {"baseline"});
    set(request);
    EXPECT_EQ(error_of(request), expected);
  };
  refused([](Request& request) { request.timeout_s = kHuge; },
          "timeout_s: expected an integer of 1000000 or less, got 9223372037");
  refused([](Request& request) { request.steps = INT64_MAX; },
          "steps: expected an integer of 1000000 or less, got 9223372036854775807");
  refused([](Request& request) { request.warmup = INT64_MAX; },
          "warmup: expected an integer of 1000000 or less, got 9223372036854775807");
  refused([](Request& request) { request.repetitions = 1001; },
          "repetitions: expected an integer of 1000 or less, got 1001");
  refused([](Request& request) { request.threads = 4'294'967'297; },
          "threads: expected an integer of 4096 or less, got 4294967297");
  refused([](Request& request) { request.lists[Axis::kBatchSize] = {std::to_string(kHuge)}; },
          "batch_sizes: expected an integer of 1000000000 or less, got 9223372037");
  refused([](Request& request) { request.lists[Axis::kSequenceLength] = {std::to_string(kHuge)}; },
          "sequence_lengths: expected an integer of 1000000000 or less, got 9223372037");
  refused(
      [](Request& request) {
        request.includes = {{{{"batch_size", "9223372037"}}, {}}};
      },
      "batch_size: expected an integer of 1000000000 or less, got 9223372037");
}

TEST(Product, NothingToRunIsAnError) {
  EXPECT_EQ(error_of(request_of({}, {"baseline"})), "nothing to run: no model is named");
  EXPECT_EQ(error_of(request_of({"plain"}, {})), "nothing to run: no strategy is named");
  auto request = request_of({"plain"}, {"baseline"});
  request.excludes = {{{{"model", "plain"}}, {}}};
  EXPECT_EQ(error_of(request), "nothing to run: the excludes leave no case");
}

TEST(Rules, ExcludesTakeAwayWhatAgreesWithAllTheirFields) {
  auto request = request_of({"vit-l-16", "plain", "plain,layers=2"},
                            {"baseline", "lora", "lora,rank=4+checkpointing"});
  request.excludes = {{{{"model", "plain"}, {"strategy", "*lora*"}}, {}},
                      {{{"model", "vit-l-16"}, {"strategy", "lora"}}, {}}};
  EXPECT_EQ(
      ids_of(plan_of(request)),
      (Texts{"vit-l-16/baseline/cpu/fp32/b1", "vit-l-16/lora,rank=4+checkpointing/cpu/fp32/b1",
             "plain/baseline/cpu/fp32/b1/s64", "plain,layers=2/baseline/cpu/fp32/b1/s64"}));
  request.excludes = {{{{"model", "plain,layers=2"}}, {}},
                      {{{"strategy", "checkpointing+lora"}}, {}},
                      {{{"batch_size", "2"}}, {}}};
  EXPECT_EQ(ids_of(plan_of(request)),
            (Texts{"vit-l-16/baseline/cpu/fp32/b1", "vit-l-16/lora/cpu/fp32/b1",
                   "plain/baseline/cpu/fp32/b1/s64", "plain/lora/cpu/fp32/b1/s64"}));
}

TEST(Rules, IncludesAddCasesWithTheSuitesOtherValues) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.lists[Axis::kDtype] = {"fp32", "bf16"};
  request.excludes = {{{{"dtype", "bf16"}}, {}}};
  request.includes = {
      {{{"model", "plain"}, {"dtype", "bf16"}, {"sequence_length", "32"}, {"batch_size", "2"}}, {}},
      {{{"strategy", "lora"}, {"dtype", "fp32"}}, {}}};
  EXPECT_EQ(ids_of(plan_of(request)),
            (Texts{"vit-l-16/baseline/cpu/fp32/b1", "plain/baseline/cpu/bf16/b2/s32",
                   "vit-l-16/lora/cpu/fp32/b1"}));
}

TEST(Rules, NamesInThemAreChecked) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.excludes = {{{{"strategy", "loar"}}, {{"strategy", "s.toml:4:2"}}}};
  EXPECT_EQ(error_of(request), "s.toml:4:2: unknown strategy \"loar\"; did you mean \"lora\"?");
  request.excludes.clear();
  request.includes = {{{{"model", "vit"}}, {{"model", "s.toml:9:1"}}}};
  EXPECT_EQ(error_of(request), "s.toml:9:1: unknown model \"vit\"; did you mean \"vit-l-16\"?");
}

TEST(Published, StacksAreShownInCanonicalOrderAndNamesChecked) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.published = {
      {"vit-l-16", "checkpointing+lora", "peak_memory", 4, "GB", "somebody", "", ""}};
  EXPECT_EQ(plan_of(request).request.published[0].strategy, "lora+checkpointing");
  request.published[0].strategy = "foreach-of";
  EXPECT_EQ(error_of(request), "unknown strategy \"foreach-of\"; did you mean \"foreach-off\"?");
}

TEST(Published, AModelWithOptionsIsNamedAsItsCaseIs) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.published = {
      {"vit-l-16,weights=/a,layers=2", "", "peak_memory", 4, "GB", "somebody", "", ""},
      {"vit-l-16", "", "peak_memory", 4, "GB", "somebody", "", ""}};
  const auto published = plan_of(request).request.published;
  EXPECT_EQ(published[0].model, "vit-l-16,layers=2,weights=/a");
  EXPECT_EQ(published[1].model, "vit-l-16");
  request.published[0].model = "vit-l-16,layer=2";
  EXPECT_NE(error_of(request).find("layers"), std::string::npos) << error_of(request);
}

TEST(Published, TheDtypeIsChecked) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.published = {{"vit-l-16", "", "peak_memory", 4, "GB", "somebody", "", "", "fp33", 8, {}}};
  request.where = {{"published/0/dtype", "s.toml:7:9"}};
  EXPECT_EQ(error_of(request).rfind("s.toml:7:9: unknown dtype \"fp33\"", 0), 0U)
      << error_of(request);
}

// The cases that a plan adds.
Texts added_by(const Request& request) {
  Texts added;
  for (const auto& planned : plan_of(request).cases)
    if (planned.added_for == "ablation") added.push_back(planned.spec.id);
  return added;
}

TEST(Ablation, AnEmulatedCardRunsWhatTellsThePartsApart) {
  auto request = request_of({"vit-l-16"}, {"lora,rank=4+checkpointing+foreach-off", "lora,rank=4"});
  request.lists[Axis::kDevice] = {"emulated:h100-80gb"};
  const std::string end = "/emulated:h100-80gb/fp32/b1";
  EXPECT_EQ(
      added_by(request),
      (Texts{"vit-l-16/baseline" + end, "vit-l-16/checkpointing" + end,
             "vit-l-16/foreach-off" + end, "vit-l-16/checkpointing+foreach-off" + end,
             "vit-l-16/lora,rank=4+foreach-off" + end, "vit-l-16/lora,rank=4+checkpointing" + end}))
      << "what was asked for is not added again";
  EXPECT_EQ(plan_of(request).reference, "lora,rank=4+checkpointing+foreach-off");
}

TEST(Ablation, TheBaselinesOptionsStay) {
  auto request = request_of({"vit-l-16"}, {"baseline,seed=7+lora+checkpointing"});
  request.lists[Axis::kDevice] = {"emulated:h100-80gb"};
  EXPECT_EQ(added_by(request).at(1), "vit-l-16/baseline,seed=7+lora/emulated:h100-80gb/fp32/b1");
}

TEST(Ablation, APartThatCannotBeAloneIsLeftOut) {
  auto request = request_of({"vit-l-16"}, {"baseline", "quantised+lora"});
  request.lists[Axis::kDevice] = {"emulated:h100-80gb"};
  EXPECT_EQ(added_by(request), Texts{"vit-l-16/lora/emulated:h100-80gb/fp32/b1"});
}

TEST(Ablation, NothingIsAddedWhereItCostsOrMakesNoSense) {
  auto request = request_of({"vit-l-16"}, {"baseline", "lora+checkpointing"});
  EXPECT_EQ(added_by(request), Texts{}) << "a real device takes real time";
  request.lists[Axis::kDevice] = {"emulated:h100-80gb"};
  request.ablation = false;
  EXPECT_EQ(added_by(request), Texts{}) << "turned off";
  request.ablation = true;
  request.lists[Axis::kStrategy] = {"baseline", "lora"};
  EXPECT_EQ(added_by(request), Texts{}) << "no stack";
  request.lists[Axis::kStrategy] = {"baseline", "lora+dora"};
  EXPECT_EQ(added_by(request), Texts{}) << "a conflict";
  request.lists[Axis::kStrategy] = {"baseline", "lora+checkpointing"};
  request.excludes = {{{{"strategy", "lora"}}, {}}, {{{"strategy", "checkpointing"}}, {}}};
  EXPECT_EQ(added_by(request), Texts{}) << "excluded";
}

TEST(Tables, GiveOptionsUnlessTypedOnes) {
  auto request = request_of({"vit-l-16", "vit-l-16,layers=2"}, {"lora"});
  request.model_options = {{"vit-l-16", {{"layers", "4"}}}};
  request.strategy_options = {{"lora", {{"rank", "32"}}}};
  EXPECT_EQ(ids_of(plan_of(request)), (Texts{"vit-l-16,layers=4/lora,rank=32/cpu/fp32/b1",
                                             "vit-l-16,layers=2/lora,rank=32/cpu/fp32/b1"}));
  request.strategy_options = {{"loar", {}}};
  EXPECT_EQ(error_of(request), "unknown strategy \"loar\"; did you mean \"lora\"?");
}

TEST(Device, AHookSaysWhatAutoStandsFor) {
  auto request = request_of({"vit-l-16"}, {"baseline"});
  request.lists[Axis::kDevice] = {"auto"};
  EXPECT_EQ(ids_of(plan_of(request)), (Texts{"vit-l-16/baseline/cpu/fp32/b1"}));
  const DeviceHook hook = [](const std::string& device) -> Texts {
    if (device == "auto") return {"emulated:h100-80gb", "cpu"};
    throw ConfigError("no such card");
  };
  EXPECT_EQ(
      ids_of(make_plan(request, fake_plugins(), hook)),
      (Texts{"vit-l-16/baseline/emulated:h100-80gb/fp32/b1", "vit-l-16/baseline/cpu/fp32/b1"}));
}

// Two releases of PyTorch; what is asked of both.
class TwoBuilds : public ::testing::Test {
 protected:
  TwoBuilds() {
    for (const char* release : {"2.11.0", "2.15.0"}) {
      planning::Worker worker;
      worker.program = release;
      Build build{.worker = std::make_shared<const planning::Worker>(worker),
                  .plugins = fake_plugins(),
                  .devices = {}};
      build.torch = release;
      builds.push_back(build);
    }
    request.ablation = false;
  }
  std::string error() {
    return message_of<ConfigError>([this] { make_plan(request, builds); });
  }

  Request request = request_of({"vit-l-16"}, {"baseline", "lora"});
  std::vector<Build> builds;
};

TEST_F(TwoBuilds, EachCaseIsPlannedWithEach) {
  const auto plan = make_plan(request, builds);
  EXPECT_EQ(ids_of(plan), (Texts{"vit-l-16/baseline/cpu/fp32/b1/torch-2.11.0",
                                 "vit-l-16/baseline/cpu/fp32/b1/torch-2.15.0",
                                 "vit-l-16/lora/cpu/fp32/b1/torch-2.11.0",
                                 "vit-l-16/lora/cpu/fp32/b1/torch-2.15.0"}));
  EXPECT_EQ(worker_of(plan.cases[1]).program, "2.15.0");
  EXPECT_EQ(only_worker(plan), nullptr);
  EXPECT_EQ(plan.reference, "baseline");
}

TEST_F(TwoBuilds, ARuleNamesThem) {
  request.excludes = {{{{"torch", "2.11"}, {"strategy", "lora"}}, {}}};
  request.includes = {{{{"torch", "2.15"}, {"dtype", "bf16"}, {"strategy", "baseline"}}, {}}};
  EXPECT_EQ(
      ids_of(make_plan(request, builds)),
      (Texts{"vit-l-16/baseline/cpu/fp32/b1/torch-2.11.0",
             "vit-l-16/baseline/cpu/fp32/b1/torch-2.15.0", "vit-l-16/lora/cpu/fp32/b1/torch-2.15.0",
             "vit-l-16/baseline/cpu/bf16/b1/torch-2.15.0"}));
  request.excludes = {{{{"torch", "2.6"}}, {}}};
  EXPECT_EQ(error(), "torch \"2.6\": no case has it; the run has 2.11.0, 2.15.0");
}

TEST_F(TwoBuilds, APluginThatOneLacksIsAnError) {
  std::erase_if(builds[1].plugins.plugins,
                [](const planning::Plugin& plugin) { return plugin.entries.front().id == "lora"; });
  EXPECT_TRUE(error().starts_with("unknown strategy \"lora\"")) << error();
  EXPECT_TRUE(error().ends_with(" (with 2.15.0)")) << error();
}

TEST_F(TwoBuilds, ReferencesAreOfTheSameRelease) {
  for (const auto& planned : make_plan(request, builds).cases)
    EXPECT_EQ(planned.spec.torch, worker_of(planned).program);
}

}  // namespace
}  // namespace peakbench::planning
