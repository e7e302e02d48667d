// Finds values that share storage.
#ifndef TROUPE_MODEL_PROGRAM_STORAGE_H_
#define TROUPE_MODEL_PROGRAM_STORAGE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "model/program/program.h"

namespace troupe::model {

// The value that owns the storage of `id` (`id` itself if it is not a view) and the byte offset in
// it.
std::pair<ValueId, int64_t> StorageOf(const Program& program, ValueId id);
inline ValueId StorageRoot(const Program& program, ValueId id) {
  return StorageOf(program, id).first;
}

// Whether the storage of `root` keeps its contents beyond a chunk's pieces of one microbatch.
bool IsPersistent(const Value& root);

// The storage roots of all values.
std::vector<ValueId> StorageRoots(const Program& program);

// The storage of a value: bytes [begin, end) of the storage of `root`.
struct StorageRange {
  ValueId root = kNoValue;
  int64_t begin = 0, end = 0;
  // An empty range counts as the whole storage: whether operations may be reordered must not depend
  // on how many rows of a tensor a rank has.
  bool Overlaps(const StorageRange& other) const {
    return root == other.root &&
           (begin == end || other.begin == other.end || (begin < other.end && other.begin < end));
  }
};

// The storage ranges of all values.
std::vector<StorageRange> StorageRanges(const Program& program);

// The alignment of a gradient's start in memory, in bytes: a multiple of 64 and of the bucket's
// alignment.
int64_t BucketAlignment(const Program& program);
// The size in bytes, including padding, of a bucket whose gradients take `bytes` from the start of
// the first one.
int64_t PaddedBucketBytes(const Program& program, int64_t bytes);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_STORAGE_H_
