// Places the storage of values by the time in which it is in use. Pure.
#ifndef TROUPE_MODEL_PROGRAM_LIFETIME_H_
#define TROUPE_MODEL_PROGRAM_LIFETIME_H_

#include <cstdint>
#include <vector>

#include "model/program/value.h"

namespace troupe::model {

// The time in which a root's storage is in use: from its first to its last operation, inclusive.
struct Lifetime {
  ValueId root = kNoValue;
  int64_t bytes = 0;
  int begin = 0, end = 0;  // operation numbers
  int first_piece = 0, last_piece = 0;
  int64_t offset = 0;

  bool Overlaps(const Lifetime& other) const { return begin <= other.end && other.begin <= end; }
};

// Assigns offsets so that lifetimes that overlap in time do not overlap in space: the largest
// first, each at the lowest free offset. Returns the bytes used.
//
// With n lifetimes, of which d have different offsets, it takes n log n steps if all lifetimes have
// an operation in common, and n × d × log n otherwise: equal blocks repeat their offsets.
int64_t Pack(std::vector<Lifetime*> lifetimes);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_LIFETIME_H_
