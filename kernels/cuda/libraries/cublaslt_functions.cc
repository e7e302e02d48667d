#include "kernels/cuda/libraries/cublaslt_functions.h"

#include <cublasLt.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/shared_library.h"

namespace troupe::kernels::cuda {
namespace {

struct Functions {
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtGetStatusName) get_status_name = nullptr;
  decltype(&cublasLtGetStatusString) get_status_string = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) description_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) description_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) description_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) check = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_get = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

std::atomic<const Functions*> loaded = nullptr;

const Functions& Loaded() {
  const Functions* const functions = loaded.load(std::memory_order_acquire);
  TROUPE_CHECK(functions != nullptr, "cuBLASLt is called but was not loaded");
  return *functions;
}

std::string VersionText(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Status LookUp(const SharedLibrary& library, Functions* functions) {
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtGetVersion", &functions->get_version));
  const size_t version = functions->get_version();
  if (version < CUBLAS_VERSION || version / 10000 != CUBLAS_VER_MAJOR) {
    return FailedPrecondition(
        "its version is cuBLASLt {}; {} or a later version with the same major number is required",
        VersionText(version), VersionText(CUBLAS_VERSION));
  }
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtGetStatusName", &functions->get_status_name));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtGetStatusString", &functions->get_status_string));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtCreate", &functions->create));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtDestroy", &functions->destroy));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescCreate", &functions->description_create));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cublasLtMatmulDescDestroy", &functions->description_destroy));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cublasLtMatmulDescSetAttribute", &functions->description_set));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutCreate", &functions->layout_create));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutDestroy", &functions->layout_destroy));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cublasLtMatmulPreferenceCreate", &functions->preference_create));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cublasLtMatmulPreferenceDestroy", &functions->preference_destroy));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cublasLtMatmulPreferenceSetAttribute", &functions->preference_set));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoGetHeuristic", &functions->propose));
  TROUPE_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoCheck", &functions->check));
  TROUPE_RETURN_IF_ERROR(
      library.Find("cublasLtMatmulAlgoConfigGetAttribute", &functions->algorithm_get));
  return library.Find("cublasLtMatmul", &functions->matmul);
}

}  // namespace

Status LoadCublasLt() { return LoadCublasLt(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)); }

Status LoadCublasLt(const std::string& name) {
  static std::mutex mutex;
  static Functions functions;
  const std::lock_guard lock(mutex);
  if (loaded.load(std::memory_order_relaxed) != nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(auto library, SharedLibrary::Open("cuBLASLt", name));
  Functions found;
  TROUPE_RETURN_IF_ERROR(Annotate(LookUp(*library, &found), name));
  SharedLibrary::Keep(std::move(library));
  functions = found;
  loaded.store(&functions, std::memory_order_release);
  return OkStatus();
}

std::string CublasLtVersion() { return VersionText(Loaded().get_version()); }

}  // namespace troupe::kernels::cuda

using troupe::kernels::cuda::Loaded;

// Hidden, so that no other library of the process binds to them instead of to cuBLASLt.
#pragma GCC visibility push(hidden)
extern "C" {

size_t CUBLASWINAPI cublasLtGetVersion(void) { return Loaded().get_version(); }
const char* CUBLASWINAPI cublasLtGetStatusName(cublasStatus_t status) {
  return Loaded().get_status_name(status);
}
const char* CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t status) {
  return Loaded().get_status_string(status);
}
cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t* handle) {
  return Loaded().create(handle);
}
cublasStatus_t CUBLASWINAPI cublasLtDestroy(cublasLtHandle_t handle) {
  return Loaded().destroy(handle);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                     cublasComputeType_t compute,
                                                     cudaDataType_t scale) {
  return Loaded().description_create(description, compute, scale);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return Loaded().description_destroy(description);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                                           cublasLtMatmulDescAttributes_t attribute,
                                                           const void* value, size_t bytes) {
  return Loaded().description_set(description, attribute, value, bytes);
}
cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                                       cudaDataType type, uint64_t rows,
                                                       uint64_t columns, int64_t leading) {
  return Loaded().layout_create(layout, type, rows, columns, leading);
}
cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return Loaded().layout_destroy(layout);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Loaded().preference_create(preference);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Loaded().preference_destroy(preference);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
    const void* value, size_t bytes) {
  return Loaded().preference_set(preference, attribute, value, bytes);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int count, cublasLtMatmulHeuristicResult_t results[],
    int* found) {
  return Loaded().propose(handle, description, a, b, c, d, preference, count, results, found);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoCheck(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  return Loaded().check(handle, description, a, b, c, d, algorithm, result);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
    void* value, size_t bytes, size_t* written) {
  return Loaded().algorithm_get(algorithm, attribute, value, bytes, written);
}
cublasStatus_t CUBLASWINAPI cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
    cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
    const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
    size_t workspace_bytes, cudaStream_t stream) {
  return Loaded().matmul(handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                         d_layout, algorithm, workspace, workspace_bytes, stream);
}

}  // extern "C"
#pragma GCC visibility pop
