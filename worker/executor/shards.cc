#include "worker/executor/shards.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/sample_schema.h"
#include "checkpoint/format/sample_channels.h"
#include "checkpoint/read/shard_reader.h"
#include "model/build.h"
#include "model/initialize.h"
#include "model/parameter_slices.h"
#include "plan/job/violation.h"
#include "plan/layout/mesh.h"
#include "plan/validate/decoded_job.h"
#include "plan/validate/stage_inputs.h"
#include "worker/executor/host_values.h"

namespace troupe {
namespace {

constexpr int64_t kFloatBytes = 4;

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

// Whether a checkpoint with optimizer states may lack tensors of this kind: a run without delayed
// scaling has no histories, and a build that counted only steps wrote no number of applied ones.
bool IsOptional(model::StateKind kind) {
  return kind == model::StateKind::kAmaxHistory || kind == model::StateKind::kAppliedSteps;
}

// The states of `program` that the checkpoint may lack and does lack: those of the optimizer in an
// import, and optional ones. They start with 0.
std::set<std::string> MissingTensors(const model::Program& program,
                                     const v1::CheckpointManifest& manifest) {
  std::set<std::string> missing;
  for (const model::State& state : program.states) {
    const bool of_optimizer = state.kind == model::StateKind::kOptimizer && manifest.weights_only();
    if (!of_optimizer && !IsOptional(state.kind)) continue;
    for (model::ParameterPart& part : PartsOf(program, state)) missing.insert(std::move(part.name));
  }
  for (const v1::ShardFile& shard : manifest.shards()) {
    for (const v1::TensorSlice& tensor : shard.tensors()) missing.erase(tensor.name());
  }
  return missing;
}

}  // namespace

GlobalSlice ToGlobalSlice(const model::ParameterSlice& slice) {
  return {slice.name, "F32", slice.global_shape, {slice.offset, slice.local_shape}};
}

StatusOr<std::vector<std::vector<GlobalSlice>>> SlicesOfRanks(const v1::JobSpec& spec,
                                                              const v1::Plan& plan) {
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  const Mesh mesh(plan.mesh());
  std::vector<std::vector<GlobalSlice>> slices(mesh.ranks());
  // Replicas hold the same values, so one of them represents all.
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    model::PerAxis coordinates = mesh.CoordinatesOf(rank);
    coordinates[model::Axis::kDataReplicate] = 0;
    const int representative = mesh.RankOf(coordinates);
    if (representative != rank) {
      slices[rank] = slices[representative];
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const model::BuildOptions build,
                            MakeStageBuildOptions(job, plan, rank));
    TROUPE_ASSIGN_OR_RETURN(const model::Program program, model::BuildProgram(build));
    for (const model::ParameterSlice& slice : model::ParameterSlices(program)) {
      slices[rank].push_back(ToGlobalSlice(slice));
    }
  }
  return slices;
}

Status InitializeState(const model::Program& program, uint64_t seed, kernels::ValueMemory& values) {
  for (const model::State& state : program.states)
    TROUPE_RETURN_IF_ERROR(StoreInitial(program, state, seed, values));
  return OkStatus();
}

Status StoreInitial(const model::Program& program, const model::State& state, uint64_t seed,
                    kernels::ValueMemory& values) {
  constexpr int64_t kBlock = 1 << 15;  // elements of one unit of work
  HostFill fill(program, values, state.value);
  if (state.initial.kind == model::InitialValue::Kind::kZeros) return fill.Store();
  const int64_t row_elements = program.value(state.value).row_elements();
  for (const model::ParameterPart& part : PartsOf(program, state)) {
    const int64_t elements = ElementsOf(part.local_shape);
    float* const begin = fill.numbers().data() + part.row_begin * row_elements;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < elements; first += kBlock) {
      const int64_t count = std::min(kBlock, elements - first);
      model::FillInitial(seed, state.initial, part, first,
                         {begin + first, static_cast<size_t>(count)});
    }
  }
  return fill.Store();
}

Status LoadState(FileSystem& files, const std::string& directory,
                 const v1::CheckpointManifest& manifest, const model::Program& program,
                 kernels::ValueMemory& values) {
  // Refuses a checkpoint of a later build; its files are not damaged.
  if (const Status known = CheckSampleChannels(manifest.samples(), CurrentSampleSchema());
      !known.ok()) {
    return RefuseField(known.code(), "manifest.samples", "of {}: {}", directory, Message(known));
  }
  const std::set<std::string> missing = MissingTensors(program, manifest);
  std::map<model::ValueId, std::vector<model::ParameterSlice>> slices;
  for (model::ParameterSlice& slice : model::ParameterSlices(program)) {
    std::vector<model::ParameterSlice>& of_value = slices[slice.value];
    if (!missing.contains(slice.name)) of_value.push_back(std::move(slice));
  }
  // Loads at once as many values as the limit on copied bytes allows.
  for (auto next = slices.begin(); next != slices.end();) {
    std::vector<HostFill> fills;
    std::vector<LoadTarget> targets;
    for (size_t copied = 0; next != slices.end() && copied < kCopiedBytesMax; ++next) {
      HostFill& fill = fills.emplace_back(program, values, next->first);
      copied += fill.copied_bytes();
      for (const model::ParameterSlice& slice : next->second) {
        targets.push_back(
            {ToGlobalSlice(slice), std::as_writable_bytes(fill.numbers().subspan(
                                       static_cast<size_t>(slice.element_offset),
                                       static_cast<size_t>(ElementsOf(slice.local_shape))))});
      }
    }
    TROUPE_RETURN_IF_ERROR(LoadSlices(files, directory, manifest, targets));
    for (HostFill& fill : fills) TROUPE_RETURN_IF_ERROR(fill.Store());
  }
  if (!missing.contains(model::kAppliedStepsTensor)) return OkStatus();
  // The checkpoint was written by a build that counted only steps, whether applied or skipped.
  const float steps = static_cast<float>(manifest.weights_only() ? 0 : manifest.state().step());
  return values.Write(program.applied_steps, 0, std::as_bytes(std::span(&steps, 1)));
}

std::vector<ShardTensor> OwnedTensors(const std::vector<OwnedRows>& owned,
                                      const model::Program& program, kernels::ValueMemory& values) {
  const std::vector<model::ParameterSlice> slices = model::ParameterSlices(program);
  std::vector<ShardTensor> tensors;
  for (const OwnedRows& rows : owned) {
    const model::ParameterSlice& slice = slices[rows.slice];
    const GlobalSlice whole = ToGlobalSlice(slice);
    const GlobalSlice part = RowsOf(whole, rows);
    const int64_t begin = slice.element_offset * kFloatBytes + ByteOffsetOf(whole, rows);
    const auto bytes = static_cast<size_t>(ElementsOf(part.box.shape) * kFloatBytes);
    if (values.is_host_memory()) {
      const auto* const memory = static_cast<const std::byte*>(values.Address(slice.value, 0));
      tensors.push_back({part, {memory + begin, bytes}, nullptr});
    } else {
      const auto read = [&values, value = slice.value, begin](int64_t at, std::span<std::byte> to) {
        return values.ReadPart(value, begin + at, to);
      };
      tensors.push_back({part, {}, read});
    }
  }
  return tensors;
}

}  // namespace troupe
