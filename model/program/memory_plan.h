// The memory plan: an address for every value of a program before anything is allocated.
//
// Regions: persistent (parameters, copies, gradients, optimizer state, scalars), one saved region
// per (chunk, buffer) with equal layout in all buffers (saved values, boundary activations and
// per-microbatch inputs), one temporary region shared by all pieces (offsets packed by lifetime
// within each piece; where pairs are interleaved, temporaries of backward pieces come after those
// of F), and the backend's scratch. Gradients of a chunk, parameters, exp_avg and exp_avg_sq are
// each contiguous in the same order, 64-byte aligned, so that bucketed reductions and the optimizer
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
  int32_t chunk_index = -1;  // of kSaved
  int64_t offset = 0;        // bytes from the region's (buffer's) base; a multiple of 64 except for views
};

struct MemoryPlan {
  std::vector<Location> locations;      // index = ValueId; views are resolved
  int64_t persistent_bytes = 0;
  std::vector<int64_t> saved_bytes;     // per chunk index, one buffer's
  std::vector<int> buffers;             // per chunk index: microbatches alive at once
  bool split_backward = false;          // I and W may run apart; else only B may run
  int64_t temporary_bytes = 0;
  int64_t scratch_bytes = 0;            // library scratch and packed operands, as the device profile says
  std::string peak_text;                // the values alive at the peak of the temporary region

  int64_t total_bytes() const {
    int64_t total = persistent_bytes + temporary_bytes + scratch_bytes;
    for (size_t c = 0; c < saved_bytes.size(); ++c) total += saved_bytes[c] * buffers[c];
    return total;
  }
};

// In a buffer's region inputs and boundary activations keep their storage to themselves, so that a receive may be posted
// and a send be pending at any time while the buffer belongs to one microbatch; saved values are packed by lifetime
// over F, B (or F, I, W). A value that is its own root and that no operation touches has no storage (offset 0).
//
// `buffers[c]` microbatches of chunk index c are alive at once. `split_backward`: the schedule runs I and W apart, so
// what W needs outlives I.
// REQUIRES: buffers.size() == program.chunks.size().
MemoryPlan PlanMemory(const Program& program, const std::vector<int>& buffers, bool split_backward, int threads);

std::string ToText(const MemoryPlan& plan, const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_MEMORY_PLAN_H_
