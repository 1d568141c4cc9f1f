// The driver's virtual memory, which expandable segments are made of, as a program meets it.
#include <cuda.h>

#include <cstring>

#include "runtime_fixture.h"

namespace peakbench::emulator {
namespace {

class VirtualMemory : public Runtime {
 protected:
  CUmemGenericAllocationHandle create(std::size_t bytes, CUresult expected = CUDA_SUCCESS) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &prop, 0), expected);
    return handle;
  }
};

TEST_F(VirtualMemory, IsChargedWhileHeldOrMapped) {
  CUdeviceptr base = 0;
  ASSERT_EQ(cuMemAddressReserve(&base, 2 * kTotal, 0, 0, 0), CUDA_SUCCESS)
      << "addresses cost nothing";
  EXPECT_EQ(free_bytes(), kTotal);
  const auto handle = create(10 * kPage);
  EXPECT_EQ(free_bytes(), kTotal - 10 * kPage);
  EXPECT_EQ(cuMemMap(base, 10 * kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base, 10 * kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE)
      << "something is there";
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), kTotal - 10 * kPage) << "still mapped";
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(base));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cuMemAddressFree(base, 2 * kTotal), CUDA_ERROR_INVALID_VALUE) << "something is mapped";
  EXPECT_EQ(cuMemUnmap(base, 10 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), kTotal);
  EXPECT_EQ(cuMemAddressFree(base, 2 * kTotal), CUDA_SUCCESS);
  EXPECT_GE(device(0).at("peak_virtual_bytes").get<std::size_t>(), 10 * kPage);
}

TEST_F(VirtualMemory, RunsOutTogetherWithCudaMalloc) {
  void* at = nullptr;
  ASSERT_EQ(cudaMalloc(&at, kTotal / 2), cudaSuccess);
  create(kTotal / 2 + kPage, CUDA_ERROR_OUT_OF_MEMORY);
  const auto handle = create(kTotal / 2);
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(device(0).at("peak_used_bytes"), kTotal);
  cuMemRelease(handle);
  cudaFree(at);
}

TEST_F(VirtualMemory, CopiesGoAcrossMappings) {
  CUdeviceptr base = 0;
  ASSERT_EQ(cuMemAddressReserve(&base, 2 * kPage, 0, 0, 0), CUDA_SUCCESS);
  const auto first = create(kPage), second = create(kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kPage, kPage, 0, second, 0), CUDA_SUCCESS);
  const char text[] = "across";
  void* at = reinterpret_cast<void*>(base + kPage - 3);
  EXPECT_EQ(cudaMemcpy(at, text, sizeof text, cudaMemcpyHostToDevice), cudaSuccess);
  char back[sizeof text] = "";
  EXPECT_EQ(cudaMemcpy(back, at, sizeof text, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, text);
  EXPECT_EQ(cuMemUnmap(base, 2 * kPage), CUDA_SUCCESS);
  cuMemRelease(first);
  cuMemRelease(second);
  cuMemAddressFree(base, 2 * kPage);
}

TEST_F(VirtualMemory, IsFoundByName) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  ASSERT_EQ(
      cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &found),
      cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
  EXPECT_EQ(function, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault,
                                             &found),
            cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace peakbench::emulator
