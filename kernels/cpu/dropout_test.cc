// The CPU's dropout, at every level, against the reference: the same draws, element by element.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing.h"

namespace troupe::kernels {
namespace {

using model::ContextRows;
using model::DType;
using model::OpKind;

TEST(CpuDropout, DropsWhatTheReferenceDropsAtEveryLevel) {
  TestRandom random;
  ReferenceBackend reference;
  for (int level = 0; level <= static_cast<int>(cpu::HighestLevel()); ++level) {
    for (const int threads : {1, 2}) {
      const auto backend =
          CpuBackend::Make({.threads = threads, .level = static_cast<cpu::Level>(level)}).value();
      for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
        for (const int64_t hidden : {1, 7, 15, 16, 33, 64, 65, 129, 256}) {
          for (const int view : {-1, 0}) {
            constexpr int64_t kTokens = 8, kSamples = 3;
            model::DropoutAttributes attributes = {.probability = 0.3,
                                                   .key = 0xFEDCBA9876543210,
                                                   .tokens = kTokens,
                                                   .held = ContextRows::Of(kTokens, 2, 1),
                                                   .own = {.first = 2}};
            const int64_t rows = kSamples * kTokens / 2 - attributes.own.first;
            const TestValue x = {compute, {rows, hidden}, random.Normals(rows * hidden)};
            // The second sample's step is an evaluation's.
            const TestValue samples = {
                DType::kInt32,
                {kSamples, 2},
                {static_cast<double>(random.Integer(1, INT32_MAX)), 0, 0, 1, 2, INT32_MAX}};
            const TestOp op = {
                OpKind::kDropout, attributes, {x, samples}, {{compute, {rows, hidden}, {}}}, false,
                view};
            const std::vector<double> actual = RunOp(*backend, op).outputs[0];
            const std::vector<double> expected = RunOp(reference, op).outputs[0];
            for (size_t i = 0; i < expected.size(); ++i) {
              ASSERT_EQ(actual[i] == 0, expected[i] == 0)
                  << cpu::Name(static_cast<cpu::Level>(level)) << " hidden " << hidden
                  << " element " << i;
            }
            EXPECT_LE(RelativeError(actual, expected),
                      compute == DType::kBFloat16 ? 0x1p-8 : 0x1p-22);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
