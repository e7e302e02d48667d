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
#include "plan/validate/stage_inputs.h"
#include "worker/executor/host_values.h"

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

// Tensors that a checkpoint with optimizer states may lack.
bool IsOptional(std::string_view tensor) {
  return tensor.starts_with(model::kAmaxPrefix) || tensor == model::kAppliedStepsTensor;
}

// Limit of bytes that are copied at once, in addition to the device's memory.
constexpr size_t kCopiedBytesMax = size_t{1} << 30;

}  // namespace

StatusOr<std::vector<std::vector<GlobalSlice>>> SlicesOfRanks(const v1::JobSpec& spec,
                                                              const v1::Plan& plan) {
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
                            MakeStageBuildOptions(spec, plan, rank));
    TROUPE_ASSIGN_OR_RETURN(const model::Program program, model::BuildProgram(build));
    for (const model::ParameterSlice& slice : model::ParameterSlices(program)) {
      slices[rank].push_back(ToGlobalSlice(slice));
    }
  }
  return slices;
}

Status StoreZeros(const model::Program& program, kernels::ValueMemory& values,
                  model::ValueId value) {
  return HostFill(program, values, value).Store();
}

Status InitializeState(const model::Program& program, uint64_t seed, kernels::ValueMemory& values) {
  constexpr int64_t kBlock = 1 << 15;  // elements of one unit of work
  for (const model::RouterBias& entry : program.router_biases) {
    TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, entry.bias));
  }
  for (const model::AmaxHistory& entry : program.amax_histories) {
    TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, entry.history));
  }
  TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, program.applied_steps));
  for (const model::ParameterEntry& entry : program.parameters) {
    TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, entry.exp_avg));
    TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, entry.exp_avg_sq));
    HostFill weights(program, values, entry.value);
    const int64_t row_elements = program.value(entry.value).row_elements();
    for (const model::ParameterPart& part : entry.parts) {
      const int64_t elements = ElementsOf(part.local_shape);
      float* const begin = weights.As<float>() + part.row_begin * row_elements;
#pragma omp parallel for schedule(static)
      for (int64_t first = 0; first < elements; first += kBlock) {
        const int64_t count = std::min(kBlock, elements - first);
        model::FillInitial(seed, entry, part, first, {begin + first, static_cast<size_t>(count)});
      }
    }
    TROUPE_RETURN_IF_ERROR(weights.Store());
  }
  return OkStatus();
}

Status LoadState(FileSystem& files, const std::string& directory,
                 const v1::CheckpointManifest& manifest, const model::Program& program,
                 kernels::ValueMemory& values) {
  // Refuses a checkpoint of a later build; its files are not damaged.
  if (const Status known = CheckSampleChannels(manifest.samples(), CurrentSampleSchema());
      !known.ok()) {
    return RefuseField(known.code(), "manifest.samples", "of {}: {}", directory, Message(known));
  }
  std::set<std::string, std::less<>> optional;
  for (const v1::ShardFile& shard : manifest.shards()) {
    for (const v1::TensorSlice& tensor : shard.tensors()) {
      if (IsOptional(tensor.name())) optional.insert(tensor.name());
    }
  }
  std::map<model::ValueId, std::vector<model::ParameterSlice>> slices;
  for (model::ParameterSlice& slice : model::ParameterSlices(program)) {
    // Optimizer states are missing in an import, histories of scaling in the checkpoint of a run
    // without them. Missing tensors start with 0.
    const bool is_there = IsOptional(slice.name)
                              ? optional.contains(slice.name)
                              : !manifest.weights_only() || !slice.name.starts_with("exp_avg");
    std::vector<model::ParameterSlice>& of_value = slices[slice.value];
    if (is_there) of_value.push_back(std::move(slice));
  }
  // Loads at once as many values as the limit on copied bytes allows.
  for (auto next = slices.begin(); next != slices.end();) {
    std::vector<HostFill> fills;
    std::vector<LoadTarget> targets;
    for (size_t copied = 0; next != slices.end() && copied < kCopiedBytesMax; ++next) {
      HostFill& fill = fills.emplace_back(program, values, next->first);
      copied += fill.copied_bytes();
      for (const model::ParameterSlice& slice : next->second) {
        targets.push_back({ToGlobalSlice(slice),
                           fill.bytes().subspan(
                               static_cast<size_t>(slice.element_offset * kFloatBytes),
                               static_cast<size_t>(ElementsOf(slice.local_shape) * kFloatBytes))});
      }
    }
    TROUPE_RETURN_IF_ERROR(LoadSlices(files, directory, manifest, targets));
    for (HostFill& fill : fills) TROUPE_RETURN_IF_ERROR(fill.Store());
  }
  if (optional.contains(model::kAppliedStepsTensor)) return OkStatus();
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
