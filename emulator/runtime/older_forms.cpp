// Functions that CUDA 13 changed, in the form that CUDA 12 has under the same name, and names of
// CUDA 12 for what CUDA 13 calls otherwise.
#include "runtime/errors.h"

#undef cudaStreamGetCaptureInfo

using namespace peakbench::emulator::runtime;

PEAKBENCH_ENTRY cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                        cudaStreamCaptureStatus* status,
                                                        unsigned long long* id, cudaGraph_t* graph,
                                                        const cudaGraphNode_t** dependencies,
                                                        size_t* dependency_count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr,
                                     dependency_count);
}

PEAKBENCH_ENTRY cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                     cudaStreamCaptureStatus* status,
                                                     unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
