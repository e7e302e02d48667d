#include "worker/executor/frozen_weights.h"

#include <algorithm>
#include <vector>

#include "model/parameter_slices.h"
#include "worker/executor/folder_fault.h"
#include "worker/executor/host_values.h"
#include "worker/executor/shards.h"

namespace troupe {
namespace {

bool StartsFromCheckpoint(const v1::JobSpec& spec) {
  return !spec.checkpoint().initial_load().empty();
}

// An error of the base, with the key that names it.
Status OfBase(const BaseFiles& files, const v1::JobSpec& spec, const Status& status) {
  if (StartsFromCheckpoint(spec)) {
    return FaultOfKey(files.checkpoints, kBaseCheckpoint, spec.checkpoint().initial_load(), status);
  }
  return FaultOfKey(files.imports, kBaseDirectory, spec.model().from(), status);
}

}  // namespace

StatusOr<BaseWeights> OpenBase(const BaseFiles& files, const v1::JobSpec& spec) {
  StatusOr<BaseWeights> base =
      StartsFromCheckpoint(spec)
          ? BaseWeights::Open(files, kBaseCheckpoint, spec.checkpoint().initial_load())
          : BaseWeights::Open(files, kBaseDirectory, spec.model().from());
  if (!base.ok()) return OfBase(files, spec, base.status());
  return base;
}

Status LoadFrozenWeights(const BaseFiles& files, const v1::JobSpec& spec,
                         const model::Program& program, kernels::ValueMemory& values) {
  const auto is_frozen = [&](const model::State& state) { return IsFrozen(program, state); };
  if (std::ranges::none_of(program.states, is_frozen)) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const BaseWeights base, OpenBase(files, spec));
  // Loads at once as many values as the limit on copied bytes allows.
  for (auto next = program.states.begin(); next != program.states.end();) {
    std::vector<HostFill> fills;
    std::vector<LoadTarget> targets;
    for (size_t copied = 0; next != program.states.end() && copied < kCopiedBytesMax; ++next) {
      if (!is_frozen(*next)) continue;
      HostFill& fill = fills.emplace_back(program, values, next->value);
      copied += fill.copied_bytes();
      for (const model::ParameterSlice& slice : SlicesOf(program, *next)) {
        const auto numbers =
            fill.numbers().subspan(static_cast<size_t>(slice.element_offset),
                                   static_cast<size_t>(*Elements(slice.local_shape)));
        targets.push_back({ToGlobalSlice(slice), std::as_writable_bytes(numbers)});
      }
    }
    TROUPE_RETURN_IF_ERROR(OfBase(files, spec, base.Load(targets)));
    for (HostFill& fill : fills) TROUPE_RETURN_IF_ERROR(fill.Store());
  }
  return OkStatus();
}

}  // namespace troupe
