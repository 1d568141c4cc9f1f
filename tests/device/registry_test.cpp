// From a case's device to the module of its kind; modules that do not fit are refused with what to
// do.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "recording/device.h"
#include "support/scratch.h"

namespace peakbench::recording {
namespace {

using peakbench::testing::message_of;
using records::device_from;

std::string refusal(const std::string& file, const std::string& device = "cuda:0") {
  const std::string path = std::string(PEAKBENCH_PLANTED_MODULES) + "/" + file;
  auto message = message_of<ConfigError>([&] { open_module(path, device_from(device)); });
  if (const auto at = message.find(path); at != std::string::npos)
    message.replace(at, path.size(), file);
  return message;
}

TEST(Registry, TheCpuIsBuiltInAndHoldsItsBudget) {
  const auto device = make_device({device_from("cpu"), {}, "", 12345});
  EXPECT_TRUE(device->torch_device().is_cpu());
  EXPECT_EQ(device->clock(), "steady_clock");
  EXPECT_EQ(device->why_not_timed(), "");
  EXPECT_FALSE(device->emulated());
  EXPECT_EQ(device->settings().at("memory_limit_bytes"), 12345);
  EXPECT_GE(device->time_ns([] {}), 0);
}

TEST(Registry, AModuleThatIsNotThereSaysWhatIsNeeded) {
  EXPECT_EQ(
      refusal("libpeakbench_none.so"),
      "device 'cuda:0': libpeakbench_none.so: cannot open shared object file: No such file or "
      "directory. A real card needs a driver and a torch installed with its vendor libraries "
      "(set PEAKBENCH_TORCH_DIR); `peakbench doctor` says what is missing.");
  EXPECT_NE(refusal("libpeakbench_none.so", "emulated:h100-80gb")
                .find("device 'emulated:h100-80gb': libpeakbench_none.so: cannot open"),
            std::string::npos);
}

TEST(Registry, AModuleOfAnotherBuildIsRefusedWithBothStamps) {
  EXPECT_EQ(refusal("libplanted_revision.so"),
            "libplanted_revision.so: built for another Peakbench or LibTorch: it has device "
            "revision 0, this worker needs " +
                std::to_string(kDeviceRevision) + ". Install all of Peakbench.");
  EXPECT_EQ(refusal("libplanted_build.so"),
            "libplanted_build.so: built for another Peakbench or LibTorch: it has another build, "
            "this worker needs " +
                std::string(kBuildStamp) + ". Install all of Peakbench.");
}

TEST(Registry, AModuleOfAnotherKindOrOfNoneIsRefused) {
  EXPECT_EQ(refusal("libplanted_name.so"), "libplanted_name.so: is the module other, not cuda");
  EXPECT_EQ(refusal("libplanted_nothing.so"),
            "libplanted_nothing.so: has no entry peakbench_device_module");
}

}  // namespace
}  // namespace peakbench::recording
