#include "worker/executor/shards.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/sample_schema.h"
#include "checkpoint/sample_channels.h"
#include "checkpoint/shard_reader.h"
#include "model/build.h"
#include "model/initialize.h"
#include "model/parameter_slices.h"
#include "plan/mesh.h"
#include "plan/stage_inputs.h"
#include "plan/violation.h"

namespace troupe {
namespace {

constexpr int64_t kFloatBytes = 4;

GlobalSlice ToGlobalSlice(const model::ParameterSlice& slice) {
  return {slice.name, "F32", slice.global_shape, {slice.offset, slice.local_shape}};
}

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

std::span<std::byte> MemoryOf(const model::ParameterSlice& slice, kernels::Executable& executable) {
  auto* const base = static_cast<std::byte*>(executable.Address(slice.value, 0));
  return {base + slice.element_offset * kFloatBytes,
          static_cast<size_t>(ElementsOf(slice.local_shape) * kFloatBytes)};
}

void FillZero(const model::Program& program, model::ValueId value,
              kernels::Executable& executable) {
  auto* const begin = static_cast<std::byte*>(executable.Address(value, 0));
  std::fill(begin, begin + program.value(value).bytes(), std::byte{0});
}

}  // namespace

StatusOr<std::vector<std::vector<GlobalSlice>>> SlicesOfRanks(const v1::JobSpec& spec,
                                                              const v1::Plan& plan) {
  const Mesh mesh(plan.mesh());
  std::vector<std::vector<GlobalSlice>> slices(mesh.ranks());
  // Replicas hold the same, so that one of them stands for all.
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    model::PerAxis coordinates = mesh.CoordinatesOf(rank);
    coordinates[model::Axis::kDataReplicate] = 0;
    const int representative = mesh.RankOf(coordinates);
    if (representative != rank) {
      slices[rank] = slices[representative];
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const model::BuildOptions build,
                            MakeStageBuildOptions(spec, plan, rank));
    TROUPE_ASSIGN_OR_RETURN(const model::Program program, model::BuildProgram(build));
    for (const model::ParameterSlice& slice : model::ParameterSlices(program)) {
      slices[rank].push_back(ToGlobalSlice(slice));
    }
  }
  return slices;
}

void InitializeState(const model::Program& program, uint64_t seed,
                     kernels::Executable& executable) {
  constexpr int64_t kBlock = 1 << 15;  // elements of one unit of work
  for (const model::RouterBias& entry : program.router_biases) {
    FillZero(program, entry.bias, executable);
  }
  for (const model::ParameterEntry& entry : program.parameters) {
    FillZero(program, entry.value, executable);
    FillZero(program, entry.exp_avg, executable);
    FillZero(program, entry.exp_avg_sq, executable);
    auto* const base = static_cast<float*>(executable.Address(entry.value, 0));
    const int64_t row_elements = program.value(entry.value).row_elements();
    for (const model::ParameterPart& part : entry.parts) {
      const int64_t elements = ElementsOf(part.local_shape);
      float* const begin = base + part.row_begin * row_elements;
#pragma omp parallel for schedule(static)
      for (int64_t first = 0; first < elements; first += kBlock) {
        const int64_t count = std::min(kBlock, elements - first);
        model::FillInitial(seed, entry, part, first, {begin + first, static_cast<size_t>(count)});
      }
    }
  }
}

Status LoadState(FileSystem& files, const std::string& directory,
                 const v1::CheckpointManifest& manifest, const model::Program& program,
                 kernels::Executable& executable) {
  // Of a later build: nothing is wrong with what lies there.
  if (const Status known = CheckSampleChannels(manifest.samples(), CurrentSampleSchema());
      !known.ok()) {
    return RefuseField(known.code(), "manifest.samples", "of {}: {}", directory, Message(known));
  }
  for (const model::ParameterEntry& entry : program.parameters) {
    for (model::ValueId value : {entry.value, entry.exp_avg, entry.exp_avg_sq})
      FillZero(program, value, executable);
  }
  for (const model::RouterBias& entry : program.router_biases) {
    FillZero(program, entry.bias, executable);
  }
  std::vector<LoadTarget> targets;
  for (const model::ParameterSlice& slice : model::ParameterSlices(program)) {
    // An import has no optimizer states: they begin with 0.
    if (manifest.weights_only() && slice.name.starts_with("exp_avg")) continue;
    targets.push_back({ToGlobalSlice(slice), MemoryOf(slice, executable)});
  }
  return LoadSlices(files, directory, manifest, targets);
}

std::vector<ShardTensor> OwnedTensors(const std::vector<OwnedRows>& owned,
                                      const model::Program& program,
                                      kernels::Executable& executable) {
  const std::vector<model::ParameterSlice> slices = model::ParameterSlices(program);
  std::vector<ShardTensor> tensors;
  for (const OwnedRows& rows : owned) {
    const model::ParameterSlice& slice = slices[rows.slice];
    const GlobalSlice whole = ToGlobalSlice(slice);
    const GlobalSlice part = RowsOf(whole, rows);
    const std::span<std::byte> memory = MemoryOf(slice, executable);
    tensors.push_back(
        {part, memory.subspan(static_cast<size_t>(ByteOffsetOf(whole, rows)),
                              static_cast<size_t>(ElementsOf(part.box.shape) * kFloatBytes))});
  }
  return tensors;
}

StatusOr<v1::ShardFile> SaveState(FileSystem& files, const std::string& directory, int rank,
                                  const std::vector<OwnedRows>& owned,
                                  const model::Program& program, kernels::Executable& executable) {
  return WriteShard(files, directory, rank, OwnedTensors(owned, program, executable));
}

}  // namespace troupe
