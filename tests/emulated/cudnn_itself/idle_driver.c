/* A CUDA driver that cuDNN finds and that has no device: kernels "load" into it, and everything else is refused. cuDNN compiles the kernel
   of an engine, and loads it, before it says how large its workspace is. */

static char something[64];

static int give(void** out) {
  *out = something;
  return 0;
}

int cuLibraryLoadData(void** library) { return give(library); }
int cuLibraryGetKernel(void** kernel) { return give(kernel); }

int cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "the idle driver has no device";
  return 0;
}

int cuGetErrorName(int error, const char** text) { return cuGetErrorString(error, text); }

#define REFUSED(name) int name(void) { return 100; }
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPopCurrent)
REFUSED(cuCtxPushCurrent)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetAttribute)
REFUSED(cuDeviceGetCount)
REFUSED(cuDriverGetVersion)
REFUSED(cuFuncGetName)
REFUSED(cuFuncSetAttribute)
REFUSED(cuGraphAddDependencies)
REFUSED(cuGraphAddDependencies_v2)
REFUSED(cuGraphAddKernelNode_v2)
REFUSED(cuGraphKernelNodeSetAttribute)
REFUSED(cuGraphKernelNodeSetParams_v2)
REFUSED(cuGraphNodeGetDependentNodes)
REFUSED(cuGraphNodeGetDependentNodes_v2)
REFUSED(cuInit)
REFUSED(cuKernelGetAttribute)
REFUSED(cuKernelGetFunction)
REFUSED(cuKernelSetAttribute)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuLibraryUnload)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate)
REFUSED(cuLinkDestroy)
REFUSED(cuModuleGetFunction)
REFUSED(cuModuleLoadData)
REFUSED(cuOccupancyAvailableDynamicSMemPerBlock)
REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSED(cuOccupancyMaxActiveClusters)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuStreamGetCtx)
