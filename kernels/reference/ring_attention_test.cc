#include "kernels/testing/ring_attention_test.h"

#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"

namespace troupe::kernels {
namespace {

TEST(RingAttentionTest, ReferencePartsAreAttentionToWholeSamples) {
  ReferenceBackend backend;
  ExpectPartsAreTheWhole(backend, model::DType::kFloat32, 1e-6, {kRingShapes[0], kRingShapes[1]});
}

}  // namespace
}  // namespace troupe::kernels
