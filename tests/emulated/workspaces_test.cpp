// Which workspaces the program gives to cuBLAS and cuBLASLt, as the stand-ins tell whoever asks.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime_fixture.h"

extern "C" {
int cublasCreate_v2(void** out);
int cublasDestroy_v2(void* handle);
int cublasSetWorkspace_v2(void* handle, void* workspace, std::size_t bytes);
int cublasLtMatmul(void* handle, void* description, const void* alpha, const void* a,
                   void* a_layout, const void* b, void* b_layout, const void* beta, const void* c,
                   void* c_layout, void* d, void* d_layout, const void* algorithm, void* workspace,
                   std::size_t workspace_bytes, void* stream);
}

namespace peakbench::emulator {
namespace {

using Given = std::vector<std::pair<const void*, std::string>>;
Given given;

void note(const void* address, const char* library) { given.emplace_back(address, library); }

void watch(void (*listener)(const void* address, const char* library)) {
  const auto ask = reinterpret_cast<void (*)(void (*)(const void*, const char*))>(
      dlsym(RTLD_DEFAULT, "peakbench_emulator_watch_workspaces"));
  ASSERT_NE(ask, nullptr);
  ask(listener);
}

void multiply(void* workspace) {
  EXPECT_EQ(cublasLtMatmul(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, nullptr, nullptr, nullptr, nullptr, workspace, 64, nullptr),
            0);
}

TEST(Workspaces, AreToldOfWhileTheyAreGiven) {
  char first[64], second[64];
  void* handle = nullptr;
  ASSERT_EQ(cublasCreate_v2(&handle), 0);
  watch(note);
  EXPECT_EQ(cublasSetWorkspace_v2(handle, first, sizeof first), 0);
  multiply(second);
  EXPECT_EQ(given, (Given{{first, "cuBLAS"}, {second, "cuBLASLt"}}));
  EXPECT_EQ(cublasSetWorkspace_v2(handle, nullptr, 0), 0);
  multiply(nullptr);
  EXPECT_NE(cublasSetWorkspace_v2(nullptr, first, sizeof first), 0) << "no handle";
  watch(nullptr);
  EXPECT_EQ(cublasSetWorkspace_v2(handle, first, sizeof first), 0);
  EXPECT_EQ(given.size(), 2U);
  EXPECT_EQ(cublasDestroy_v2(handle), 0);
}

}  // namespace
}  // namespace peakbench::emulator
