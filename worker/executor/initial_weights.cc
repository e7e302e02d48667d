#include "worker/executor/initial_weights.h"

#include <vector>

#include "checkpoint/format/slice.h"
#include "interop/hf_weights.h"
#include "interop/llama_tensors.h"
#include "model/parameter_slices.h"
#include "worker/executor/host_values.h"
#include "worker/executor/shards.h"

namespace troupe {
Status LoadInitialWeights(FileSystem& files, const v1::JobSpec& spec, const model::Program& program,
                          kernels::ValueMemory& values) {
  if (!spec.model().has_from()) {
    return InitializeState(program, spec.training().seed(), values);
  }
  const auto weights = HfWeights::Open(files, spec.model().from());
  if (!weights.ok()) return Annotate(weights.status(), "model.from");
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> tensors, LlamaTensors(spec.model()));
  TROUPE_RETURN_IF_ERROR(Annotate(weights->Check(tensors), "model.from"));
  const std::vector<model::ParameterSlice> slices = model::ParameterSlices(program);
  TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, program.applied_steps));
  for (const model::ParameterEntry& entry : program.parameters) {
    TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, entry.exp_avg));
    TROUPE_RETURN_IF_ERROR(StoreZeros(program, values, entry.exp_avg_sq));
    HostFill fill(program, values, entry.value);
    for (const model::ParameterSlice& slice : slices) {
      if (slice.value != entry.value) continue;
      const Box box{.offset = slice.offset, .shape = slice.local_shape};
      // Together the ranks compare the whole table, as the client that submits a job does.
      if (spec.model().tie_word_embeddings() && slice.name == kEmbeddingTensor)
        TROUPE_RETURN_IF_ERROR(Annotate(weights->CheckTiedHead(box), "model.from"));
      const size_t elements = static_cast<size_t>(*Elements(slice.local_shape));
      TROUPE_RETURN_IF_ERROR(
          Annotate(weights->Read(slice.name, slice.global_shape, box,
                                 {fill.As<float>() + slice.element_offset, elements}),
                   "model.from"));
    }
    TROUPE_RETURN_IF_ERROR(fill.Store());
  }
  return OkStatus();
}

}  // namespace troupe
