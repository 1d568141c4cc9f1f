#include "recording/cuda/cuda_graph.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include "peakbench/device_graph.h"

namespace peakbench::recording {
namespace {

using c10::cuda::CUDAStream;

void wait_for(const CUDAStream& waiting, const CUDAStream& other) {
  Event event(Event::For::kOrder);
  event.record(other);
  event.block(waiting);
}

// Position in the sequence of random numbers, for as long as this is in scope.
class KeptRandomState {
 public:
  KeptRandomState() : generator_(at::cuda::detail::getDefaultCUDAGenerator()) {
    const std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeptRandomState() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeptRandomState(const KeptRandomState&) = delete;
  KeptRandomState& operator=(const KeptRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

// How many random numbers the generator has drawn.
std::uint64_t random_offset() {
  at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CUDAGeneratorImpl>(generator)->philox_offset_per_thread();
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
      const KeptRandomState random_state;
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

  // Asking the generator while it is captured would make tensors of its own in the graph's pool.
  void replay() override {
    const auto before = random_offset();
    graph_.replay();
    draws_random_numbers_ = random_offset() != before;
  }
  bool draws_random_numbers() const override { return draws_random_numbers_; }

 private:
  at::cuda::CUDAGraph graph_;
  bool draws_random_numbers_ = false;
};

std::unique_ptr<DeviceGraph> make_cuda_graph() { return std::make_unique<CudaGraph>(); }

}  // namespace

void offer_cuda_graphs() { set_device_graph_maker(make_cuda_graph); }

}  // namespace peakbench::recording
