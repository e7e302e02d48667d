#include "worker/executor/initial_weights.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "checkpoint/slice.h"
#include "interop/hf_weights.h"
#include "interop/llama_tensors.h"
#include "model/parameter_slices.h"
#include "worker/executor/shards.h"

namespace troupe {
namespace {

void FillZero(const model::Program& program, model::ValueId value,
              kernels::Executable& executable) {
  std::memset(executable.Address(value, 0), 0,
              static_cast<size_t>(program.value(value).bytes()));
}

}  // namespace

Status LoadInitialWeights(FileSystem& files, const v1::JobSpec& spec,
                          const model::Program& program, kernels::Executable& executable) {
  if (!spec.model().has_from()) {
    InitializeState(program, spec.training().seed(), executable);
    return OkStatus();
  }
  const auto weights = HfWeights::Open(files, spec.model().from());
  if (!weights.ok()) return Annotate(weights.status(), "model.from");
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> tensors, LlamaTensors(spec.model()));
  TROUPE_RETURN_IF_ERROR(Annotate(weights->Check(tensors), "model.from"));
  for (const model::ParameterEntry& entry : program.parameters) {
    for (const model::ValueId value : {entry.value, entry.exp_avg, entry.exp_avg_sq}) {
      FillZero(program, value, executable);
    }
  }
  for (const model::ParameterSlice& slice : model::ParameterSlices(program)) {
    const bool is_weight =
        std::any_of(program.parameters.begin(), program.parameters.end(),
                    [&](const auto& entry) { return entry.value == slice.value; });
    if (!is_weight) continue;
    float* const begin =
        static_cast<float*>(executable.Address(slice.value, 0)) + slice.element_offset;
    const Box box{.offset = slice.offset, .shape = slice.local_shape};
    const size_t elements = static_cast<size_t>(*Elements(slice.local_shape));
    TROUPE_RETURN_IF_ERROR(Annotate(
        weights->Read(slice.name, slice.global_shape, box, {begin, elements}), "model.from"));
  }
  return OkStatus();
}

}  // namespace troupe
