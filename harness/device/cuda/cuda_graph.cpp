#include "device/cuda/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include "peakbench/device_graph.h"

namespace peakbench::device {
namespace {

using c10::cuda::CUDAStream;

void wait_for(const CUDAStream& waiting, const CUDAStream& other) {
  c10::cuda::CUDAEvent event;
  event.record(other);
  event.block(waiting);
}

// The order of torch/cuda/graphs.py and of the recipe in PyTorch's notes, "Whole-network capture":
// each line decides which stream and pool a block belongs to.
class CudaGraph final : public DeviceGraph {
 public:
  void warm_up(const std::function<void()>& work) override {
    const CUDAStream current = c10::cuda::getCurrentCUDAStream();
    const CUDAStream side = c10::cuda::getStreamFromPool();
    wait_for(side, current);
    {
      const c10::cuda::CUDAStreamGuard guard(side);
      work();
    }
    wait_for(current, side);
  }

  void capture(const std::function<void()>& work) override {
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
    graph_.capture_begin();
    work();
    graph_.capture_end();
  }

  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

std::unique_ptr<DeviceGraph> make_cuda_graph() { return std::make_unique<CudaGraph>(); }

}  // namespace

void offer_cuda_graphs() { set_device_graph_maker(make_cuda_graph); }

}  // namespace peakbench::device
