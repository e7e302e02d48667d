// The memory plan: an address for every value of a program before anything is allocated.
//
// Regions: persistent (parameters, copies, gradients, optimizer state, scalars); one saved region
// per (chunk, buffer) with the same layout in all buffers (saved values, boundary activations and
// per-microbatch inputs); one temporary region shared by all pieces (offsets packed by lifetime
// within each piece; if pairs are interleaved, temporaries of backward pieces follow those of F);
// and the backend's scratch. A chunk's gradients, parameters and each of the optimizer's states are
// contiguous in the same order and 64-byte aligned, so that bucketed reductions and the optimizer
// run over flat ranges.
#ifndef TROUPE_MODEL_PROGRAM_MEMORY_PLAN_H_
#define TROUPE_MODEL_PROGRAM_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace troupe::model {

enum class Region : uint8_t { kPersistent, kSaved, kTemporary };

struct Location {
  Region region = Region::kPersistent;
  int32_t chunk_index = -1;  // for kSaved
  // Bytes from the base of the region (or buffer); a multiple of 64 except for views.
  int64_t offset = 0;
};

struct MemoryPlan {
  std::vector<Location> locations;  // index = ValueId; views are resolved
  int64_t persistent_bytes = 0;
  std::vector<int64_t> saved_bytes;  // per chunk index, for one buffer
  std::vector<int> buffers;          // per chunk index: microbatches alive at once
  bool split_backward = false;       // I and W may run separately; else only B may run
  int64_t temporary_bytes = 0;
  // The CPU's library scratch and packed operands (OpRules::scratch_bytes).
  int64_t scratch_bytes = 0;
  std::string peak_text;  // the values alive at the peak of the temporary region

  int64_t total_bytes() const {
    int64_t total = persistent_bytes + temporary_bytes + scratch_bytes;
    for (size_t c = 0; c < saved_bytes.size(); ++c) total += saved_bytes[c] * buffers[c];
    return total;
  }
};

// Within a buffer, inputs and boundary activations share no storage, so that a receive may be
// posted and a send be pending at any time while the buffer belongs to one microbatch. Saved values
// are packed by lifetime over F, B (or F, I, W). A root value that no operation uses has no storage
// (offset 0).
//
// `buffers[c]` microbatches of chunk index c are alive at once. `split_backward`: the schedule runs
// I and W separately, so values that W needs outlive I. REQUIRES: buffers.size() ==
// program.chunks.size().
MemoryPlan PlanMemory(const Program& program, const std::vector<int>& buffers, bool split_backward,
                      int threads);

std::string ToText(const MemoryPlan& plan, const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_MEMORY_PLAN_H_
