// Tests of attention and its gradient, also with documents and in parts.
#include "kernels/testing/kernel_test.h"
#include "kernels/testing/ring_attention_test.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

struct AttentionShape {
  int64_t samples, tokens, q, g, d;
};

const std::vector<AttentionShape> kAttention = {
    {1, 1, 1, 1, 1},    {2, 3, 2, 1, 5},   {1, 65, 4, 2, 16},  {2, 63, 3, 3, 33},
    {1, 200, 2, 1, 64}, {3, 129, 6, 2, 8}, {2, 130, 2, 1, 40}, {1, 140, 2, 1, 128},
    {1, 70, 1, 1, 250}, {2, 9, 2, 1, 300}};

TEST_P(KernelTest, AttentionMatches) {
  for (const auto& [samples, tokens, q, g, d] : kAttention) {
    const int64_t rows = samples * tokens;
    ExpectEqual({OpKind::kAttention,
                 model::AttentionAttributes{q, g, d, tokens, {}},
                 {Compute({rows, (q + 2 * g) * d})},
                 {Empty(compute(), {rows, q * d}), Empty(DType::kFloat32, {rows, q})}},
                16);
  }
}

TEST_P(KernelTest, AttentionGradMatches) {
  for (const auto& [samples, tokens, q, g, d] : kAttention) {
    const int64_t rows = samples * tokens;
    const model::AttentionAttributes attributes{q, g, d, tokens, {}};
    const TestValue qkv = Compute({rows, (q + 2 * g) * d});
    // o and lse must match qkv, so the kernel itself computes them.
    const TestResult forward =
        RunOp(*backend_, {OpKind::kAttention,
                          attributes,
                          {qkv},
                          {Empty(compute(), {rows, q * d}), Empty(DType::kFloat32, {rows, q})}});
    ExpectEqual({OpKind::kAttentionGrad,
                 attributes,
                 {Compute({rows, q * d}),
                  qkv,
                  {compute(), {rows, q * d}, forward.outputs[0]},
                  {DType::kFloat32, {rows, q}, forward.outputs[1]}},
                 {Empty(compute(), {rows, (q + 2 * g) * d})}},
                32);
  }
}

TEST_P(KernelTest, AttentionWithinDocumentsMatches) {
  for (const auto& [samples, tokens, q, g, d] : kAttention) {
    const int64_t rows = samples * tokens;
    model::AttentionAttributes attributes{q, g, d, tokens, {}};
    attributes.mask.kind = model::Mask::Kind::kDocument;
    const TestValue qkv = Compute({rows, (q + 2 * g) * d});
    const TestValue documents{DType::kInt32, {rows}, random_.Documents(samples, tokens)};
    const TestOp op{OpKind::kAttention,
                    attributes,
                    {qkv, documents},
                    {Empty(compute(), {rows, q * d}), Empty(DType::kFloat32, {rows, q})}};
    ExpectEqual(op, 16);
    const TestResult forward = RunOp(*backend_, op);
    ExpectEqual({OpKind::kAttentionGrad,
                 attributes,
                 {Compute({rows, q * d}),
                  qkv,
                  {compute(), {rows, q * d}, forward.outputs[0]},
                  {DType::kFloat32, {rows, q}, forward.outputs[1]},
                  documents},
                 {Empty(compute(), {rows, (q + 2 * g) * d})}},
                32);
  }
}

TEST_P(KernelTest, PartsOfARingAreAttentionToWholeSamples) {
  if (compute() == DType::kFloat32) {
    ExpectPartsAreTheWhole(*backend_, compute(), 1e-5, ShareOf(kRingShapes, 2));
  } else {
    // The gradients of tiny problems are near zero and vanish in bfloat16.
    const std::vector<RingShape> larger(kRingShapes.begin() + 1, kRingShapes.end());
    ExpectPartsAreTheWhole(*backend_, compute(), 5e-2, ShareOf(larger, 3));
  }
}

}  // namespace
}  // namespace troupe::kernels
