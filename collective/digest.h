// A running digest of an ordered list of collective operations. Two ranks of a group with equal
// digests issue the same operations in the same order (up to 64-bit collisions).
// Communicator::CompareDigest compares them before step 1, so that asymmetric programs are rejected
// at the start instead of hanging later.
#ifndef TROUPE_COLLECTIVE_DIGEST_H_
#define TROUPE_COLLECTIVE_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collective/algorithm/operation.h"

namespace troupe {

class OperationDigest {
 public:
  // `group` is the group's name.
  explicit OperationDigest(std::string_view group);

  // Adds the next operation. `bytes`: as in CollectiveStatistics, or 0 if the size is known only at
  // run time (all_to_all with counts). `reduction`: its name, or empty. A send and its receive
  // count as the same.
  void Add(CollectiveOperation operation, size_t bytes, std::string_view reduction,
           Purpose purpose);

  uint64_t value() const { return value_; }

 private:
  uint64_t value_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_DIGEST_H_
