// Which algorithm of a product library is best for a shape, as found by timing, on disk (choice_lines.h): a plan that is made
// again makes the same choices, and so the same bits. Of a shape and a limit of working memory, in bytes, the algorithm:
//
//   forward bfloat16 rows=65536 k=768 n=2304 limit=33554432: 18 … 0 (eight numbers in base 16)
//
// Pure but ChoicesFile.
#ifndef TROUPE_KERNELS_CUDA_PRODUCT_CHOICES_H_
#define TROUPE_KERNELS_CUDA_PRODUCT_CHOICES_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/cuda/choice_lines.h"
#include "kernels/product_shape.h"

namespace troupe::kernels::cuda {

// An algorithm in the library's own terms, which mean something to the same version of it alone.
using Algorithm = std::array<uint64_t, 8>;

struct ChoiceKey {
  ProductShape shape;
  int64_t workspace_limit = 0;  // bytes
  auto operator<=>(const ChoiceKey&) const = default;
};
using ProductChoices = std::map<ChoiceKey, Algorithm>;

// "forward bfloat16 rows=65536 k=768 n=2304"; of factors "float32", "bfloat16", "float8" or "float8-blocks".
std::string ShapeText(const ProductShape& shape);
std::string FormatChoices(const ChoicesOwner& owner, const ProductChoices& choices);
// FAILED_PRECONDITION where the choices are another's, INVALID_ARGUMENT naming the line where the text is damaged.
StatusOr<ProductChoices> ParseChoices(std::string_view text, const ChoicesOwner& owner);
// "product-choices-nvidia-h200-130100.txt".
std::string ChoicesFileName(const ChoicesOwner& owner);

// The choices of one owner in a folder, as ChoiceLinesFile has them.
class ChoicesFile {
 public:
  // `files` outlives this. An empty `folder`: nothing is kept.
  ChoicesFile(FileSystem& files, std::string folder, ChoicesOwner owner);

  std::optional<Algorithm> Find(const ChoiceKey& key) const;
  void Add(const ChoiceKey& key, const Algorithm& algorithm);

 private:
  ChoiceLinesFile lines_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PRODUCT_CHOICES_H_
