#include "kernels/cuda/libraries/cublaslt_library.h"

#include <cublasLt.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "kernels/cuda/libraries/cublaslt_functions.h"
#include "kernels/cuda/libraries/lt_matmul.h"
#include "kernels/cuda/libraries/matmul_layout.h"
#include "kernels/cuda/libraries/matmul_timing.h"
#include "kernels/cuda/runtime/device_loss.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kProposals = 16;

class LtLibraryMatmul : public LibraryMatmul {
 public:
  LtLibraryMatmul(CudaDevice& device, LtMatmul matmul, const LtAlgorithm& algorithm,
                  const std::string& library)
      : device_(device),
        matmul_(std::move(matmul)),
        algorithm_(algorithm),
        implementation_(library + " " + Describe(algorithm.algorithm)) {}

  int64_t workspace_bytes() const override { return algorithm_.workspace_bytes; }
  std::string implementation() const override { return implementation_; }
  Status Enqueue(const void* a, const void* b, void* c, bool accumulate, void* workspace,
                 Stream stream, const OperandScales& scales) override {
    TROUPE_RETURN_IF_ERROR(device_.Enter());
    return matmul_.Enqueue(algorithm_, a, b, c, accumulate, workspace,
                           device_.native_stream(stream), scales);
  }

 private:
  CudaDevice& device_;
  const LtMatmul matmul_;
  const LtAlgorithm algorithm_;
  const std::string implementation_;
};

// cuBLASLt's FP8 kernels need extents that are multiples of sixteen; with block scales they need
// multiples of the block size.
bool SuitsFloat8(const MatmulShape& shape) {
  const MatmulLayout layout = LayoutOf(shape);
  if (layout.m % 16 != 0 || layout.n % 16 != 0 || layout.k % 16 != 0) return false;
  if (shape.float8 == Float8Scaling::kWhole) return true;
  const bool has_squares = shape.kind != MatmulKind::kWeightGradient;
  return layout.k % 128 == 0 && (!has_squares || layout.m % 128 == 0);
}

// Returns the fastest proposal, by timing.
StatusOr<LtAlgorithm> Tune(CudaDevice& device, const LtMatmul& matmul,
                           const std::vector<LtAlgorithm>& proposals) {
  int64_t workspace_bytes = 0;
  for (const LtAlgorithm& proposal : proposals) {
    workspace_bytes = std::max(workspace_bytes, proposal.workspace_bytes);
  }
  TROUPE_ASSIGN_OR_RETURN(const auto timing, MatmulTiming::Make(device, matmul, workspace_bytes));
  TROUPE_ASSIGN_OR_RETURN(const size_t best, timing->Fastest(proposals));
  return proposals[best];
}

}  // namespace

CublasLtLibrary::CublasLtLibrary(CudaDevice& device, FileSystem& files, CublasLtOptions options)
    : device_(device),
      options_(std::move(options)),
      cache_(files, options_.tuning_cache_folder,
             {device.facts().name, static_cast<int64_t>(cublasLtGetVersion())}) {}

StatusOr<std::unique_ptr<CublasLtLibrary>> CublasLtLibrary::Make(CudaDevice& device,
                                                                 FileSystem& files,
                                                                 CublasLtOptions options) {
  TROUPE_RETURN_IF_ERROR(LoadCublasLt());
  TROUPE_RETURN_IF_ERROR(device.Enter());
  std::unique_ptr<CublasLtLibrary> library(new CublasLtLibrary(device, files, std::move(options)));
  TROUPE_RETURN_IF_ERROR(FromLt(cublasLtCreate(&library->handle_), "cuBLASLt"));
  return library;
}

CublasLtLibrary::~CublasLtLibrary() {
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

std::string CublasLtLibrary::description() const { return "cuBLASLt " + CublasLtVersion(); }

StatusOr<std::unique_ptr<LibraryMatmul>> CublasLtLibrary::Prepare(const MatmulShape& shape) {
  TROUPE_RETURN_IF_ERROR(device_.Enter());
  if (shape.rows <= 0 || shape.k <= 0 || shape.n <= 0) return nullptr;
  if (shape.float8 != Float8Scaling::kNone && !SuitsFloat8(shape)) return nullptr;
  TROUPE_ASSIGN_OR_RETURN(LtMatmul matmul, LtMatmul::Make(handle_, shape));
  const auto prepared = [&](const LtAlgorithm& algorithm) -> std::unique_ptr<LibraryMatmul> {
    return std::make_unique<LtLibraryMatmul>(device_, std::move(matmul), algorithm, description());
  };
  const MatmulTuningKey key = {shape, options_.workspace_limit};
  if (const std::optional<Algorithm> kept = cache_.Find(key)) {
    if (const auto restored = matmul.Restore(*kept, options_.workspace_limit)) {
      ++cache_hits_;
      return prepared(*restored);
    }
    LogWarning("cuda", "the tuning cache entry for {} does not run here; tuning it again",
               ShapeText(shape));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<LtAlgorithm> proposals,
                          matmul.Propose(options_.workspace_limit, options_.tune ? kProposals : 1));
  if (proposals.empty()) return nullptr;
  if (!options_.tune) return prepared(proposals.front());
  const StatusOr<LtAlgorithm> tuned = Tune(device_, matmul, proposals);
  if (tuned.status().code() == StatusCode::kResourceExhausted) {
    LogWarning("cuda", "{} is not timed: {}", ShapeText(shape), ToString(tuned.status()));
    return prepared(proposals.front());
  }
  if (tuned.status().code() == StatusCode::kInternal && DeviceLossOf(tuned.status()).empty()) {
    LogWarning("cuda", "cuBLASLt refuses all algorithms that it proposes: {}",
               ToString(tuned.status()));
    return nullptr;
  }
  TROUPE_RETURN_IF_ERROR(tuned.status());
  cache_.Add(key, ToNumbers(tuned->algorithm));
  return prepared(*tuned);
}

}  // namespace troupe::kernels::cuda
