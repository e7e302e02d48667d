#include "kernels/cuda/libraries/cudnn_library.h"

#include <cudnn.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/shared_library.h"

namespace troupe::kernels::cuda {
namespace {

struct Functions {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnGetLastErrorString) get_last_error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetStream) get_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) backend_create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) backend_destroy_descriptor = nullptr;
  decltype(&cudnnBackendFinalize) backend_finalize = nullptr;
  decltype(&cudnnBackendSetAttribute) backend_set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) backend_get_attribute = nullptr;
  decltype(&cudnnBackendExecute) backend_execute = nullptr;
};

std::atomic<const Functions*> loaded = nullptr;

const Functions& Loaded() {
  const Functions* const functions = loaded.load(std::memory_order_acquire);
  TROUPE_CHECK(functions != nullptr, "cuDNN is called but was not loaded");
  return *functions;
}

std::string VersionText(int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Status LookUp(const SharedLibrary& library, Functions* functions) {
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnGetVersion", &functions->get_version));
  const auto version = static_cast<int64_t>(functions->get_version());
  if (version < kCudnnVersionMin || version / 10000 != kCudnnVersionMin / 10000) {
    return FailedPrecondition(
        "its version is cuDNN {}; {} or a later version with the same major number is required",
        VersionText(version), VersionText(kCudnnVersionMin));
  }
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnGetErrorString", &functions->get_error_string));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cudnnGetLastErrorString", &functions->get_last_error_string));
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnCreate", &functions->create));
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnDestroy", &functions->destroy));
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnSetStream", &functions->set_stream));
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnGetStream", &functions->get_stream));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cudnnBackendCreateDescriptor", &functions->backend_create_descriptor));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cudnnBackendDestroyDescriptor", &functions->backend_destroy_descriptor));
  TROUPE_RETURN_IF_ERROR(library.Find("cudnnBackendFinalize", &functions->backend_finalize));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cudnnBackendSetAttribute", &functions->backend_set_attribute));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cudnnBackendGetAttribute", &functions->backend_get_attribute));
  return library.Find("cudnnBackendExecute", &functions->backend_execute);
}

}  // namespace

Status LoadCudnn(const std::string& name) {
  static std::mutex mutex;
  static Functions functions;
  const std::lock_guard lock(mutex);
  if (loaded.load(std::memory_order_relaxed) != nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(auto library, SharedLibrary::Open("cuDNN", name));
  Functions found;
  TROUPE_RETURN_IF_ERROR(Annotate(LookUp(*library, &found), name));
  SharedLibrary::Keep(std::move(library));
  functions = found;
  loaded.store(&functions, std::memory_order_release);
  return OkStatus();
}

int64_t CudnnVersion() { return static_cast<int64_t>(Loaded().get_version()); }
std::string CudnnVersionText() { return VersionText(CudnnVersion()); }

}  // namespace troupe::kernels::cuda

using troupe::kernels::cuda::Loaded;

// Hidden, so that no other library of the process binds to them instead of to cuDNN.
#pragma GCC visibility push(hidden)
extern "C" {

size_t CUDNNWINAPI cudnnGetVersion(void) { return Loaded().get_version(); }
const char* CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status) {
  return Loaded().get_error_string(status);
}
void CUDNNWINAPI cudnnGetLastErrorString(char* message, size_t max_size) {
  Loaded().get_last_error_string(message, max_size);
}
cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t* handle) { return Loaded().create(handle); }
cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle) { return Loaded().destroy(handle); }
cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return Loaded().set_stream(handle, stream);
}
cudnnStatus_t CUDNNWINAPI cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return Loaded().get_stream(handle, stream);
}
cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                       cudnnBackendDescriptor_t* descriptor) {
  return Loaded().backend_create_descriptor(type, descriptor);
}
cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return Loaded().backend_destroy_descriptor(descriptor);
}
cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return Loaded().backend_finalize(descriptor);
}
cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, int64_t count,
                                                   const void* elements) {
  return Loaded().backend_set_attribute(descriptor, name, type, count, elements);
}
cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                   cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type,
                                                   int64_t requested, int64_t* count,
                                                   void* elements) {
  return Loaded().backend_get_attribute(descriptor, name, type, requested, count, elements);
}
cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                              cudnnBackendDescriptor_t variant_pack) {
  return Loaded().backend_execute(handle, plan, variant_pack);
}

}  // extern "C"
#pragma GCC visibility pop
