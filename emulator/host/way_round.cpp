#include "host/way_round.h"

#include <algorithm>
#include <array>

namespace peakbench::emulator {
namespace {

struct WayRound {
  std::string_view beginning;
  std::string_view sentence;
};

// The first that fits.
constexpr auto kWaysRound = std::to_array<WayRound>({
    {"cudnn", "torch.backends.cudnn.enabled = False runs PyTorch's own kernels instead"},
    {"cusolver", "torch.linalg on the CPU gives the same tensors; its memory is then the host's"},
    {"cusparseLt",
     "a dense tensor in place of the semi-structured one takes more memory, not less"},
    {"cusparse", "a dense tensor in place of the sparse one shows an upper bound"},
    {"cuMemExportToShareableHandle", "keep the tensor in the process that made it"},
    {"cuMemImportFromShareableHandle", "keep the tensor in the process that made it"},
    {"cudaMemPool", "PyTorch's own allocator (backend:native) does without memory pools of CUDA's"},
    {"cudaMallocFromPool", "PyTorch's own allocator (backend:native) does without them"},
    {"cudaGraph", "measure the program without CUDA graphs: capture keeps a pool of its own"},
    {"cuGraph", "measure the program without CUDA graphs: capture keeps a pool of its own"},
    {"cuLink", "kernels that are compiled in parts cannot be loaded; compile them in one"},
    {"cuFile", "read the file with torch.load, into memory of the host"},
    {"nvshmem", "use torch.distributed with NCCL, which the card has for a rank alone"},
    {"ncclMem", "leave NCCL's user buffers out (NCCL_NVLS_ENABLE=0, no register_mem_pool)"},
    {"ncclComm", "leave NCCL's user buffers and windows out"},
    {"cupti", "run without a profiler: there is nothing on the card that it could time"},
});

}  // namespace

std::string_view way_round(std::string_view function) {
  const auto found = std::ranges::find_if(
      kWaysRound, [&](const WayRound& known) { return function.starts_with(known.beginning); });
  return found == kWaysRound.end() ? std::string_view() : found->sentence;
}

}  // namespace peakbench::emulator
