// Compares a hundred training steps of the product's plan and executor on this machine's GPU with
// those of the CPU backend.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "kernels/backend/backend.h"
#include "kernels/cuda/libraries/cublaslt_library.h"
#include "tests/gpu/cpu_losses.h"
#include "tests/gpu/device_backend.h"
#include "tests/gpu/expect_cpu_losses.h"

namespace troupe {
namespace {

// Parameters: preset, dtype, and whether cuBLASLt and cuDNN compute matmuls and attention (else our
// own kernels do).
class TrainingOnDevice : public testing::TestWithParam<std::tuple<std::string, std::string, bool>> {
};

std::string NameOfRun(const testing::TestParamInfo<TrainingOnDevice::ParamType>& instance) {
  const auto& [preset, dtype, libraries] = instance.param;
  return std::string(preset == "tiny" ? "tiny_" : "llama_124m_") + dtype +
         (libraries ? "" : "_own_kernels");
}

TEST_P(TrainingOnDevice, HasTheCpusLossesForAHundredSteps) {
  const auto& [preset, dtype, libraries] = GetParam();
  const kernels::cuda::CublasLtOptions untimed{.tune = false};
  const std::unique_ptr<kernels::Backend> backend =
      kernels::MakeDeviceBackend(libraries ? &untimed : nullptr);
  const CpuLosses recorded = RecordedCpuLosses(preset, dtype);
  ExpectCpuLosses(*backend, "cuda", recorded, recorded.training.steps, recorded.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Device, TrainingOnDevice,
                         testing::Combine(testing::Values("tiny", "llama-124m"),
                                          testing::Values("float32", "bfloat16"),
                                          testing::Values(true, false)),
                         NameOfRun);

}  // namespace
}  // namespace troupe
