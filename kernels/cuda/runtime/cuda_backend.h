// Runs stage programs on a GPU: the kernels of kernels/cuda, matmuls and attention of libraries,
// one arena, three streams plus one per pipeline link. A part of a step is one graph, captured the
// first time it runs.
//
// One thread at a time may use an executable; CurrentOperation may be called from any thread.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_CUDA_BACKEND_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_CUDA_BACKEND_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_libraries.h"
#include "kernels/cuda/runtime/make_device_communicator.h"

namespace troupe::kernels {

class CudaBackend : public Backend {
 public:
  // `device` and `libraries` must outlive this object, and this object its executables. Without
  // `make_communicator`, programs must have one rank.
  CudaBackend(cuda::Device& device, const cuda::DeviceLibraries& libraries,
              MakeDeviceCommunicator make_communicator)
      : device_(device), libraries_(libraries), make_communicator_(std::move(make_communicator)) {}

  std::string kernel_level() const override { return "cuda " + device_.description(); }
  // Errors: UNIMPLEMENTED with the name of an operation that the backend does not support,
  // INVALID_ARGUMENT for a malformed one.
  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator& find_communicator) override;

  const std::vector<std::string>& fallbacks() const override { return fallbacks_; }
  const std::vector<std::string>& implementations() const override { return implementations_; }
  std::vector<ExecutedMatmul> executed_matmuls() const override { return executed_matmuls_; }
  PreparationCounts preparation_counts() const override { return {std::nullopt, graph_captures_}; }

 private:
  cuda::Device& device_;
  const cuda::DeviceLibraries libraries_;
  const MakeDeviceCommunicator make_communicator_;
  std::vector<std::string> fallbacks_, implementations_;
  std::vector<ExecutedMatmul> executed_matmuls_;
  int64_t graph_captures_ = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_CUDA_BACKEND_H_
