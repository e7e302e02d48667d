// Tests that the CPU backend still computes the recorded losses and that the emulated GPU computes
// them, too. To accept a change of the CPU's arithmetic, initial weights or synthetic tokens,
// record them again (a few minutes), build, and read the difference:
//
//   TROUPE_UPDATE_GOLDEN=1 build/release/bin/cpu_losses_test --gtest_filter='*AreThoseOfARun*'
#include "tests/gpu/cpu_losses.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/file_system.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "tests/gpu/expect_cpu_losses.h"

namespace troupe {
namespace {

// One thread: if other work occupies the machine's processors, threads that wait for each other
// take far longer.
std::unique_ptr<kernels::CpuBackend> Cpu() {
  return kernels::CpuBackend::Make({1, std::nullopt}).value();
}

// Tolerance for other processors' instructions and orders of summation. It is tighter than a GPU's,
// so that a change of the CPU's arithmetic is detected here first.
double CpuTolerance(const CpuLosses& recorded) { return recorded.tolerance / 2; }

// Parameters: preset and dtype.
class CpuLossesOf : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(CpuLossesOf, AreThoseOfARun) {
  const auto& [preset, dtype] = GetParam();
  const CpuLosses recorded = RecordedCpuLosses(preset, dtype);
  if (std::getenv("TROUPE_UPDATE_GOLDEN") != nullptr) {
    PosixFileSystem files;
    std::vector<double> losses;
    const Status trained = Train(*Cpu(), files, recorded.training,
                                 [&](const TrainingStep& step) { losses.push_back(step.loss); });
    ASSERT_TRUE(trained.ok()) << trained;
    // Losses that hardly fall would hide a wrong update.
    ASSERT_LT(losses.back(), losses.front() - 1);
    std::ofstream out(CpuLossesPath(preset, dtype));
    for (const double loss : losses) out << fmt::format("{:.9f},\n", loss);
    GTEST_SKIP() << "wrote " << CpuLossesPath(preset, dtype);
  }
  // A whole run of the large preset takes minutes; three steps depend on its weights, gradients and
  // updates.
  const int64_t steps = preset == "tiny" ? recorded.training.steps : 3;
  ExpectCpuLosses(*Cpu(), "cpu", recorded, steps, CpuTolerance(recorded));
}

// The second step's loss depends on the gradients and the update of the first.
TEST(EmulatedTraining, HasTheCpusLosses) {
  for (const std::string dtype : {"float32", "bfloat16"}) {
    kernels::EmulatedBackend backend;
    const CpuLosses recorded = RecordedCpuLosses("tiny", dtype);
    ExpectCpuLosses(backend, "cuda", recorded, 2, recorded.tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recorded, CpuLossesOf,
    testing::Combine(testing::Values("tiny", "llama-124m"), testing::Values("float32", "bfloat16")),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param) == "tiny" ? "tiny" : "llama_124m") + "_" +
             std::get<1>(instance.param);
    });

}  // namespace
}  // namespace troupe
