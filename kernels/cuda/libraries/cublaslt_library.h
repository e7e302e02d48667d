// Matmuls by cuBLASLt with bfloat16 or float32 operands. They accumulate in float32 (no TF32); only
// forward FP8 matmuls use the tensor cores' own accumulation (docs/float8.md). Deterministic:
// split-k is allowed only if it adds the parts in float32 in a fixed order.
//
// When a shape is prepared for the first time, the algorithms that cuBLASLt proposes are timed on
// random numbers and the fastest is stored on disk (matmul_tuning_cache.h). Without timing, or if
// memory does not suffice for it, cuBLASLt's first proposal is used and not stored. Thread-safety:
// that of the device.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_CUBLASLT_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_CUBLASLT_LIBRARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/file_system.h"
#include "kernels/cuda/libraries/matmul_tuning_cache.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/matmul_library.h"
#include "model/program/gpu_working_memory.h"

struct cublasLtContext;

namespace troupe::kernels::cuda {

struct CublasLtOptions {
  // The maximum workspace of a matmul, in bytes.
  int64_t workspace_limit = model::kMatmulWorkspaceBytesMax;
  bool tune = true;  // whether to time the proposals
  // The folder of the tuning cache; if empty, nothing is stored.
  std::string tuning_cache_folder;
};

class CublasLtLibrary : public MatmulLibrary {
 public:
  // `device` and `files` must outlive this object, and this object its matmuls. Errors: UNAVAILABLE
  // if cuBLASLt cannot be initialised on the device; otherwise those of LoadCublasLt.
  static StatusOr<std::unique_ptr<CublasLtLibrary>> Make(CudaDevice& device, FileSystem& files,
                                                         CublasLtOptions options);
  ~CublasLtLibrary() override;
  CublasLtLibrary(const CublasLtLibrary&) = delete;
  CublasLtLibrary& operator=(const CublasLtLibrary&) = delete;

  // The addresses passed to Enqueue must be aligned to 16. Errors: RESOURCE_EXHAUSTED and INTERNAL
  // from cuBLASLt and the device.
  StatusOr<std::unique_ptr<LibraryMatmul>> Prepare(const MatmulShape& shape) override;

  // Number of algorithms that came from the tuning cache.
  int64_t tuning_cache_hits() const { return cache_hits_; }

  // "cuBLASLt 13.1.0".
  std::string description() const;

 private:
  CublasLtLibrary(CudaDevice& device, FileSystem& files, CublasLtOptions options);

  CudaDevice& device_;
  const CublasLtOptions options_;
  cublasLtContext* handle_ = nullptr;
  MatmulTuningCache cache_;
  int64_t cache_hits_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_CUBLASLT_LIBRARY_H_
