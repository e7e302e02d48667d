// Products by cuBLASLt: bfloat16 or float32, sums in float32 and never in less (no TF32; forward products of factors
// in 8 bits alone keep theirs in the tensor cores, docs/float8.md). Deterministic: of the ways to
// split the sum over k only those are allowed that add the parts in float32, in a fixed order.
//
// The first time that a shape is prepared, the algorithms that cuBLASLt proposes are timed on random numbers and the best
// is kept on disk (product_choices.h). Without timing, or where memory does not suffice for it, cuBLASLt's first proposal
// is taken, and not kept. Thread-safety: that of the device.
#ifndef TROUPE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/file_system.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/product_choices.h"
#include "kernels/cuda/product_library.h"
#include "model/program/gpu_working_memory.h"

struct cublasLtContext;

namespace troupe::kernels::cuda {

struct CublasLtOptions {
  int64_t workspace_limit = model::kProductWorkspaceBytesMax;  // bytes of working memory that a product may have
  bool tune = true;                                            // time the proposals
  std::string choices_folder;                                  // of what was found best; empty: not kept
};

class CublasLtLibrary : public ProductLibrary {
 public:
  // `device` and `files` outlive this, and this its products. UNAVAILABLE where cuBLASLt cannot begin on the
  // device; else the errors of LoadCublasLt.
  static StatusOr<std::unique_ptr<CublasLtLibrary>> Make(CudaDevice& device, FileSystem& files,
                                                         CublasLtOptions options);
  ~CublasLtLibrary() override;
  CublasLtLibrary(const CublasLtLibrary&) = delete;
  CublasLtLibrary& operator=(const CublasLtLibrary&) = delete;

  // The addresses of its Enqueue are aligned to 16. RESOURCE_EXHAUSTED and INTERNAL come from cuBLASLt and the device.
  StatusOr<std::unique_ptr<LibraryProduct>> Prepare(const ProductShape& shape) override;

  // How often an algorithm came from the choices' file.
  int64_t choices_found() const { return choices_found_; }

  // "cuBLASLt 13.1.0".
  std::string description() const;

 private:
  CublasLtLibrary(CudaDevice& device, FileSystem& files, CublasLtOptions options);

  CudaDevice& device_;
  const CublasLtOptions options_;
  cublasLtContext* handle_ = nullptr;
  ChoicesFile choices_;
  int64_t choices_found_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
