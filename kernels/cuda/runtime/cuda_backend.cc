#include "kernels/cuda/runtime/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/runtime/cuda_executable.h"

namespace troupe::kernels {

StatusOr<std::unique_ptr<Executable>> CudaBackend::Prepare(
    const model::Program& program, const model::MemoryPlan& plan,
    const FindCommunicator& find_communicator) {
  if (plan.locations.size() != program.values.size()) {
    return InvalidArgument("the memory plan places {} values, but the program has {}",
                           plan.locations.size(), program.values.size());
  }
  auto executable =
      std::make_unique<cuda::CudaExecutable>(program, plan, device_, libraries_, find_communicator,
                                             make_communicator_, &fallbacks_, &graph_captures_);
  TROUPE_RETURN_IF_ERROR(executable->Prepare());
  executed_matmuls_ = executable->executed_matmuls().List();
  for (const std::string& implementation : executable->implementations()) {
    if (std::ranges::find(implementations_, implementation) == implementations_.end()) {
      implementations_.push_back(implementation);
    }
  }
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace troupe::kernels
