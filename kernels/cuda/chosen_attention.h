// Attention by a library where it is quicker than our own kernels. The first time that a shape is prepared both are timed,
// forward and gradient apart, and which was quicker is kept on disk beside the choices of products (choice_lines.h):
//
//   forward bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64: library
//
// Without timing, or where memory does not suffice for it, the library makes all that it can, and nothing is kept. Where the
// library refuses to run what it prepared, our own kernels make it, and nothing is kept. What was chosen of several is in
// the log.
#ifndef TROUPE_KERNELS_CUDA_CHOSEN_ATTENTION_H_
#define TROUPE_KERNELS_CUDA_CHOSEN_ATTENTION_H_

#include <memory>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/cuda/attention_library.h"
#include "kernels/cuda/choice_lines.h"

namespace troupe::kernels::cuda {

// Of one, on the device.
struct AttentionSeconds {
  double library = 0;
  double own = 0;
};

class AttentionTiming {
 public:
  virtual ~AttentionTiming() = default;
  // RESOURCE_EXHAUSTED where operands and working memory do not fit beside what the device holds.
  virtual StatusOr<AttentionSeconds> Time(const LibraryAttentionShape& shape, LibraryAttention& library) = 0;
  virtual StatusOr<AttentionSeconds> Time(const LibraryAttentionShape& shape, LibraryAttentionGrad& library) = 0;
};

// The kind of its choices: "library" or "own".
ChoiceKind AttentionChoices();

struct ChosenAttentionOptions {
  std::string choices_folder;  // empty: not kept
  ChoicesOwner owner;
};

class ChosenAttention : public AttentionLibrary {
 public:
  // References outlive this; `timing` may be null.
  ChosenAttention(AttentionLibrary& library, AttentionTiming* timing, FileSystem& files,
                  const ChosenAttentionOptions& options);

  // How often a choice came from the file.
  int64_t choices_found() const { return choices_found_; }

  StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) override;
  StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(const LibraryAttentionShape& shape) override;

 private:
  // `prepared`, or null where our own kernels are quicker.
  template <typename Args>
  StatusOr<std::unique_ptr<LibraryAttentionOf<Args>>> Choose(const std::string& pass, const LibraryAttentionShape& shape,
                                                             std::unique_ptr<LibraryAttentionOf<Args>> prepared);

  AttentionLibrary& library_;
  AttentionTiming* const timing_;
  ChoiceLinesFile choices_;
  int64_t choices_found_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CHOSEN_ATTENTION_H_
