// Which algorithm of a product library is best for a shape, as found by timing, on disk: a plan that is made again makes
// the same choices, and so the same bits. Text, one file for a device model and a version of the library, a line a shape:
//
//   troupe product choices 1
//   device NVIDIA H200
//   library 130100
//   forward bfloat16 rows=65536 k=768 n=2304 limit=33554432: 18 … 0 (eight numbers in base 16)
//
// The parts before the colon are what it was chosen for; `limit` bounds the working memory, in bytes. Pure but
// ChoicesFile.
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

// What choices hold for.
struct ChoicesOwner {
  std::string device;   // one line
  int64_t library = 0;  // its version
};

// "forward bfloat16 rows=65536 k=768 n=2304"; of factors "float32", "bfloat16", "float8" or "float8-blocks".
std::string ShapeText(const ProductShape& shape);
std::string FormatChoices(const ChoicesOwner& owner, const ProductChoices& choices);
// FAILED_PRECONDITION where the choices are another's, INVALID_ARGUMENT naming the line where the text is damaged.
StatusOr<ProductChoices> ParseChoices(std::string_view text, const ChoicesOwner& owner);
// "product-choices-nvidia-h200-130100.txt".
std::string ChoicesFileName(const ChoicesOwner& owner);

// The choices of one owner in a folder, which several processes may use at once: none sees half a file, and the later of
// two that add to it at the same moment may undo what the earlier added, to be found again by timing.
class ChoicesFile {
 public:
  // `files` outlives this. An empty `folder`: nothing is kept.
  ChoicesFile(FileSystem& files, std::string folder, ChoicesOwner owner);

  std::optional<Algorithm> Find(const ChoiceKey& key);
  // Where the disk refuses it, the choice holds for this process alone; that is logged.
  void Add(const ChoiceKey& key, const Algorithm& algorithm);

 private:
  // A file that is another's or damaged counts as empty, which is logged.
  void Read();
  Status Write();

  FileSystem& files_;
  const std::string folder_;
  const ChoicesOwner owner_;
  ProductChoices choices_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PRODUCT_CHOICES_H_
