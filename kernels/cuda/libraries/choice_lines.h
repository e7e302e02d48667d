// The tuning cache on disk: choices found by timing, as text, one file per device model and library
// version, one line per choice:
//
//   troupe product choices 1
//   device NVIDIA H200
//   library 130100
//   KEY: CHOICE
//
// The users of this file define keys and choices (product_choices.h, chosen_attention.h). Pure
// except for ChoiceLinesFile.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_CHOICE_LINES_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_CHOICE_LINES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels::cuda {

// The device and library that choices are valid for.
struct ChoicesOwner {
  std::string device;   // a single line
  int64_t library = 0;  // library version
};

// Choices by key. Neither contains a line break, and the key does not contain ": ".
using ChoiceLines = std::map<std::string, std::string>;

struct ChoiceKind {
  std::string name;  // "product"
  std::function<bool(std::string_view key, std::string_view choice)> is_choice;
};

std::string FormatLines(const ChoiceKind& kind, const ChoicesOwner& owner,
                        const ChoiceLines& lines);
// Errors: FAILED_PRECONDITION if the choices belong to another owner, INVALID_ARGUMENT with the
// line if the text is damaged.
StatusOr<ChoiceLines> ParseLines(const ChoiceKind& kind, const ChoicesOwner& owner,
                                 std::string_view text);
// "product-choices-nvidia-h200-130100.txt".
std::string ChoicesFileName(const ChoiceKind& kind, const ChoicesOwner& owner);

// The choices of one owner in a folder that several processes may use at once. No process reads an
// incomplete file. If two processes add a choice at the same moment, the later may overwrite the
// earlier one's, which is then found again by timing.
class ChoiceLinesFile {
 public:
  // `files` must outlive this object. With an empty `folder` nothing is stored.
  ChoiceLinesFile(FileSystem& files, std::string folder, ChoiceKind kind, ChoicesOwner owner);

  std::optional<std::string> Find(const std::string& key) const;
  // If the disk write fails, the choice is valid in this process only, and the failure is logged.
  // REQUIRES: the choice is of this kind.
  void Add(const std::string& key, const std::string& choice);

 private:
  // Treats a file of another owner, or a damaged one, as empty, and logs that.
  void Read();
  Status Write();

  FileSystem& files_;
  const std::string folder_;
  const ChoiceKind kind_;
  const ChoicesOwner owner_;
  ChoiceLines lines_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_CHOICE_LINES_H_
