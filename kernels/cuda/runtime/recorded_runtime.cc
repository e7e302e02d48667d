#include "kernels/cuda/runtime/recorded_runtime.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels::cuda {
namespace {

int64_t made = 0;  // number of streams, events and graphs; numbers serve as addresses
cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

template <typename Handle>
void MakeHandle(Handle* handle) {
  *handle = reinterpret_cast<Handle>(++made);
}
template <typename Handle>
int64_t NumberOf(Handle handle) {
  return reinterpret_cast<int64_t>(handle);
}

cudaError_t Answer(const std::string& function) {
  const auto found = Runtime().fails.find(function);
  return found == Runtime().fails.end() ? cudaSuccess : found->second;
}

template <typename... Args>
cudaError_t Note(const std::string& function, fmt::format_string<Args...> format, Args&&... args) {
  const std::string what = fmt::format(format, std::forward<Args>(args)...);
  Runtime().calls.push_back(what.empty() ? function : function + " " + what);
  return Answer(function);
}

cudaError_t Query(const std::string& function) {
  int& not_ready = Runtime().not_ready;
  if (not_ready == 0) return Answer(function);
  if (not_ready > 0) --not_ready;
  return cudaErrorNotReady;
}

}  // namespace

RecordedRuntime& Runtime() {
  static RecordedRuntime runtime;
  return runtime;
}

std::vector<std::string> RecordedRuntime::DrainCalls() { return std::exchange(calls, {}); }

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = Runtime().driver_version;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = Runtime().devices;
  return Runtime().count_error;
}
cudaError_t cudaSetDevice(int) { return Answer("cudaSetDevice"); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Recorded GPU");
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(0x11 * i);
  properties->totalGlobalMem = size_t{80} << 30;
  properties->multiProcessorCount = 132;
  properties->major = Runtime().capability_major;
  properties->minor = Runtime().capability_minor;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0", 27 + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorIllegalAddress     ? "cudaErrorIllegalAddress"
         : error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                              : "cudaError";
}
const char* cudaGetErrorString(cudaError_t) { return "its text"; }
cudaError_t cudaGetLastError() { return Note("cudaGetLastError", ""); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  MakeHandle(stream);
  return Note("cudaStreamCreateWithPriority", "non-blocking={} priority={}",
              flags == cudaStreamNonBlocking, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return Note("cudaStreamDestroy", ""); }
cudaError_t cudaStreamQuery(cudaStream_t) { return Query("cudaStreamQuery"); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Note("cudaStreamWaitEvent", "stream={} event={}", NumberOf(stream), NumberOf(event));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  MakeHandle(event);
  return Note("cudaEventCreate", "timing={}", (flags & cudaEventDisableTiming) == 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return Note("cudaEventDestroy", ""); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Note("cudaEventRecord", "event={} stream={}", NumberOf(event), NumberOf(stream));
}
cudaError_t cudaEventQuery(cudaEvent_t) { return Query("cudaEventQuery"); }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return Note("cudaMalloc", "{}", bytes);
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return Note("cudaFree", "");
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return Note("cudaMallocHost", "{} relaxed={}", bytes,
              thread_mode == cudaStreamCaptureModeRelaxed);
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return Note("cudaFreeHost", "");
}
cudaError_t cudaHostRegister(void*, size_t bytes, unsigned) {
  return Note("cudaHostRegister", "{}", bytes);
}
cudaError_t cudaHostUnregister(void*) { return Note("cudaHostUnregister", ""); }
cudaError_t cudaMemcpyAsync(void*, const void*, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Note("cudaMemcpyAsync", "{} default={} stream={}", bytes, kind == cudaMemcpyDefault,
              NumberOf(stream));
}
cudaError_t cudaMemsetAsync(void*, int value, size_t bytes, cudaStream_t stream) {
  return Note("cudaMemsetAsync", "{} to {} stream={}", bytes, value, NumberOf(stream));
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxDynamicSharedSizeBytes = Runtime().dynamic_shared_bytes;
  return Note("cudaFuncGetAttributes", "relaxed={}", thread_mode == cudaStreamCaptureModeRelaxed);
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  return Note("cudaFuncSetAttribute", "dynamic-shared={} {}",
              attribute == cudaFuncAttributeMaxDynamicSharedMemorySize, value);
}
cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  int first = 0;
  std::memcpy(&first, arguments[0], sizeof first);
  return Note("cudaLaunchKernel", "{}x{} of {} shared={} stream={} argument={}", grid.x, grid.y,
              block.x, shared, NumberOf(stream), first);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return Note("cudaStreamBeginCapture", "stream={} thread-local={}", NumberOf(stream),
              mode == cudaStreamCaptureModeThreadLocal);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  MakeHandle(graph);
  return Note("cudaStreamEndCapture", "stream={}", NumberOf(stream));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long) {
  MakeHandle(executable);
  return Note("cudaGraphInstantiate", "");
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  return Note("cudaGraphUpload", "stream={}", NumberOf(stream));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t stream) {
  return Note("cudaGraphLaunch", "stream={}", NumberOf(stream));
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return Note("cudaGraphDestroy", ""); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return Note("cudaGraphExecDestroy", ""); }

}  // extern "C"

}  // namespace troupe::kernels::cuda
