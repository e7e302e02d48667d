#include "worker/executor/initial_weights.h"

#include <vector>

#include "checkpoint/format/slice.h"
#include "interop/base_weights.h"
#include "interop/hf_weights.h"
#include "interop/llama_tensors.h"
#include "model/parameter_slices.h"
#include "worker/executor/folder_fault.h"
#include "worker/executor/host_values.h"
#include "worker/executor/shards.h"

namespace troupe {
Status LoadInitialWeights(FileSystem& files, const v1::JobSpec& spec, const model::Program& program,
                          kernels::ValueMemory& values) {
  if (!spec.model().has_from()) {
    return InitializeState(program, spec.training().seed(), values);
  }
  const std::string& directory = spec.model().from();
  const auto of_directory = [&](const Status& status) {
    return FaultOfKey(files, kBaseDirectory, directory, status);
  };
  const auto weights = HfWeights::Open(files, directory);
  if (!weights.ok()) return of_directory(weights.status());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> tensors, LlamaTensors(spec.model()));
  TROUPE_RETURN_IF_ERROR(of_directory(weights->Check(tensors)));
  for (const model::State& state : program.states) {
    if (state.kind != model::StateKind::kWeight) {
      TROUPE_RETURN_IF_ERROR(StoreInitial(program, state, spec.training().seed(), values));
      continue;
    }
    HostFill fill(program, values, state.value);
    for (const model::ParameterSlice& slice : SlicesOf(program, state)) {
      const Box box{.offset = slice.offset, .shape = slice.local_shape};
      // Together the ranks compare the whole table, as the client that submits a job does.
      if (spec.model().tie_word_embeddings() && slice.name == kEmbeddingTensor)
        TROUPE_RETURN_IF_ERROR(of_directory(weights->CheckTiedHead(box)));
      const size_t elements = static_cast<size_t>(*Elements(slice.local_shape));
      const auto numbers =
          fill.numbers().subspan(static_cast<size_t>(slice.element_offset), elements);
      TROUPE_RETURN_IF_ERROR(
          of_directory(weights->Read(slice.name, slice.global_shape, box, numbers)));
    }
    TROUPE_RETURN_IF_ERROR(fill.Store());
  }
  return OkStatus();
}

}  // namespace troupe
