// The tuning cache on disk: the fastest implementation of each shape, found by timing, as text, one
// file per device model and library version, one line per entry:
//
//   troupe matmul tuning 1
//   device NVIDIA H200
//   library 130100
//   KEY: VALUE
//
// The users of this file define keys and values (matmul_tuning_cache.h, tuned_attention.h). Pure
// except for TuningCacheFile.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_TUNING_CACHE_FILE_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_TUNING_CACHE_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels::cuda {

// The device and library that the entries are valid for.
struct TuningOwner {
  std::string device;   // a single line
  int64_t library = 0;  // library version
};

// The fastest implementations by key. Neither contains a line break, and the key does not contain
// ": ".
using TuningEntries = std::map<std::string, std::string>;

struct TuningKind {
  std::string name;  // "matmul"
  std::function<bool(std::string_view key, std::string_view value)> is_entry;
};

std::string FormatTuningEntries(const TuningKind& kind, const TuningOwner& owner,
                                const TuningEntries& lines);
// Errors: FAILED_PRECONDITION if the entries belong to another owner, INVALID_ARGUMENT with the
// line if the text is damaged.
StatusOr<TuningEntries> ParseTuningEntries(const TuningKind& kind, const TuningOwner& owner,
                                           std::string_view text);
// "matmul-tuning-nvidia-h200-130100.txt".
std::string TuningCacheFileName(const TuningKind& kind, const TuningOwner& owner);

// The entries of one owner in a folder that several processes may use at once. No process reads an
// incomplete file. If two processes add an entry at the same moment, the later may overwrite the
// earlier one's, which is then found again by timing.
class TuningCacheFile {
 public:
  // `files` must outlive this object. With an empty `folder` nothing is stored.
  TuningCacheFile(FileSystem& files, std::string folder, TuningKind kind, TuningOwner owner);

  std::optional<std::string> Find(const std::string& key) const;
  // If the disk write fails, the entry is valid in this process only, and the failure is logged.
  // REQUIRES: the entry is of this kind.
  void Add(const std::string& key, const std::string& value);

 private:
  // Treats a file of another owner, or a damaged one, as empty, and logs that.
  void Read();
  Status Write();

  FileSystem& files_;
  const std::string folder_;
  const TuningKind kind_;
  const TuningOwner owner_;
  TuningEntries lines_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_TUNING_CACHE_FILE_H_
