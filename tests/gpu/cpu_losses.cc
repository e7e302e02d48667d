#include "tests/gpu/cpu_losses.h"

#include <fmt/format.h>

#include "base/check.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 100;

constexpr double kTinyFloat32[kSteps] = {
#include "tests/gpu/golden/tiny_float32.inc"
};
constexpr double kTinyBFloat16[kSteps] = {
#include "tests/gpu/golden/tiny_bfloat16.inc"
};
constexpr double kLlamaFloat32[kSteps] = {
#include "tests/gpu/golden/llama-124m_float32.inc"
};
constexpr double kLlamaBFloat16[kSteps] = {
#include "tests/gpu/golden/llama-124m_bfloat16.inc"
};

}  // namespace

CpuLosses RecordedCpuLosses(const std::string& preset, const std::string& dtype) {
  const bool tiny = preset == "tiny", wide = dtype == "float32";
  TROUPE_CHECK(tiny || preset == "llama-124m");
  TROUPE_CHECK(wide || dtype == "bfloat16");
  CpuLosses recorded;
  // Preset tiny accumulates the gradients of two microbatches.
  recorded.training = {.preset = preset,
                       .batch = tiny ? 4 : 2,
                       .micro_batch = 2,
                       .sequence = tiny ? 32 : 64,
                       .steps = kSteps,
                       .learning_rate = tiny ? 5e-4 : 5e-5,
                       .dtype = dtype,
                       .seed = 1234};
  recorded.tolerance = wide ? 1e-4 : 1e-2;
  recorded.losses =
      tiny ? (wide ? kTinyFloat32 : kTinyBFloat16) : (wide ? kLlamaFloat32 : kLlamaBFloat16);
  return recorded;
}

std::string CpuLossesPath(const std::string& preset, const std::string& dtype) {
  return fmt::format("tests/gpu/golden/{}_{}.inc", preset, dtype);
}

}  // namespace troupe
