// Tests load it as libcuda.so.1, so that cuDNN builds plans on a machine without a GPU. It has the
// driver functions that cuDNN looks for: loading a kernel onto the device succeeds; all other
// functions report that there is no device.
#include <cstddef>

namespace {

constexpr int kSuccess = 0, kNoDevice = 100;
char any_handle;

}  // namespace

extern "C" {

int cuInit(unsigned) { return kNoDevice; }

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

int cuLibraryLoadData(void** library, const void*, void*, void**, unsigned, void*, void**,
                      unsigned) {
  *library = &any_handle;
  return kSuccess;
}

int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = &any_handle;
  return kSuccess;
}

#define TROUPE_ABSENT(name) \
  int name() { return kNoDevice; }

TROUPE_ABSENT(cuCtxGetCurrent)
TROUPE_ABSENT(cuCtxGetDevice)
TROUPE_ABSENT(cuCtxGetLimit)
TROUPE_ABSENT(cuCtxPopCurrent)
TROUPE_ABSENT(cuCtxPushCurrent)
TROUPE_ABSENT(cuDeviceGet)
TROUPE_ABSENT(cuDeviceGetAttribute)
TROUPE_ABSENT(cuDeviceGetCount)
TROUPE_ABSENT(cuDevicePrimaryCtxRelease)
TROUPE_ABSENT(cuDevicePrimaryCtxReset)
TROUPE_ABSENT(cuDevicePrimaryCtxRetain)
TROUPE_ABSENT(cuFuncGetAttribute)
TROUPE_ABSENT(cuFuncSetAttribute)
TROUPE_ABSENT(cuGetErrorName)
TROUPE_ABSENT(cuGetErrorString)
TROUPE_ABSENT(cuKernelGetAttribute)
TROUPE_ABSENT(cuKernelSetAttribute)
TROUPE_ABSENT(cuLaunchCooperativeKernel)
TROUPE_ABSENT(cuLaunchKernel)
TROUPE_ABSENT(cuLaunchKernelEx)
TROUPE_ABSENT(cuLibraryLoadFromFile)
TROUPE_ABSENT(cuLibraryUnload)
TROUPE_ABSENT(cuLinkAddData)
TROUPE_ABSENT(cuLinkAddData_v2)
TROUPE_ABSENT(cuLinkAddFile_v2)
TROUPE_ABSENT(cuLinkComplete)
TROUPE_ABSENT(cuLinkCreate)
TROUPE_ABSENT(cuLinkCreate_v2)
TROUPE_ABSENT(cuLinkDestroy)
TROUPE_ABSENT(cuMemcpyDtoH_v2)
TROUPE_ABSENT(cuModuleGetFunction)
TROUPE_ABSENT(cuModuleGetGlobal_v2)
TROUPE_ABSENT(cuModuleLoadData)
TROUPE_ABSENT(cuModuleLoadDataEx)
TROUPE_ABSENT(cuModuleLoadFatBinary)
TROUPE_ABSENT(cuModuleUnload)
TROUPE_ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
TROUPE_ABSENT(cuOccupancyMaxPotentialClusterSize)
TROUPE_ABSENT(cuStreamGetCtx)
TROUPE_ABSENT(cuStreamSynchronize)
TROUPE_ABSENT(cuTensorMapEncodeTiled)

#undef TROUPE_ABSENT

}  // extern "C"
