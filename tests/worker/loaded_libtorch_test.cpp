// The LibTorch that was loaded against the one that the record says.
#include <ATen/Version.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/errors.h"
#include "planning/worker.h"
#include "worker/plugin_loader.h"

namespace peakbench::worker {
namespace {

using testing::HasSubstr;

constexpr const char* kBuild =
    "PyTorch built with:\n  - Build settings: BLAS_INFO=mkl, COMMIT_SHA=abc, CUDA_VERSION=13.0, "
    "CUDNN_VERSION=9.19.0\n";

TEST(LoadedLibtorch, TheOneThatWasExpected) {
  EXPECT_EQ(why_another_libtorch("2.11.0+cu130 abc 13.0", kBuild), "");
  EXPECT_EQ(why_another_libtorch("2.11.0+cpu abc none", "COMMIT_SHA=abc, USE_CUDA=0"), "");
}

TEST(LoadedLibtorch, AnotherBuildOrRevisionIsNamed) {
  EXPECT_THAT(why_another_libtorch("2.11.0+cu128 abc 12.8", kBuild),
              HasSubstr("version.py says 2.11.0+cu128 (revision abc, CUDA 12.8), its libraries are "
                        "of revision abc, CUDA 13.0. Install it anew: pip install "
                        "--force-reinstall torch==2.11.0"));
  EXPECT_THAT(why_another_libtorch("2.11.0+cu130 abd 13.0", kBuild),
              HasSubstr("libraries are of revision abc"));
  EXPECT_THAT(why_another_libtorch("2.11.0+cpu abc none", kBuild), HasSubstr("CUDA 13.0"));
  EXPECT_THAT(why_another_libtorch("2.11.0+cu130 abc 13.0", "COMMIT_SHA=abc, USE_CUDA=0"),
              HasSubstr("CUDA none"));
}

TEST(LoadedLibtorch, WhatTheBuildDoesNotSayIsNotCompared) {
  EXPECT_EQ(why_another_libtorch("2.11.0+cu130 abc 13.0", "a build of one's own"), "");
  EXPECT_EQ(why_another_libtorch("2.11.0", kBuild), "");
}

// What this LibTorch says of itself is as its stamp has it.
TEST(LoadedLibtorch, TheOneOfThisBuildIsItself) {
  ::setenv(planning::kLibtorchVariable, planning::libtorch_text({}).c_str(), 1);
  EXPECT_NO_THROW(check_loaded_libtorch());
  planning::Worker another;
  another.stamp.libtorch_git_version = "another";
  ::setenv(planning::kLibtorchVariable, planning::libtorch_text(another).c_str(), 1);
  EXPECT_THROW(check_loaded_libtorch(), ConfigError);
  ::unsetenv(planning::kLibtorchVariable);
  EXPECT_NO_THROW(check_loaded_libtorch());
}

}  // namespace
}  // namespace peakbench::worker
