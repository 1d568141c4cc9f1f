// The card that the tests of the stand-ins run on, and what each test must leave as it was.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>

namespace peakbench::emulator {

inline constexpr std::size_t kMiB = 1 << 20;
inline constexpr std::size_t kTotal = 64 * kMiB;  // of kCard
inline constexpr std::size_t kPage = 2 * kMiB;

inline nlohmann::json report() {
  const auto ask =
      reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "peakbench_emulator_report"));
  return nlohmann::json::parse(ask());
}

inline nlohmann::json device(int index) { return report().at("devices").at(index); }

inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, kTotal);
  return free;
}

inline constexpr const char* kCard = "h100-80gb,memory=64MiB,count=3";

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    cudaSetDevice(0);
    cudaGetLastError();
    ASSERT_EQ(free_bytes(), kTotal);
  }
  void TearDown() override { EXPECT_EQ(free_bytes(), kTotal) << "a test left memory behind"; }
};

}  // namespace peakbench::emulator
