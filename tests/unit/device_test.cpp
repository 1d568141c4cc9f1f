// Devices as case ids name them, and as files from elsewhere may.
#include "records/device.h"

#include "base/errors.h"
#include "base/numbers.h"
#include "records/case.h"
#include "support/scratch.h"

namespace peakbench::records {
namespace {

using testing::message_of;

TEST(DeviceRecord, TheCpu) {
  const auto device = device_from("cpu");
  EXPECT_EQ(device.kind, DeviceKind::kCpu);
  EXPECT_EQ(device.id, "cpu");
  EXPECT_EQ(device.space, "cpu");
  EXPECT_TRUE(device.has_times);
  EXPECT_TRUE(device.computes_values);
  EXPECT_TRUE(device.results_repeat);
  EXPECT_TRUE(device.is_host_memory);
  EXPECT_FALSE(device.is_card);
  EXPECT_STREQ(device.module, "cpu");
}

TEST(DeviceRecord, ACardOfTheMachine) {
  const auto device = device_from("cuda:1");
  EXPECT_EQ(device.kind, DeviceKind::kCuda);
  EXPECT_EQ(device.id, "cuda:1");
  EXPECT_EQ(device.index, 1);
  EXPECT_EQ(device.space, "cuda:1");
  EXPECT_TRUE(device.has_times);
  EXPECT_TRUE(device.computes_values);
  EXPECT_FALSE(device.results_repeat);
  EXPECT_FALSE(device.is_host_memory);
  EXPECT_TRUE(device.is_card);
  EXPECT_STREQ(device.module, "cuda");
}

TEST(DeviceRecord, AnEmulatedCard) {
  const auto device = device_from("emulated:h100-80gb,memory=60GiB,count=2");
  EXPECT_EQ(device.kind, DeviceKind::kEmulated);
  EXPECT_EQ(device.id, "emulated:h100-80gb,count=2,memory=60GiB");
  EXPECT_EQ(device.card, "h100-80gb");
  EXPECT_EQ(device.options,
            (std::map<std::string, std::string>{{"count", "2"}, {"memory", "60GiB"}}));
  EXPECT_EQ(card_text(device), "h100-80gb,count=2,memory=60GiB");
  EXPECT_EQ(device.space, "cuda:0");
  EXPECT_FALSE(device.has_times);
  EXPECT_FALSE(device.computes_values);
  EXPECT_FALSE(device.results_repeat);
  EXPECT_FALSE(device.is_card);
  EXPECT_STREQ(device.module, "cuda");  // one module for real and emulated cards
}

TEST(DeviceRecord, FactsOfAKind) {
  EXPECT_STREQ(facts_of(DeviceKind::kCuda).word, "cuda");
  EXPECT_STREQ(facts_of(DeviceKind::kEmulated).module, "cuda");
  EXPECT_STREQ(facts_of(DeviceKind::kUnknown).module, "");
  EXPECT_TRUE(facts_of(DeviceKind::kUnknown).has_times);
}

// Static assertions hold the table to it; these are what people read.
TEST(DeviceRecord, WhatItCannotDoHasItsReason) {
  const auto device = device_from("emulated:h100-80gb");
  EXPECT_STREQ(device.no_times, "an emulated card computes nothing: it has no times");
  EXPECT_STREQ(device.no_values, "an emulated card computes no values");
  EXPECT_STREQ(device_from("cpu").no_times, "");
  EXPECT_STREQ(recorded_device("tpu:4").no_values, "");
}

TEST(DeviceRecord, HasOneForm) {
  EXPECT_EQ(device_from("cuda:01").id, "cuda:1");
  EXPECT_EQ(device_from("emulated:h100-80gb").id, "emulated:h100-80gb");
  EXPECT_EQ(device_from("emulated:h100-80gb,count=1").id, "emulated:h100-80gb");
  EXPECT_EQ(device_from("emulated:x,driver=13.0,context=1GiB").id,
            "emulated:x,context=1GiB,driver=13.0");
  EXPECT_EQ(device_from("emulated:x,context=0").id, "emulated:x,context=0") << "none set aside";
  EXPECT_EQ(device_from("emulated:./my card.json").card, "./my card.json");
  EXPECT_EQ(device_from(emulated_device("h100-80gb")).card, "h100-80gb");
}

TEST(DeviceRecord, EveryExampleIsADeviceOfAKindOfItsOwn) {
  std::map<DeviceKind, std::string> seen;
  for (const auto& example : device_examples()) {
    const auto device = device_from(example);
    EXPECT_EQ(device.id, example);
    EXPECT_TRUE(seen.emplace(device.kind, example).second) << example;
    EXPECT_STRNE(device.module, "");
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(DeviceRecord, WrongFormsSayWhatIsRight) {
  const auto error = [](const std::string& id) {
    return message_of<ConfigError>([&] { device_from(id); });
  };
  EXPECT_EQ(error("rocm:0"), "unknown device \"rocm:0\"; known: cpu, cuda:0, emulated:h100-80gb");
  for (const std::string wrong : {"", "auto", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:1000",
                                  "cuda:0:0", "cpu:0", "cpu ", "CPU", "emulated", "cudas:0"})
    EXPECT_TRUE(error(wrong).starts_with("unknown device \"" + wrong + "\"")) << error(wrong);
  EXPECT_EQ(error("cuda:x"), "unknown device \"cuda:x\"; did you mean \"cuda:0\"?");
  EXPECT_EQ(error("cpu,memory=1GiB"), "device \"cpu\" has no option \"memory\"");
  EXPECT_EQ(error("cuda:1,memory=1GiB"), "device \"cuda:1\" has no option \"memory\"");
  for (const std::string wrong : {"emulated:", "emulated:,memory=1GiB"})
    EXPECT_EQ(error(wrong),
              "device \"emulated:\" names no card; expected emulated:CARD, like "
              "emulated:h100-80gb");
  EXPECT_EQ(error("emulated:x,memroy=1"),
            "unknown option \"memroy\" of device emulated:x; did you mean \"memory\"?");
  EXPECT_EQ(error("emulated:x,memory=0"),
            std::string("emulated:x,memory=0: expected ") + kExpectedBytes);
  EXPECT_EQ(error("emulated:x,memory=24"),
            "emulated:x,memory=24: that is 24 bytes; the unit is missing, as in 24GiB");
  EXPECT_EQ(error("emulated:x,count=0"), "emulated:x,count=0: expected an integer from 1 to 99");
  EXPECT_EQ(error("emulated:x,count=100"),
            "emulated:x,count=100: expected an integer from 1 to 99");
  EXPECT_EQ(error("emulated:x,memory"), "emulated:x,memory: expected name=value, got \"memory\"");
  EXPECT_EQ(error("emulated:x,=1"), "emulated:x,=1: expected name=value, got \"=1\"");
  EXPECT_EQ(error("emulated:x,"), "emulated:x,: expected name=value, got \"\"");
  EXPECT_EQ(error("emulated:x,memory=1GiB,memory=2GiB"),
            "emulated:x: option \"memory\" is given twice");
}

// Nothing is promised of it, nothing is taken from it.
TEST(DeviceRecord, AKindThatNobodyKnowsIsShownAsItStands) {
  for (const std::string text : {"", "tpu:4", "h100", "<script>", "pinned", "cudas:0"}) {
    const auto device = recorded_device(text);
    EXPECT_EQ(device.kind, DeviceKind::kUnknown) << text;
    EXPECT_EQ(device.id, text);
    EXPECT_EQ(device.space, text);
    EXPECT_TRUE(device.has_times);
    EXPECT_TRUE(device.computes_values);
    EXPECT_FALSE(device.results_repeat);
    EXPECT_FALSE(device.is_card);
    EXPECT_STREQ(device.model_fact, "card");
  }
}

TEST(DeviceRecord, AKnownKindThatIsWrongOtherwiseHasItsKindsFacts) {
  const auto card = recorded_device("emulated:x,memory=none");
  EXPECT_EQ(card.kind, DeviceKind::kEmulated);
  EXPECT_EQ(card.id, "emulated:x,memory=none");
  EXPECT_EQ(card.space, "cuda:0");
  EXPECT_FALSE(card.has_times);
  EXPECT_EQ(recorded_device("cuda:all").kind, DeviceKind::kCuda);
  EXPECT_EQ(recorded_device("cuda:all").space, "cuda:all");
  EXPECT_EQ(recorded_device("cuda:2").index, 2);
}

TEST(DeviceRecord, ACaseIsEmulatedByItsDeviceOrByWhatItsWorkerSaid) {
  CaseResult result;
  for (const std::string real : {"cpu", "cuda:0", "tpu:0", ""}) {
    result.spec.device = real;
    EXPECT_FALSE(is_emulated(result)) << real;
  }
  result.emulation = Emulation{};
  for (const std::string any : {"cuda:0", "tpu:0", "emulated:h100-80gb"}) {
    result.spec.device = any;
    EXPECT_TRUE(is_emulated(result)) << any;
  }
  result.emulation.reset();
  for (const std::string card : {"emulated:h100-80gb", "emulated:x,memory=none"}) {
    result.spec.device = card;
    EXPECT_TRUE(is_emulated(result)) << card;
  }
}

}  // namespace
}  // namespace peakbench::records
