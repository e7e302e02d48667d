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

// Of every value.
std::vector<ValueId> StorageRoots(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_STORAGE_H_
