// Devices as people type them, in their one form.
#include "base/errors.h"
#include "base/numbers.h"
#include "planning/device.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using testing::message_of;

TEST(Device, HasOneForm) {
  EXPECT_EQ(normal_device("cpu"), "cpu");
  EXPECT_EQ(normal_device("cuda"), "cuda:0");
  EXPECT_EQ(normal_device("cuda:01"), "cuda:1");
  EXPECT_EQ(normal_device("auto"), "auto");
  EXPECT_EQ(normal_device("emulated:h100-80gb,memory=60GiB,count=1"),
            "emulated:h100-80gb,memory=60GiB");
  EXPECT_EQ(normal_device("emulated:h100-80gb,memory=60GiB,count=8"),
            "emulated:h100-80gb,count=8,memory=60GiB");
}

TEST(Device, WrongOnesSayWhatIsRight) {
  const auto error = [](const std::string& text) {
    return message_of<ConfigError>([&] { normal_device(text); });
  };
  EXPECT_EQ(error("cdua:0"), "unknown device \"cdua:0\"; did you mean \"cuda:0\"?");
  EXPECT_EQ(error("h100"), "unknown device \"h100\"; did you mean \"emulated:h100-80gb\"?");
  EXPECT_EQ(error("tpu"), "unknown device \"tpu\"; did you mean \"cpu\"?");
  EXPECT_EQ(error("rocm:0"),
            "unknown device \"rocm:0\"; known: cpu, cuda:0, emulated:h100-80gb, auto");
  EXPECT_EQ(error("cuda:x"), "unknown device \"cuda:x\"; did you mean \"cuda:0\"?");
  EXPECT_EQ(error("cpu,memory=1GiB"), "device \"cpu\" has no option \"memory\"");
  EXPECT_EQ(error("emulated:"),
            "device \"emulated:\" names no card; expected emulated:CARD, like emulated:h100-80gb");
  EXPECT_EQ(error("emulated:x,memroy=1"),
            "unknown option \"memroy\" of device emulated:x; did you mean \"memory\"?");
  EXPECT_EQ(error("emulated:x,memory=0"),
            std::string("emulated:x,memory=0: expected ") + kExpectedBytes);
  EXPECT_EQ(error("emulated:x,count=0"), "emulated:x,count=0: expected an integer from 1 to 99");
}

}  // namespace
}  // namespace peakbench::planning
