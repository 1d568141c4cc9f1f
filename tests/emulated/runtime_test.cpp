// The stand-ins as a program meets them: through CUDA's own interface, in a process that runs on
// them.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "core/card.h"
#include "in_emulation.h"
#include "runtime_fixture.h"

// Reads with a name of its own in the report.
extern "C" __attribute__((visibility("default"), noinline)) int read_by_this_test(void* at) {
  int value = -1;
  EXPECT_EQ(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
  return value;
}

namespace peakbench::emulator {
namespace {

std::int64_t calls_of(const nlohmann::json& rows, const std::string& name) {
  for (const auto& row : rows) {
    if (row.at("name") == name) return row.at("calls");
  }
  return 0;
}

nlohmann::json read_backs_of_this_test() {
  const nlohmann::json ledger = report();
  nlohmann::json sum = {{"calls", 0}, {"zero_calls", 0}, {"uncertain_calls", 0}, {"bytes", 0}};
  std::string library;
  for (const auto& row : ledger.at("read_backs")) {
    if (row.at("function") != "read_by_this_test") continue;
    for (auto& [name, value] : sum.items())
      value = value.get<std::int64_t>() + row.at(name).get<std::int64_t>();
    library = row.at("library");
  }
  sum["library"] = library;
  return sum;
}

TEST_F(Runtime, OutOfMemoryIsAnErrorOnceAndNothingIsLost) {
  void* first = nullptr;
  ASSERT_EQ(cudaMalloc(&first, kTotal - kPage), cudaSuccess);
  void* second = nullptr;
  const auto refused = device(0).at("refused_allocations").get<int>();
  EXPECT_EQ(cudaMalloc(&second, kPage + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(device(0).at("refused_allocations").get<int>(), refused + 1);
  EXPECT_EQ(device(0).at("last_refused_bytes"), 2 * kPage);
  EXPECT_EQ(cudaMalloc(&second, kPage), cudaSuccess);
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
}

TEST_F(Runtime, AnAbsurdSizeIsOutOfMemoryToo) {
  void* at = nullptr;
  EXPECT_EQ(cudaMalloc(&at, ~std::size_t{0}), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

TEST_F(Runtime, MemoryIsChargedInPagesAndAddressesRepeat) {
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, 1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&b, 3 * kMiB), cudaSuccess);
  EXPECT_EQ(free_bytes(), kTotal - kPage - 2 * kPage);
  EXPECT_EQ(reinterpret_cast<std::size_t>(a) % kPage, 0u);
  EXPECT_EQ(reinterpret_cast<std::size_t>(b) % kPage, 0u);
  cudaFree(a);
  void* again = nullptr;
  ASSERT_EQ(cudaMalloc(&again, 1), cudaSuccess);
  EXPECT_EQ(again, a);
  cudaFree(again);
  cudaFree(b);
}

TEST_F(Runtime, FreeingTwiceOrWhatWasNeverGivenIsAnError) {
  void* at = nullptr;
  ASSERT_EQ(cudaMalloc(&at, kMiB), cudaSuccess);
  EXPECT_EQ(cudaFree(static_cast<char*>(at) + 512), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(at), cudaSuccess);
  EXPECT_EQ(cudaFree(at), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(Runtime, SmallAllocationsKeepTheBytesThatWereCopiedIn) {
  int* at = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), kPage), cudaSuccess);
  const auto before = read_backs_of_this_test();
  EXPECT_EQ(read_by_this_test(at), 0) << "never written: zeros";
  const int value = 42;
  cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice);
  EXPECT_EQ(read_by_this_test(at), 42);
  cudaMemcpy(at + 100, at, sizeof value, cudaMemcpyDeviceToDevice);
  EXPECT_EQ(read_by_this_test(at + 100), 42);
  cudaMemset(at + 200, 1, sizeof value);
  EXPECT_EQ(read_by_this_test(at + 200), 0x01010101);
  const auto after = read_backs_of_this_test();
  EXPECT_EQ(after.at("calls").get<int>(), before.at("calls").get<int>() + 4);
  EXPECT_EQ(after.at("zero_calls").get<int>(), before.at("zero_calls").get<int>() + 1)
      << "only the first was a guess";
  EXPECT_EQ(after.at("bytes").get<int>(), before.at("bytes").get<int>() + 16);
  cudaFree(at);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), kPage), cudaSuccess);
  EXPECT_EQ(read_by_this_test(at), 0) << "a new allocation does not see an old one's bytes";
  cudaFree(at);
}

TEST_F(Runtime, LargeAllocationsReadAsZerosAndSayWhoRead) {
  int* at = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), kPage + 1), cudaSuccess);
  const int value = 42;
  EXPECT_EQ(cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
  const auto before = read_backs_of_this_test();
  EXPECT_EQ(read_by_this_test(at), 0);
  const auto after = read_backs_of_this_test();
  EXPECT_EQ(after.at("zero_calls").get<int>(), before.at("zero_calls").get<int>() + 1);
  EXPECT_EQ(after.at("library"), "emulated_runtime_test");
  // What is unknown stays so when it is copied on.
  int* small = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&small), 64), cudaSuccess);
  cudaMemcpy(small, &value, sizeof value, cudaMemcpyHostToDevice);
  cudaMemcpy(small, at, sizeof value, cudaMemcpyDeviceToDevice);
  EXPECT_EQ(read_by_this_test(small), 0);
  EXPECT_EQ(read_backs_of_this_test().at("zero_calls").get<int>(),
            after.at("zero_calls").get<int>() + 1);
  cudaFree(small);
  cudaFree(at);
}

TEST_F(Runtime, WhatWasCopiedBeforeALaunchIsUncertainAfterIt) {
  int* at = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), 64), cudaSuccess);
  const int value = 42;
  cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice);
  const auto before = read_backs_of_this_test();
  read_by_this_test(at);
  auto after = read_backs_of_this_test();
  EXPECT_EQ(after.at("uncertain_calls"), before.at("uncertain_calls"));
  cudaLaunchKernel(&kTotal, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr);
  EXPECT_EQ(read_by_this_test(at), 42);
  after = read_backs_of_this_test();
  EXPECT_EQ(after.at("uncertain_calls").get<int>(), before.at("uncertain_calls").get<int>() + 1);
  EXPECT_EQ(after.at("zero_calls"), before.at("zero_calls"));
  cudaFree(at);
}

// Last of the tests of kept bytes: from here on the process has an allocator that is listened to.
TEST_F(Runtime, WhatAnAllocatorHandsOutAgainIsForgotten) {
  const auto watch =
      reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "peakbench_emulator_watch_allocator"));
  const auto handed_out = reinterpret_cast<void (*)(std::uint64_t, std::uint64_t)>(
      dlsym(RTLD_DEFAULT, "peakbench_emulator_handed_out"));
  watch();
  int* at = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), kPage), cudaSuccess);
  const int values[] = {42, 43};
  cudaMemcpy(at, values, sizeof values, cudaMemcpyHostToDevice);
  handed_out(reinterpret_cast<std::uint64_t>(at), sizeof(int));
  const auto before = read_backs_of_this_test();
  EXPECT_EQ(read_by_this_test(at), 0) << "an earlier tensor's value";
  EXPECT_EQ(read_by_this_test(at + 1), 43);
  EXPECT_EQ(read_backs_of_this_test().at("zero_calls").get<int>(),
            before.at("zero_calls").get<int>() + 1);
  cudaFree(at);
}

TEST_F(Runtime, CopiesPastAnAllocationAreErrors) {
  char *at = nullptr, *next = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), kPage), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&next), kPage), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), 4096, 0), cudaSuccess);
  char host[16] = "123456789012345";
  EXPECT_EQ(cudaMemset(at + kPage - 8, 0, 8), cudaSuccess);
  EXPECT_EQ(cudaMemset(at + kPage - 8, 1, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host, 0, 16), cudaErrorInvalidValue) << "not CUDA's memory";
  EXPECT_EQ(cudaMemcpy(at + kPage - 8, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, at + kPage - 8, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(at + kPage - 24, 16, host, 4, 4, 3, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue)
      << "the last row";
  EXPECT_EQ(cudaMemcpy(pinned + 4088, at, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(next - (1ull << 40), host, 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue)
      << "addresses of the card where nothing is";
  EXPECT_EQ(host[0], '1');
  for (char* end : {at + kPage - 8, next}) {
    EXPECT_EQ(cudaMemcpy(host, end, 8, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(host[0], 0) << "nothing is overwritten";
  }
  const auto faults = report().at("faults").dump();
  for (const char* what :
       {"a fill past the end of its block was refused (",
        "a copy past the end of its block was refused (",
        "a copy of rows where no memory is was refused", "a copy where no memory is was refused"})
    EXPECT_NE(faults.find(what), std::string::npos) << what << " in " << faults;
  cudaFreeHost(pinned);
  cudaFree(next);
  cudaFree(at);
}

// Run with the guard alone (CMakeLists.txt): whoever writes past an allocation is stopped.
TEST_F(Runtime, TheGuardStopsAWriteBeyond) {
  if (!std::getenv(kGuardVariable)) GTEST_SKIP() << "without " << kGuardVariable;
  char *at = nullptr, *next = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&next), kPage), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&at), kPage), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), 4096, 0), cudaSuccess);
  at[kPage - 1] = 1;
  pinned[4095] = 1;
  EXPECT_DEATH(at[kPage] = 1, "");
  EXPECT_DEATH(pinned[4096] = 1, "");
  cudaFreeHost(pinned);
  cudaFree(at);
  cudaFree(next);
}

// Run with delays alone (CMakeLists.txt), like the other tests, which must not notice them.
TEST_F(Runtime, ThreadsAreDelayedWhereThatIsAskedFor) {
  if (!std::getenv(kDelaysVariable)) GTEST_SKIP() << "without " << kDelaysVariable;
  const auto began = std::chrono::steady_clock::now();
  for (int call = 0; call < 1000; ++call) free_bytes();
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(10));
}

std::size_t resident_pages(void* at, std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(mincore(at, bytes, pages.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

TEST_F(Runtime, WhatIsOffloadedTakesNoMemoryOfThisMachine) {
  constexpr std::size_t kBytes = 8 * kMiB;
  void *on_device = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&on_device, kBytes), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&pinned, kBytes, 0), cudaSuccess);
  auto* const at = static_cast<char*>(pinned);
  std::memset(at, 7, kBytes);
  EXPECT_EQ(resident_pages(pinned, kBytes), kBytes / 4096);
  ASSERT_EQ(cudaMemcpy(at + 100, on_device, kBytes - 200, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_LE(resident_pages(pinned, kBytes), 2U);
  EXPECT_EQ(at[99], 7);
  EXPECT_EQ(at[100], 0);
  EXPECT_EQ(at[kBytes / 2], 0);
  EXPECT_EQ(at[kBytes - 101], 0);
  EXPECT_EQ(at[kBytes - 100], 7);
  cudaFreeHost(pinned);
  cudaFree(on_device);
}

TEST_F(Runtime, PointersAreToldApart) {
  void *on_device = nullptr, *pinned = nullptr;
  int ordinary = 0;
  ASSERT_EQ(cudaMalloc(&on_device, 1), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&pinned, 10 * kMiB, 0), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, on_device), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 5 * kMiB),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &ordinary), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(free_bytes(), kTotal - kPage) << "pinned memory is the host's";
  EXPECT_GE(report().at("peak_pinned_bytes").get<std::size_t>(), 10 * kMiB);
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(&ordinary, sizeof ordinary, 0), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &ordinary), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaHostUnregister(&ordinary), cudaSuccess);
  cudaFree(on_device);
}

TEST_F(Runtime, DevicesHaveMemoryOfTheirOwn) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_EQ(count, 3);
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  void* at = nullptr;
  ASSERT_EQ(cudaMalloc(&at, kTotal), cudaSuccess);
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(device(2).at("used_bytes"), kTotal);
  EXPECT_EQ(device(0).at("used_bytes"), 0);
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, at);
  EXPECT_EQ(attributes.device, 2);
  cudaSetDevice(0);
  EXPECT_EQ(free_bytes(), kTotal);
  cudaFree(at);
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
  int now = -1;
  cudaGetDevice(&now);
  EXPECT_EQ(now, 0);
}

TEST_F(Runtime, StreamsAndEventsAreHandlesThatMustExist) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaSuccess);
  float elapsed = 0;
  EXPECT_EQ(cudaEventElapsedTime(&elapsed, event, event), cudaSuccess);
  EXPECT_EQ(elapsed, 1000) << "an emulated card has no times: autotuning divides by this one";
  EXPECT_GE(calls_of(report().at("unmodelled"), "time between events: always one second"), 1);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
}

TEST_F(Runtime, LaunchesAreCheckedCountedAndCaptured) {
  const auto before = report().at("kernel_launches").get<int>();
  const void* kernel = &kTotal;
  EXPECT_EQ(cudaLaunchKernel(kernel, {1, 1, 1}, {1024, 1, 1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(kernel, {1, 1, 1}, {1025, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, {0, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(report().at("kernel_launches").get<int>(), before + 1);
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaEventCreate(&event);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream);
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(other, event, 0);
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(other, &status);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive) << "who waits for a capture joins it";
  cudaLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, other);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  std::size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  EXPECT_EQ(nodes, 2u);
  cudaStreamIsCapturing(other, &status);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
}

// In the default mode as on an H200 (tests/emulated/real_card); in others, and from another thread,
// as CUDA's documentation says.
TEST_F(Runtime, WhatACaptureDoesNotBearEndsIt) {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t before = nullptr, inside = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaEventCreate(&before);
  cudaEventCreate(&inside);
  cudaEventRecord(before, stream);
  void* memory = nullptr;
  cudaStreamCaptureMode mode{};
  const auto during = [&](auto call, cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cudaEventRecord(inside, stream);
    mode = own;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const cudaError_t said = call();
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaStreamCaptureStatus status{};
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    const bool disturbed = said != cudaSuccess;
    EXPECT_EQ(status,
              disturbed ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
              disturbed ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    EXPECT_EQ(graph == nullptr, disturbed);
    cudaGetLastError();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "over with the capture";
    return said;
  };
  const auto malloc = [&] { return cudaMalloc(&memory, 512); };
  const auto synchronize = [] { return cudaDeviceSynchronize(); };
  EXPECT_EQ(during([] { return cudaSuccess; }), cudaSuccess);
  EXPECT_EQ(during(synchronize), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during(synchronize, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
  for (cudaStream_t one : {stream, other}) {
    EXPECT_EQ(during([&] { return cudaStreamSynchronize(one); }),
              cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(during([&] { return cudaStreamQuery(one); }), cudaErrorStreamCaptureUnsupported);
  }
  EXPECT_EQ(during([&] { return cudaStreamQuery(other); }, cudaStreamCaptureModeRelaxed),
            cudaSuccess);
  EXPECT_EQ(during([&] { return cudaEventQuery(before); }), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during([&] { return cudaEventSynchronize(before); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during([&] { return cudaEventQuery(inside); }), cudaErrorCapturedEvent);
  EXPECT_EQ(during([&] { return cudaEventSynchronize(inside); }, cudaStreamCaptureModeRelaxed),
            cudaErrorCapturedEvent);
  EXPECT_EQ(during(malloc), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during(malloc, cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during(malloc, cudaStreamCaptureModeRelaxed), cudaSuccess);
  cudaFree(memory);
  // Another thread: by its own mode.
  const auto elsewhere = [&](cudaStreamCaptureMode own) {
    cudaError_t said = cudaSuccess;
    std::thread([&] {
      cudaThreadExchangeStreamCaptureMode(&own);
      said = cudaEventQuery(before);
    }).join();
    return said;
  };
  EXPECT_EQ(during([&] { return elsewhere(cudaStreamCaptureModeGlobal); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(during([&] { return elsewhere(cudaStreamCaptureModeThreadLocal); }), cudaSuccess);
  // A stream of another capture does not join, and both are over.
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed), cudaSuccess);
  cudaEventRecord(inside, stream);
  cudaStreamWaitEvent(other, inside, 0);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);
  // Nor does one outlast its stream.
  cudaStream_t gone = nullptr;
  cudaStreamCreate(&gone);
  ASSERT_EQ(cudaStreamBeginCapture(gone, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaStreamDestroy(gone);
  EXPECT_EQ(cudaEventQuery(before), cudaSuccess);
  cudaEventDestroy(before);
  cudaEventDestroy(inside);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
}

TEST_F(Runtime, RefusedCallsSayTheirName) {
  cudaMemAccessFlags flags{};
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaMemPoolGetAccess(&flags, nullptr, nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaMemPoolGetAccess(&flags, nullptr, nullptr), cudaErrorNotSupported);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cudaMemPoolGetAccess is not emulated"), std::string::npos);
  EXPECT_EQ(said.find("cudaMemPoolGetAccess", said.find("cudaMemPoolGetAccess") + 1),
            std::string::npos)
      << "once";
  EXPECT_EQ(calls_of(report().at("refused"), "cudaMemPoolGetAccess"), 2);
}

TEST_F(Runtime, ManyEntriesOfOneKindLeaveThoseOfAnotherTheirRoom) {
  const auto unspecified = reinterpret_cast<void (*)(const char*, const char*)>(
      dlsym(RTLD_DEFAULT, "peakbench_emulator_unspecified"));
  const auto no_workspace = reinterpret_cast<void (*)(const char*)>(
      dlsym(RTLD_DEFAULT, "peakbench_emulator_no_workspace"));
  ASSERT_TRUE(unspecified && no_workspace);
  constexpr int kMany = 100'000;
  for (int i = 0; i < kMany; ++i)
    unspecified(("aten::many" + std::to_string(i)).c_str(), "the order");
  no_workspace("cusolverDnLate_bufferSize");
  const auto unmodelled = report().at("unmodelled");
  EXPECT_EQ(calls_of(unmodelled, "cusolverDnLate_bufferSize: answered with 0 bytes"), 1);
  std::int64_t calls = 0;
  for (const auto& row : unmodelled)
    if (row.at("kind") == "open_choice") calls += row.at("calls").get<std::int64_t>();
  EXPECT_EQ(calls, kMany) << "what finds no row is counted";
}

// A handle is of use in another process alone, which tests/emulated/programs_test.py has.
TEST_F(Runtime, HandlesOfMemoryForOtherProcesses) {
  cudaIpcMemHandle_t handle;
  void *at = nullptr, *again = nullptr;
  ASSERT_EQ(cudaMalloc(&at, 1), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, at), cudaSuccess);
  EXPECT_EQ(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorDeviceUninitialized);
  std::memset(&handle, 1, sizeof handle);
  EXPECT_EQ(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, &handle), cudaErrorInvalidValue) << "the host's";
  cudaFree(at);
}

TEST_F(Runtime, LimitsAreRememberedAndSharedWithTheDriver) {
  std::size_t bytes = 0;
  ASSERT_EQ(cuCtxGetLimit(&bytes, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 1u << 20);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 3u << 20), CUDA_SUCCESS);
  ASSERT_EQ(cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize), cudaSuccess);
  EXPECT_EQ(bytes, 3u << 20);
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1u << 20), cudaSuccess);
  EXPECT_EQ(cuCtxGetLimit(&bytes, static_cast<CUlimit>(99)), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST_F(Runtime, LaunchesAndOccupancyAsTritonAsksForThem) {
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = 4;
  cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 128;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = &cluster;
  config.numAttrs = 1;
  const auto before = report().at("kernel_launches").get<int>();
  EXPECT_EQ(cuLaunchKernelEx(&config, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(report().at("kernel_launches").get<int>(), before + 1);
  int clusters = 0;
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&clusters, nullptr, &config), CUDA_SUCCESS);
  EXPECT_EQ(clusters, 132 * (2048 / 128) / 4) << "an H100 has 132 multiprocessors";
  config.sharedMemBytes = 1 << 20;
  EXPECT_EQ(cuLaunchKernelEx(&config, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Runtime, AForkedChildOfACudaProcessHasNoCuda) {
  const auto allocations = device(0).at("allocations").get<int>();
  const pid_t child = fork();
  if (child == 0) {
    void* at = nullptr;
    _exit(cudaMalloc(&at, 1) == cudaErrorInitializationError ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(device(0).at("allocations").get<int>(), allocations)
      << "the child wrote into its parent's ledger";
}

TEST_F(Runtime, EveryCublasHandleIsItsOwn) {
  const auto create = reinterpret_cast<int (*)(void**)>(dlsym(RTLD_DEFAULT, "cublasCreate_v2"));
  const auto destroy = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "cublasDestroy_v2"));
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(create(&first), 0);
  ASSERT_EQ(create(&second), 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(destroy(first), 0);
  EXPECT_NE(destroy(first), 0);
  EXPECT_EQ(destroy(second), 0);
}

}  // namespace
}  // namespace peakbench::emulator

int main(int count, char** words) {
  peakbench::emulator::start_again_on(peakbench::emulator::kCard, words);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
