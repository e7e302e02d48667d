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

bool HasBase(const v1::JobSpec& spec) {
  return !spec.model().trainable().empty() &&
         (StartsFromCheckpoint(spec) || spec.model().has_from());
}

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
  for (const model::State& state : program.states) {
    if (!is_frozen(state)) continue;
    HostFill fill(program, values, state.value);
    std::vector<LoadTarget> targets;
    for (const model::ParameterSlice& slice : SlicesOf(program, state)) {
      const auto numbers =
          fill.numbers().subspan(static_cast<size_t>(slice.element_offset),
                                 static_cast<size_t>(*Elements(slice.local_shape)));
      targets.push_back({ToGlobalSlice(slice), std::as_writable_bytes(numbers)});
    }
    TROUPE_RETURN_IF_ERROR(OfBase(files, spec, base.Load(targets)));
    TROUPE_RETURN_IF_ERROR(fill.Store());
  }
  return OkStatus();
}

}  // namespace troupe
