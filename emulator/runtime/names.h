// CUDA's own declarations. What CUDA 13 calls by its plain name, CUDA 12 has under a number, as its
// plain name is an older form (older_forms.cpp).
#pragma once

#if PEAKBENCH_CUDA_MAJOR == 12
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#endif

#include <cuda_runtime_api.h>
