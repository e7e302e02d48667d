// The matmul tuning cache on disk (tuning_cache_file.h): the fastest algorithm of a matmul library
// for each shape, found by timing, so that repeated preparations make the same choices of
// algorithms and give the same bits. The key is a shape and a workspace limit in bytes, the value
// the algorithm:
//
//   forward bfloat16 rows=65536 k=768 n=2304 limit=33554432: 18 … 0 (eight numbers in base 16)
//
// Pure except for MatmulTuningCache.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_TUNING_CACHE_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_TUNING_CACHE_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/backend/matmul_shape.h"
#include "kernels/cuda/libraries/tuning_cache_file.h"

namespace troupe::kernels::cuda {

// An algorithm as the library's own numbers, meaningful only to the same version of it.
using Algorithm = std::array<uint64_t, 8>;

struct MatmulTuningKey {
  MatmulShape shape;
  int64_t workspace_limit = 0;  // in bytes
  auto operator<=>(const MatmulTuningKey&) const = default;
};
using MatmulTunings = std::map<MatmulTuningKey, Algorithm>;

// "forward bfloat16 rows=65536 k=768 n=2304"; the operand type is "float32", "bfloat16", "float8"
// or "float8-blocks".
std::string ShapeText(const MatmulShape& shape);
std::string FormatMatmulTunings(const TuningOwner& owner, const MatmulTunings& tunings);
// Errors: FAILED_PRECONDITION if the entries belong to another owner, INVALID_ARGUMENT with the
// line if the text is damaged.
StatusOr<MatmulTunings> ParseMatmulTunings(std::string_view text, const TuningOwner& owner);
// "matmul-tuning-nvidia-h200-130100.txt".
std::string TuningCacheFileName(const TuningOwner& owner);

// The entries of one owner in a folder, stored like those of TuningCacheFile.
class MatmulTuningCache {
 public:
  // `files` must outlive this object. With an empty `folder` nothing is stored.
  MatmulTuningCache(FileSystem& files, std::string folder, TuningOwner owner);

  std::optional<Algorithm> Find(const MatmulTuningKey& key) const;
  void Add(const MatmulTuningKey& key, const Algorithm& algorithm);

 private:
  TuningCacheFile lines_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_TUNING_CACHE_H_
