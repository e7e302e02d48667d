// Choices that were found by timing, on disk: text, one file for a device model and a version of a library, a line a choice:
//
//   troupe product choices 1
//   device NVIDIA H200
//   library 130100
//   KEY: CHOICE
//
// What keys and choices are is for who keeps them (product_choices.h, attention_choices.h). Pure but ChoiceLinesFile.
#ifndef TROUPE_KERNELS_CUDA_CHOICE_LINES_H_
#define TROUPE_KERNELS_CUDA_CHOICE_LINES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels::cuda {

// What choices hold for.
struct ChoicesOwner {
  std::string device;   // one line
  int64_t library = 0;  // its version
};

// By key; neither has an end of line, the key no ": ".
using ChoiceLines = std::map<std::string, std::string>;

struct ChoiceKind {
  std::string name;  // "product"
  std::function<bool(std::string_view key, std::string_view choice)> is_choice;
};

std::string FormatLines(const ChoiceKind& kind, const ChoicesOwner& owner, const ChoiceLines& lines);
// FAILED_PRECONDITION where the choices are another's, INVALID_ARGUMENT naming the line where the text is damaged.
StatusOr<ChoiceLines> ParseLines(const ChoiceKind& kind, const ChoicesOwner& owner, std::string_view text);
// "product-choices-nvidia-h200-130100.txt".
std::string ChoicesFileName(const ChoiceKind& kind, const ChoicesOwner& owner);

// The choices of one owner in a folder, which several processes may use at once: none sees half a file, and the later of
// two that add to it at the same moment may undo what the earlier added, to be found again by timing.
class ChoiceLinesFile {
 public:
  // `files` outlives this. An empty `folder`: nothing is kept.
  ChoiceLinesFile(FileSystem& files, std::string folder, ChoiceKind kind, ChoicesOwner owner);

  std::optional<std::string> Find(const std::string& key) const;
  // Where the disk refuses it, the choice holds for this process alone; that is logged. REQUIRES: it is one of the kind.
  void Add(const std::string& key, const std::string& choice);

 private:
  // A file that is another's or damaged counts as empty, which is logged.
  void Read();
  Status Write();

  FileSystem& files_;
  const std::string folder_;
  const ChoiceKind kind_;
  const ChoicesOwner owner_;
  ChoiceLines lines_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CHOICE_LINES_H_
