// Ring attention at every level of the processor.
#include "kernels/ring_attention_test.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace troupe::kernels {
namespace {

using model::DType;

TEST(RingAttentionTest, ReferencePartsAreAttentionToWholeSamples) {
  ReferenceBackend backend;
  ExpectPartsAreTheWhole(backend, DType::kFloat32, 1e-6, {kRingShapes[0], kRingShapes[1]});
}

TEST(RingAttentionTest, EveryLevelsPartsAreAttentionToWholeSamples) {
  // Tiny problems have gradients near zero, of which bfloat16 leaves nothing.
  const std::vector<RingShape> larger(kRingShapes.begin() + 1, kRingShapes.end());
  for (int level = 0; level <= static_cast<int>(cpu::HighestLevel()); ++level) {
    const auto backend =
        CpuBackend::Make({.threads = 2, .level = static_cast<cpu::Level>(level)}).value();
    SCOPED_TRACE(cpu::Name(static_cast<cpu::Level>(level)));
    ExpectPartsAreTheWhole(*backend, DType::kFloat32, 1e-5, kRingShapes);
    ExpectPartsAreTheWhole(*backend, DType::kBFloat16, 5e-2, larger);
  }
}

}  // namespace
}  // namespace troupe::kernels
