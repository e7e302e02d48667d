// Which values share storage.
#ifndef TROUPE_MODEL_PROGRAM_STORAGE_H_
#define TROUPE_MODEL_PROGRAM_STORAGE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "model/program/program.h"

namespace troupe::model {

// The value whose storage `id` lies in (itself, if it is no view) and the byte offset in it.
std::pair<ValueId, int64_t> StorageOf(const Program& program, ValueId id);
inline ValueId StorageRoot(const Program& program, ValueId id) {
  return StorageOf(program, id).first;
}

// Whether the storage of `root` keeps its contents beyond a chunk's pieces of one microbatch.
bool IsPersistent(const Value& root);

// StorageRoot of every value.
std::vector<ValueId> StorageRoots(const Program& program);

// Where a value lies: bytes [begin, end) of the storage of `root`.
struct StorageRange {
  ValueId root = kNoValue;
  int64_t begin = 0, end = 0;
  // A range without bytes counts as all of its storage: whether operations may change places must not
  // depend on how many rows of a tensor a rank has.
  bool Overlaps(const StorageRange& other) const {
    return root == other.root && (begin == end || other.begin == other.end ||
                                  (begin < other.end && other.begin < end));
  }
};

// Where each value lies.
std::vector<StorageRange> StorageRanges(const Program& program);

// Bytes of which the start of a gradient in memory is a multiple: 64 and the bucket's alignment.
int64_t BucketAlignment(const Program& program);
// Bytes of a bucket whose gradients take `bytes` from its first one's start on, padding included.
int64_t PaddedBucketBytes(const Program& program, int64_t bytes);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_STORAGE_H_
