#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

namespace peakbench::recording {

// An event of the CUDA runtime. LibTorch has a class of its own for it, which moved and changed
// between releases.

// On the device that is current where it is made. Throws c10::Error where the runtime refuses.
class Event {
 public:
  enum class For { kOrder, kTime };
  explicit Event(For what) {
    C10_CUDA_CHECK(cudaEventCreateWithFlags(
        &event_, what == For::kTime ? cudaEventDefault : cudaEventDisableTiming));
  }
  ~Event() { C10_CUDA_CHECK_WARN(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const c10::cuda::CUDAStream& stream) {
    C10_CUDA_CHECK(cudaEventRecord(event_, stream.stream()));
  }
  // What that stream is given from now on waits for the event.
  void block(const c10::cuda::CUDAStream& stream) const {
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), event_, 0));
  }
  void synchronise() const { C10_CUDA_CHECK(cudaEventSynchronize(event_)); }
  // Milliseconds from this one to the other; both kTime, recorded and passed.
  float milliseconds_to(const Event& end) const {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_, end.event_));
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Graphs of a CUDA card for strategies (peakbench/device_graph.h), as torch.cuda.graph makes them.

// From then on make_device_graph() gives graphs of the current card.
void offer_cuda_graphs();

}  // namespace peakbench::recording
