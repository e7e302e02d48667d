#include "kernels/cuda/libraries/lt_matmul.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cuda/libraries/matmul_layout.h"
#include "kernels/cuda/runtime/outside_of_capture.h"

namespace troupe::kernels::cuda {
namespace {

StatusCode CodeOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

// Whether a search reports that the library, or the device, does not support the matmul.
bool HasNone(cublasStatus_t searched) {
  return searched == CUBLAS_STATUS_NOT_SUPPORTED || searched == CUBLAS_STATUS_ARCH_MISMATCH;
}

bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kOperandAlignment == 0;
}

uint32_t ConfigOf(const cublasLtMatmulAlgo_t& algorithm,
                  cublasLtMatmulAlgoConfigAttributes_t attribute) {
  uint32_t value = 0;
  size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  return value;
}

}  // namespace

Status FromLt(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  return MakeStatus(CodeOf(status), fmt::format("{}: {}: {}", what, cublasLtGetStatusName(status),
                                                cublasLtGetStatusString(status)));
}

Algorithm ToNumbers(const cublasLtMatmulAlgo_t& algorithm) { return std::to_array(algorithm.data); }

std::string Describe(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format("algorithm {} tile {} stages {} split {}",
                     ConfigOf(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                     ConfigOf(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     ConfigOf(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     ConfigOf(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

StatusOr<LtMatmul> LtMatmul::Make(cublasLtHandle_t handle, const MatmulShape& shape) {
  LtMatmul made(handle, shape);
  const MatmulLayout layout = LayoutOf(shape);
  cublasLtMatmulDesc_t descriptor = nullptr;
  TROUPE_RETURN_IF_ERROR(
      FromLt(cublasLtMatmulDescCreate(&descriptor, CUBLAS_COMPUTE_32F, CUDA_R_32F), "matmul"));
  made.descriptor_.reset(descriptor);
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return FromLt(cublasLtMatmulDescSetAttribute(descriptor, which, &operation, sizeof operation),
                  "matmul");
  };
  TROUPE_RETURN_IF_ERROR(transpose(CUBLASLT_MATMUL_DESC_TRANSA, layout.transpose_a));
  TROUPE_RETURN_IF_ERROR(transpose(CUBLASLT_MATMUL_DESC_TRANSB, layout.transpose_b));
  const auto place = [](Layout* into, cudaDataType_t type, const ColumnMajor& matrix) {
    cublasLtMatrixLayout_t handle = nullptr;
    TROUPE_RETURN_IF_ERROR(
        FromLt(cublasLtMatrixLayoutCreate(&handle, type, static_cast<uint64_t>(matrix.rows),
                                          static_cast<uint64_t>(matrix.columns), matrix.leading),
               "matrix of a matmul"));
    into->reset(handle);
    return OkStatus();
  };
  const bool float8 = shape.float8 != Float8Scaling::kNone;
  const cudaDataType_t wide = shape.bfloat16 ? CUDA_R_16BF : CUDA_R_32F;
  const cudaDataType_t gradients =
      shape.kind == MatmulKind::kForward ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
  TROUPE_RETURN_IF_ERROR(place(&made.a_, float8 ? CUDA_R_8F_E4M3 : wide, layout.a));
  TROUPE_RETURN_IF_ERROR(place(&made.b_, float8 ? gradients : wide, layout.b));
  if (float8) {
    // Partial sums in tensor cores have less precision than float32. Gradients, and block-scaled
    // matmuls, whose scales differ, are therefore accumulated outside of them. Forward matmuls
    // accumulate inside, as in Transformer Engine: this is faster, and the result is rounded to
    // bfloat16 anyway.
    const int8_t fast =
        shape.kind == MatmulKind::kForward && shape.float8 == Float8Scaling::kWhole ? 1 : 0;
    TROUPE_RETURN_IF_ERROR(
        FromLt(cublasLtMatmulDescSetAttribute(descriptor, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                              sizeof fast),
               "matmul"));
    if (shape.float8 == Float8Scaling::kBlocks) {
      // The library's a is our operand b: weights have 128x128 scales.
      const int32_t lines = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
      const int32_t of_a = shape.kind == MatmulKind::kWeightGradient
                               ? lines
                               : CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
      TROUPE_RETURN_IF_ERROR(
          FromLt(cublasLtMatmulDescSetAttribute(descriptor, CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
                                                &of_a, sizeof of_a),
                 "scales"));
      TROUPE_RETURN_IF_ERROR(
          FromLt(cublasLtMatmulDescSetAttribute(descriptor, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
                                                &lines, sizeof lines),
                 "scales"));
    }
    // The search expects scale pointers to be set; each call sets its own.
    TROUPE_RETURN_IF_ERROR(
        made.SetScales({reinterpret_cast<const float*>(uintptr_t{kOperandAlignment}),
                        reinterpret_cast<const float*>(uintptr_t{kOperandAlignment})}));
  }
  TROUPE_RETURN_IF_ERROR(
      place(&made.d_, HasFloatResult(shape) ? CUDA_R_32F : CUDA_R_16BF, layout.d));
  return made;
}

StatusOr<std::vector<LtAlgorithm>> LtMatmul::Propose(int64_t workspace_limit, int count) const {
  cublasLtMatmulPreference_t handle = nullptr;
  TROUPE_RETURN_IF_ERROR(FromLt(cublasLtMatmulPreferenceCreate(&handle), "algorithms of a matmul"));
  const Preference preference(handle);
  Status status = OkStatus();
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    if (!status.ok()) return;
    status = FromLt(cublasLtMatmulPreferenceSetAttribute(handle, attribute, &value, sizeof value),
                    "algorithms of a matmul");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_limit));
  // Requires split-k parts to be stored in float32 and added by a separate step in a fixed order.
  // In-place addition and OUTPUT_TYPE would store parts in the output's dtype, so that bfloat16
  // would round each part. Without split-k the mask has no effect.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, kOperandAlignment);
  }
  TROUPE_RETURN_IF_ERROR(status);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(count));
  int found = 0;
  const cublasStatus_t searched =
      cublasLtMatmulAlgoGetHeuristic(handle_, descriptor_.get(), a_.get(), b_.get(), d_.get(),
                                     d_.get(), handle, count, results.data(), &found);
  if (HasNone(searched)) return std::vector<LtAlgorithm>();
  TROUPE_RETURN_IF_ERROR(FromLt(searched, "algorithms of a matmul"));
  std::vector<LtAlgorithm> algorithms;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    const auto bytes = static_cast<int64_t>(result.workspaceSize);
    if (result.state == CUBLAS_STATUS_SUCCESS && bytes <= workspace_limit) {
      algorithms.push_back({result.algo, bytes});
    }
  }
  return algorithms;
}

std::optional<LtAlgorithm> LtMatmul::Restore(const Algorithm& numbers,
                                             int64_t workspace_limit) const {
  LtAlgorithm restored{};
  std::ranges::copy(numbers, restored.algorithm.data);
  cublasLtMatmulHeuristicResult_t result{};
  if (cublasLtMatmulAlgoCheck(handle_, descriptor_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                              &restored.algorithm, &result) != CUBLAS_STATUS_SUCCESS) {
    return std::nullopt;
  }
  restored.workspace_bytes = static_cast<int64_t>(result.workspaceSize);
  if (restored.workspace_bytes > workspace_limit) return std::nullopt;
  return restored;
}

Status LtMatmul::SetScales(const OperandScales& scales) const {
  // The library's a is our operand b.
  for (const auto& [which, scale] : {std::pair(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales.b),
                                     std::pair(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.a)}) {
    TROUPE_RETURN_IF_ERROR(
        FromLt(cublasLtMatmulDescSetAttribute(descriptor_.get(), which, &scale, sizeof scale),
               "scale of a matmul"));
  }
  return OkStatus();
}

Status LtMatmul::Enqueue(const LtAlgorithm& algorithm, const void* a, const void* b, void* c,
                         bool accumulate, void* workspace, cudaStream_t stream,
                         const OperandScales& scales) const {
  if (!IsAligned(a) || !IsAligned(b) || !IsAligned(c)) {
    return InvalidArgument("an operand of {} is not aligned to {} bytes", ShapeText(shape_),
                           kOperandAlignment);
  }
  if (shape_.float8 != Float8Scaling::kNone) TROUPE_RETURN_IF_ERROR(SetScales(scales));
  const float alpha = 1, beta = accumulate ? 1 : 0;  // read before the call returns
  const OutsideOfCapture outside;                    // kernels are loaded at first use
  return FromLt(cublasLtMatmul(handle_, descriptor_.get(), &alpha, b, a_.get(), a, b_.get(), &beta,
                               c, d_.get(), c, d_.get(), &algorithm.algorithm, workspace,
                               static_cast<size_t>(algorithm.workspace_bytes), stream),
                ShapeText(shape_));
}

}  // namespace troupe::kernels::cuda
