// NCCL for a rank alone in its process: communicators that know their size, collectives that move
// nothing between ranks. What a rank has itself arrives where it would: one's own part of a gather,
// one's own sum of one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "core/entry.h"
#include "vendor_versions.h"

using namespace peakbench::emulator;

namespace {

constexpr int kInvalidArgument = 4;
constexpr int kOwnVersion = kNcclMajor * 10000 + kNcclMinor * 100 + kNcclPatch;

struct Communicator {
  int ranks;
  int rank;
  int device;
};

struct Communicators {
  std::mutex mutex;
  std::unordered_map<void*, Communicator> known;
};

Communicators& communicators() {
  static auto* const communicators = new Communicators;
  return *communicators;
}

int create(void** out, int ranks, int rank) {
  unmodelled("NCCL: its own device memory");
  *out = new_handle();
  std::lock_guard lock(communicators().mutex);
  communicators().known[*out] = {ranks, rank, current_device()};
  return kSuccess;
}

int destroy(void* communicator) {
  std::lock_guard lock(communicators().mutex);
  return communicators().known.erase(communicator) ? kSuccess : kInvalidArgument;
}

template <typename Work>
int with(void* communicator, Work&& work) {
  Communicator found;
  {
    std::lock_guard lock(communicators().mutex);
    auto at = communicators().known.find(communicator);
    if (at == communicators().known.end()) return kInvalidArgument;
    found = at->second;
  }
  return work(found);
}

// ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, e4m3,
// e5m2.
std::size_t element_bytes(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 0;
}

int copy(void* to, const void* from, std::size_t bytes) {
  if (to == from) return kSuccess;
  return copy_bytes(to, from, bytes) == MemoryResult::ok ? kSuccess : kInvalidArgument;
}

// Every rank's part is taken to be like one's own: what programs check with a gather (that ranks
// agree) holds.
int gather(void* to, const void* from, std::size_t bytes, const Communicator& self) {
  int result = kSuccess;
  for (int rank = 0; rank < self.ranks && result == kSuccess; ++rank) {
    result = copy(static_cast<char*>(to) + rank * bytes, from, bytes);
  }
  return result;
}

}  // namespace

PEAKBENCH_ENTRY int ncclGetVersion(int* out) {
  return give(out, nccl_version() ? nccl_version() : kOwnVersion);
}

PEAKBENCH_ENTRY int ncclGetUniqueId(char* out) {
  std::memset(out, 0, 128);
  constexpr std::string_view kName = "peakbench";
  std::copy(kName.begin(), kName.end(), out);
  return kSuccess;
}

struct UniqueId {
  char bytes[128];
};

PEAKBENCH_ENTRY int ncclCommInitRank(void** out, int ranks, UniqueId, int rank) {
  return create(out, ranks, rank);
}
PEAKBENCH_ENTRY int ncclCommInitRankConfig(void** out, int ranks, UniqueId, int rank, void*) {
  return create(out, ranks, rank);
}
PEAKBENCH_ENTRY int ncclCommInitRankScalable(void** out, int ranks, int rank, int, UniqueId*,
                                             void*) {
  return create(out, ranks, rank);
}

PEAKBENCH_ENTRY int ncclCommInitAll(void** out, int devices, const int*) {
  for (int i = 0; i < devices; ++i) create(out + i, devices, i);
  return kSuccess;
}

// Everyone of one's colour is taken to be in the new one: the ranks of a program that splits evenly
// are not known here.
PEAKBENCH_ENTRY int ncclCommSplit(void* parent, int color, int key, void** out, void*) {
  if (color < 0) return give(out, static_cast<void*>(nullptr));
  return with(parent, [&](const Communicator& self) {
    unmodelled("ncclCommSplit: the new communicator has as many ranks as the old one");
    return create(out, self.ranks, key < self.ranks ? key : self.rank);
  });
}

PEAKBENCH_ENTRY int ncclCommFinalize(void*) { return kSuccess; }
PEAKBENCH_ENTRY int ncclCommDestroy(void* communicator) { return destroy(communicator); }
PEAKBENCH_ENTRY int ncclCommAbort(void* communicator) { return destroy(communicator); }
PEAKBENCH_ENTRY int ncclCommGetAsyncError(void*, int* out) { return give(out, kSuccess); }

PEAKBENCH_ENTRY int ncclCommCount(void* communicator, int* out) {
  return with(communicator, [&](const Communicator& self) { return give(out, self.ranks); });
}
PEAKBENCH_ENTRY int ncclCommUserRank(void* communicator, int* out) {
  return with(communicator, [&](const Communicator& self) { return give(out, self.rank); });
}
PEAKBENCH_ENTRY int ncclCommCuDevice(void* communicator, int* out) {
  return with(communicator, [&](const Communicator& self) { return give(out, self.device); });
}

// Memory that the program has already, made known: PyTorch does so with its allocator's. What NCCL
// keeps for it is its own.
PEAKBENCH_ENTRY int ncclCommRegister(void* communicator, void*, std::size_t, void** out) {
  return with(communicator, [&](const Communicator&) { return give_handle(out); });
}
PEAKBENCH_ENTRY int ncclCommDeregister(void* communicator, void*) {
  return with(communicator, [](const Communicator&) { return kSuccess; });
}

PEAKBENCH_ENTRY const char* ncclGetErrorString(int error) {
  return error == kSuccess ? "no error" : "an error of the emulated NCCL";
}
PEAKBENCH_ENTRY const char* ncclGetLastError(void*) { return ""; }
// The same under the names that NCCL has for profilers.
PEAKBENCH_ENTRY const char* pncclGetErrorString(int error) { return ncclGetErrorString(error); }
PEAKBENCH_ENTRY const char* pncclGetLastError(void*) { return ""; }

PEAKBENCH_ENTRY int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                  void* communicator, void*) {
  return with(communicator, [&](const Communicator& self) {
    return gather(to, from, count * element_bytes(type), self);
  });
}
PEAKBENCH_ENTRY int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int,
                                  void* communicator, void*) {
  return with(communicator,
              [&](const Communicator&) { return copy(to, from, count * element_bytes(type)); });
}
PEAKBENCH_ENTRY int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int,
                                  void* communicator, void*) {
  return with(communicator,
              [&](const Communicator&) { return copy(to, from, count * element_bytes(type)); });
}
PEAKBENCH_ENTRY int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int,
                                      void* communicator, void*) {
  return with(communicator, [&](const Communicator& self) {
    const auto bytes = count * element_bytes(type);
    return copy(to, static_cast<const char*>(from) + self.rank * bytes, bytes);
  });
}
