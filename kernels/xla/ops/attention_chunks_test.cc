#include "kernels/xla/ops/attention_chunks.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "kernels/testing/kernel_test.h"
#include "kernels/testing/ring_attention_test.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

// Eight chunks of 128 queries and more are a loop.
TEST_P(KernelTest, AttentionOfManyChunksMatches) {
  for (const bool by_documents : {false, true}) {
    constexpr int64_t kSamples = 2, kTokens = 1024, kRows = kSamples * kTokens, kQ = 2, kD = 4;
    model::AttentionAttributes attributes{kQ, 1, kD, kTokens, {}};
    std::vector<TestValue> inputs = {Compute({kRows, (kQ + 2) * kD})};
    std::vector<TestValue> documents;
    if (by_documents) {
      attributes.mask.kind = model::Mask::Kind::kDocument;
      documents = {{DType::kInt32, {kRows}, random_.Documents(kSamples, kTokens)}};
    }
    const auto with_documents = [&](std::vector<TestValue> values) {
      values.insert(values.end(), documents.begin(), documents.end());
      return values;
    };
    const TestOp forward{OpKind::kAttention,
                         attributes,
                         with_documents(inputs),
                         {Empty(compute(), {kRows, kQ * kD}), Empty(DType::kFloat32, {kRows, kQ})}};
    ExpectEqual(forward, 16);
    const TestResult result = RunOp(*backend_, forward);
    ExpectEqual({OpKind::kAttentionGrad,
                 attributes,
                 with_documents({Compute({kRows, kQ * kD}),
                                 inputs[0],
                                 {compute(), {kRows, kQ * kD}, result.outputs[0]},
                                 {DType::kFloat32, {kRows, kQ}, result.outputs[1]}}),
                 {Empty(compute(), {kRows, (kQ + 2) * kD})}},
                32);
  }
}

// Each rank has eight chunks, of which some see no key of a part.
TEST_P(KernelTest, PartsOfARingOfManyChunksAreAttentionToWholeSamples) {
  ExpectPartsAreTheWhole(*backend_, compute(), compute() == DType::kFloat32 ? 1e-5 : 5e-2,
                         {{1, 2048, 2, 1, 4, 2}});
}

}  // namespace

namespace xla {
namespace {

// The text of attention with one sample of `tokens` and of its gradient.
std::string AttentionText(int64_t tokens) {
  Function text;
  AttentionOperands of;
  of.attributes = {4, 2, 8, tokens, {}};
  of.query_rows = of.key_rows = model::ContextRows::Of(tokens, 1, 0);
  of.q = text.Argument(Element::kF32, {1, tokens, 2, 2, 8});
  of.k = text.Argument(Element::kF32, {1, tokens, 2, 8});
  of.v = text.Argument(Element::kF32, {1, tokens, 2, 8});
  const AttentionResult forward = AttentionForward(text, of, std::nullopt);
  const AttentionGradient gradient = AttentionBackward(text, of, of.q, forward.output, forward.lse);
  return text.Module({forward.output, gradient.q, gradient.k, gradient.v}, {-1, -1, -1, -1});
}

int CountOf(std::string_view text, std::string_view word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// A compiler that holds the scores of all chunks at once needs tokens² numbers for each head.
TEST(AttentionChunks, AreComputedOneAfterTheOther) {
  const std::string text = AttentionText(512);
  EXPECT_EQ(CountOf(text, "stablehlo.optimization_barrier"), 3 + 3);  // 4 chunks
  EXPECT_EQ(CountOf(text, "stablehlo.while"), 0);
}

TEST(AttentionChunks, HaveOneBodyInALongProgram) {
  const std::string text = AttentionText(1024);
  EXPECT_EQ(CountOf(text, "stablehlo.while"), 2 + 2);  // over chunks, and over the keys of each
  EXPECT_EQ(CountOf(text, "stablehlo.dot_general"), 2 + 5);
  for (const int64_t tokens : {2048, 8192}) {
    EXPECT_EQ(CountOf(AttentionText(tokens), "stablehlo.dot_general"), 2 + 5) << tokens;
  }
}

}  // namespace
}  // namespace xla
}  // namespace troupe::kernels
