// NCCL's entry points: communicators whose ranks meet (communicator.h), and calls that move small
// buffers between them (operations.h). A rank that is alone is like all the others.
#include <sys/random.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "core/entry.h"
#include "core/ledger.h"
#include "nccl/communicator.h"
#include "nccl/operations.h"
#include "nccl/reduce.h"
#include "vendor_versions.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::nccl;

namespace {

constexpr int kOwnVersion = kNcclMajor * 10000 + kNcclMinor * 100 + kNcclPatch;
constexpr std::string_view kIdMark = "peakbench";

struct UniqueId {
  char bytes[128];
};

// A file's name for an id of ours; empty for any other: what a program made up, or none at all.
std::string name_of_id(const UniqueId& id) {
  if (std::memcmp(id.bytes, kIdMark.data(), kIdMark.size()) != 0) return "";
  std::string name = "nccl-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x",
                  static_cast<unsigned char>(id.bytes[kIdMark.size() + static_cast<size_t>(i)]));
    name += digits;
  }
  return name;
}

int create(void** out, int ranks, const UniqueId& id, int rank, int device) {
  if (!out || ranks < 1 || rank < 0 || rank >= ranks) return kInvalidArgument;
  enter(Fact::nccl_memory);
  std::string problem;
  const auto made = Communicator::create(name_of_id(id), ranks, rank, device, &problem);
  if (!made) {
    enter(Fact::nccl_failure, {.what = problem.c_str()});
    return kInvalidUsage;
  }
  *out = handle_of(made);
  return kSuccess;
}

template <typename Work>
int with(void* handle, Work&& work) {
  const auto found = find_communicator(handle);
  return found ? work(*found) : kInvalidArgument;
}

int run_on(void* handle, Call call, const void* from, void* to, std::size_t count, int type,
           int reduction, int root, void* stream) {
  return run(find_communicator(handle),
             {call, from, to, count * element_bytes(type), type, reduction, root},
             reinterpret_cast<std::uint64_t>(stream));
}

}  // namespace

PEAKBENCH_ENTRY int ncclGetVersion(int* out) {
  return give(out, nccl_version() ? nccl_version() : kOwnVersion);
}

PEAKBENCH_ENTRY int ncclGetUniqueId(UniqueId* out) {
  if (!out) return kInvalidArgument;
  *out = {};
  std::copy(kIdMark.begin(), kIdMark.end(), out->bytes);
  return getrandom(out->bytes + kIdMark.size(), 16, 0) == 16 ? kSuccess : kInvalidUsage;
}

PEAKBENCH_ENTRY int ncclCommInitRank(void** out, int ranks, UniqueId id, int rank) {
  return create(out, ranks, id, rank, current_device());
}
PEAKBENCH_ENTRY int ncclCommInitRankConfig(void** out, int ranks, UniqueId id, int rank, void*) {
  return create(out, ranks, id, rank, current_device());
}
PEAKBENCH_ENTRY int ncclCommInitRankScalable(void** out, int ranks, int rank, int, UniqueId* ids,
                                             void*) {
  return ids ? create(out, ranks, ids[0], rank, current_device()) : kInvalidArgument;
}

PEAKBENCH_ENTRY int ncclCommInitAll(void** out, int devices, const int* list) {
  UniqueId id;
  int result = ncclGetUniqueId(&id);
  for (int i = 0; i < devices && result == kSuccess; ++i)
    result = create(out + i, devices, id, i, list ? list[i] : i);
  return result;
}

PEAKBENCH_ENTRY int ncclCommSplit(void* parent, int color, int key, void** out, void*) {
  if (!out) return kInvalidArgument;
  CommunicatorPtr made;
  *out = nullptr;
  const int result = split(find_communicator(parent), color, key, made);
  if (made) *out = handle_of(made);
  return result;
}

PEAKBENCH_ENTRY int ncclCommDestroy(void* communicator) {
  return drop_communicator(communicator) ? kSuccess : kInvalidArgument;
}
PEAKBENCH_ENTRY int ncclCommAbort(void* communicator) { return ncclCommDestroy(communicator); }

PEAKBENCH_ENTRY int ncclCommGetAsyncError(void* communicator, int* out) {
  const auto found = find_communicator(communicator);
  return give(out, found ? found->error() : kSuccess);
}
PEAKBENCH_ENTRY int ncclCommCount(void* communicator, int* out) {
  return with(communicator, [&](const Communicator& self) { return give(out, self.ranks()); });
}
PEAKBENCH_ENTRY int ncclCommUserRank(void* communicator, int* out) {
  return with(communicator, [&](const Communicator& self) { return give(out, self.rank()); });
}
PEAKBENCH_ENTRY int ncclCommCuDevice(void* communicator, int* out) {
  return with(communicator, [&](const Communicator& self) { return give(out, self.device()); });
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
  switch (error) {
    case kSuccess:
      return "no error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "an error of the emulated NCCL";
  }
}
PEAKBENCH_ENTRY const char* ncclGetLastError(void*) { return last_error(); }
// The same under the names that NCCL has for profilers.
PEAKBENCH_ENTRY const char* pncclGetErrorString(int error) { return ncclGetErrorString(error); }
PEAKBENCH_ENTRY const char* pncclGetLastError(void*) { return last_error(); }

PEAKBENCH_ENTRY int ncclGroupStart() {
  begin_group();
  return kSuccess;
}
PEAKBENCH_ENTRY int ncclGroupEnd() { return end_group(); }

// What an operator of the program's own makes of the ranks' parts is not known.
PEAKBENCH_ENTRY int ncclRedOpCreatePreMulSum(int* out, void*, int, int, void*) {
  constexpr int kOwn = 1000;
  return give(out, kOwn);
}

PEAKBENCH_ENTRY int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                  void* communicator, void* stream) {
  return run_on(communicator, Call::all_gather, from, to, count, type, 0, -1, stream);
}
PEAKBENCH_ENTRY int ncclAllReduce(const void* from, void* to, std::size_t count, int type,
                                  int reduction, void* communicator, void* stream) {
  return run_on(communicator, Call::all_reduce, from, to, count, type, reduction, -1, stream);
}
PEAKBENCH_ENTRY int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                                  void* communicator, void* stream) {
  return run_on(communicator, Call::broadcast, from, to, count, type, 0, root, stream);
}
PEAKBENCH_ENTRY int ncclBcast(void* buffer, std::size_t count, int type, int root,
                              void* communicator, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
PEAKBENCH_ENTRY int ncclReduce(const void* from, void* to, std::size_t count, int type,
                               int reduction, int root, void* communicator, void* stream) {
  return run_on(communicator, Call::reduce, from, to, count, type, reduction, root, stream);
}
PEAKBENCH_ENTRY int ncclReduceScatter(const void* from, void* to, std::size_t count, int type,
                                      int reduction, void* communicator, void* stream) {
  return run_on(communicator, Call::reduce_scatter, from, to, count, type, reduction, -1, stream);
}
PEAKBENCH_ENTRY int ncclAlltoAll(const void* from, void* to, std::size_t count, int type,
                                 void* communicator, void* stream) {
  return run_on(communicator, Call::all_to_all, from, to, count, type, 0, -1, stream);
}
PEAKBENCH_ENTRY int ncclSend(const void* from, std::size_t count, int type, int peer,
                             void* communicator, void* stream) {
  return send(find_communicator(communicator), from, count * element_bytes(type), type, peer,
              reinterpret_cast<std::uint64_t>(stream));
}
PEAKBENCH_ENTRY int ncclRecv(void* to, std::size_t count, int type, int peer, void* communicator,
                             void* stream) {
  return receive(find_communicator(communicator), to, count * element_bytes(type), type, peer,
                 reinterpret_cast<std::uint64_t>(stream));
}
