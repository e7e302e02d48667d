// Compiled programs in a folder, which the processes of a host share and which outlives them.
//
// A file of the folder is never trusted: one that is damaged, truncated, of another version or of
// another program, or that cannot be read, is replaced. A folder that cannot be read or written is
// passed over; programs are then compiled as without it. Each reason is logged once, and counted.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_CACHE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_CACHE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels::xla {

// Bytes of the folder's files in all that a worker's ranks keep.
inline constexpr int64_t kMostExecutableBytes = int64_t{8} << 30;

// Thread-safe. Several processes may use the folder at once: a file appears as a whole, and the
// last writer of a key wins.
class ExecutableCache {
 public:
  // `files` must outlive this object. The folder is made when the first entry is added.
  ExecutableCache(FileSystem& files, std::string folder, int64_t most_bytes)
      : files_(files), folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Returns the bytes that Add got for `key`; none if there is no such entry or it cannot be used.
  std::optional<std::string> Find(const std::string& key);

  // Stores or replaces the entry of `key`. Then removes those entries that were not used for the
  // longest time until the folder has at most `most_bytes`; an entry that is larger by itself is
  // not stored.
  void Add(const std::string& key, std::string_view plugin_bytes);

  // Counts and logs that the cache or an entry of it was of no use. `reason` is a short text that
  // is the same for all entries; `detail` is logged with the first.
  void NoteFault(const std::string& reason, std::string_view detail);

  // The faults so far: how often each reason occurred.
  std::map<std::string, int64_t> faults() const;

  const std::string& folder() const { return folder_; }
  FileSystem& files() const { return files_; }

 private:
  Status Write(const std::string& key, std::string_view plugin_bytes);
  void RemoveOldest();

  FileSystem& files_;
  const std::string folder_;
  const int64_t most_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, int64_t> faults_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_CACHE_H_
