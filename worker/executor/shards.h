// A rank's states (model::Program::states): initialised from the seed, loaded from a checkpoint, or
// saved as the rank's part of one.
//
// The step thread runs nothing else meanwhile.
#ifndef TROUPE_WORKER_EXECUTOR_SHARDS_H_
#define TROUPE_WORKER_EXECUTOR_SHARDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/format/slice.h"
#include "checkpoint/write/ownership.h"
#include "checkpoint/write/shard_writer.h"
#include "kernels/backend/value_memory.h"
#include "model/parameter_slices.h"
#include "model/program/program.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The slices that each rank of the plan holds, in the order of model::ParameterSlices of its
// program. Pure.
StatusOr<std::vector<std::vector<GlobalSlice>>> SlicesOfRanks(const v1::JobSpec& spec,
                                                              const v1::Plan& plan);

// Limit of bytes that a load copies at once, in addition to the device's memory.
inline constexpr size_t kCopiedBytesMax = size_t{1} << 30;

// The slice as checkpoints store it.
GlobalSlice ToGlobalSlice(const model::ParameterSlice& slice);

// Stores what `state` holds before the first step of a job with this seed.
Status StoreInitial(const model::Program& program, const model::State& state, uint64_t seed,
                    kernels::ValueMemory& values);

// Stores what every state holds before the first step of a job with this seed.
Status InitializeState(const model::Program& program, uint64_t seed, kernels::ValueMemory& values);

// Loads weights and optimizer states from the checkpoint in `directory`; the states become 0 if it
// has only weights. Every block is verified before it is copied; after an error the state must not
// be used. Returns FAILED_PRECONDITION with the field manifest.samples (plan/job/violation.h) if
// the checkpoint needs a channel of samples that this build does not know in that form; errors of
// LoadSlices.
Status LoadState(FileSystem& files, const std::string& directory,
                 const v1::CheckpointManifest& manifest, const model::Program& program,
                 kernels::ValueMemory& values);

// The tensors that a rank writes of its state, in place; `values` outlives them. `owned` is
// the rank's part of AssignOwners(SlicesOfRanks).
std::vector<ShardTensor> OwnedTensors(const std::vector<OwnedRows>& owned,
                                      const model::Program& program, kernels::ValueMemory& values);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_SHARDS_H_
