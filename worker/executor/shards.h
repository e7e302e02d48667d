// A rank's parameters and optimizer states: filled from the seed or a checkpoint, written as its
// part of one.
//
// The step thread does nothing else meanwhile.
#ifndef TROUPE_WORKER_EXECUTOR_SHARDS_H_
#define TROUPE_WORKER_EXECUTOR_SHARDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/ownership.h"
#include "checkpoint/shard_writer.h"
#include "checkpoint/slice.h"
#include "kernels/backend.h"
#include "model/program/program.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The slices that each rank of the plan holds, in the order of model::ParameterSlices of its
// program. Pure.
StatusOr<std::vector<std::vector<GlobalSlice>>> SlicesOfRanks(const v1::JobSpec& spec,
                                                              const v1::Plan& plan);

// A value of zeros.
Status StoreZeros(const model::Program& program, kernels::Executable& executable,
                  model::ValueId value);

// Initial weights; optimizer states 0.
Status InitializeState(const model::Program& program, uint64_t seed, kernels::Executable& executable);

// Weights and optimizer states out of the checkpoint in `directory`, states of 0 where it holds
// weights alone: every block is verified before it is copied, and after an error nothing of the state may
// be used. FAILED_PRECONDITION with the field manifest.samples (plan/violation.h) where it needs a channel
// of samples that this build does not know so; errors of LoadSlices.
Status LoadState(FileSystem& files, const std::string& directory,
                 const v1::CheckpointManifest& manifest, const model::Program& program,
                 kernels::Executable& executable);

// What a rank writes of its state, where it lies; the executable outlives it. `owned` is of the rank (AssignOwners of
// SlicesOfRanks).
std::vector<ShardTensor> OwnedTensors(const std::vector<OwnedRows>& owned,
                                      const model::Program& program,
                                      kernels::Executable& executable);

// Writes what `rank` owns of each slice (AssignOwners of SlicesOfRanks). Errors of WriteShard.
StatusOr<v1::ShardFile> SaveState(FileSystem& files, const std::string& directory, int rank,
                                  const std::vector<OwnedRows>& owned,
                                  const model::Program& program, kernels::Executable& executable);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_SHARDS_H_
