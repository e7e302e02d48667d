// The matmul tuning cache on disk (choice_lines.h): the fastest algorithm of a matmul library for
// each shape, found by timing, so that repeated preparations make the same choices and give the
// same bits. The key is a shape and a workspace limit in bytes, the choice the algorithm:
//
//   forward bfloat16 rows=65536 k=768 n=2304 limit=33554432: 18 … 0 (eight numbers in base 16)
//
// Pure except for ChoicesFile.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_PRODUCT_CHOICES_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_PRODUCT_CHOICES_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/backend/product_shape.h"
#include "kernels/cuda/libraries/choice_lines.h"

namespace troupe::kernels::cuda {

// An algorithm as the library's own numbers, meaningful only to the same version of it.
using Algorithm = std::array<uint64_t, 8>;

struct ChoiceKey {
  ProductShape shape;
  int64_t workspace_limit = 0;  // in bytes
  auto operator<=>(const ChoiceKey&) const = default;
};
using ProductChoices = std::map<ChoiceKey, Algorithm>;

// "forward bfloat16 rows=65536 k=768 n=2304"; the operand type is "float32", "bfloat16", "float8"
// or "float8-blocks".
std::string ShapeText(const ProductShape& shape);
std::string FormatChoices(const ChoicesOwner& owner, const ProductChoices& choices);
// Errors: FAILED_PRECONDITION if the choices belong to another owner, INVALID_ARGUMENT with the
// line if the text is damaged.
StatusOr<ProductChoices> ParseChoices(std::string_view text, const ChoicesOwner& owner);
// "product-choices-nvidia-h200-130100.txt".
std::string ChoicesFileName(const ChoicesOwner& owner);

// The choices of one owner in a folder, stored like those of ChoiceLinesFile.
class ChoicesFile {
 public:
  // `files` must outlive this object. With an empty `folder` nothing is stored.
  ChoicesFile(FileSystem& files, std::string folder, ChoicesOwner owner);

  std::optional<Algorithm> Find(const ChoiceKey& key) const;
  void Add(const ChoiceKey& key, const Algorithm& algorithm);

 private:
  ChoiceLinesFile lines_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_PRODUCT_CHOICES_H_
