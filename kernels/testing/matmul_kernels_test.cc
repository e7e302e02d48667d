// Tests of matmuls.
#include "kernels/testing/kernel_test.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

TEST_P(KernelTest, MatmulsMatch) {
  struct Shape {
    int64_t rows, k, n;
  };
  for (const auto& [rows, k, n] :
       std::vector<Shape>{{1, 1, 1}, {3, 5, 7}, {33, 17, 65}, {64, 96, 1100}, {130, 64, 48}}) {
    ExpectSums({OpKind::kMatmul,
                {},
                {Compute({rows, k}), Compute({n, k})},
                {Empty(compute(), {rows, n})}});
    ExpectSums({OpKind::kMatmulGradInput,
                {},
                {Compute({rows, n}), Compute({n, k})},
                {Empty(compute(), {rows, k})}});
    const TestOp gradient{OpKind::kMatmulGradWeight,
                          {},
                          {Compute({rows, n}), Compute({rows, k})},
                          {Floats({n, k})},
                          true};
    ExpectSums(gradient);
    ExpectSums(gradient, {.first_microbatch = true});
  }
}

TEST_P(KernelTest, RouterMatmulsMatch) {
  auto shapes = kShapes;
  shapes.emplace_back(600, 40);
  for (const int64_t experts : {1, 4, 9, 70}) {
    for (const auto& [rows, hidden] : shapes) {
      model::RouterAttributes router;
      router.compute = compute();
      ExpectSums({OpKind::kRouterLogits,
                  router,
                  {Compute({rows, hidden}), Floats({experts, hidden})},
                  {Empty(DType::kFloat32, {rows, experts})}});
      ExpectSums({OpKind::kRouterLogitsGradInput,
                  router,
                  {Floats({rows, experts}), Floats({experts, hidden})},
                  {Empty(compute(), {rows, hidden})}});
      for (const bool first : {false, true}) {
        ExpectSums({OpKind::kRouterLogitsGradWeight,
                    router,
                    {Floats({rows, experts}), Compute({rows, hidden})},
                    {Floats({experts, hidden})},
                    first},
                   {.first_microbatch = true});
      }
    }
  }
}

TEST_P(KernelTest, GroupedMatmulsMatchAlsoOfExpertsWithoutRows) {
  constexpr int64_t kExperts = 3;
  for (const std::vector<double>& counts :
       {std::vector<double>{0, 1, 0}, {5, 0, 17, 0, 0, 83}, {0, 0, 0}, {300, 0, 3}}) {
    int64_t rows = 2;  // plus some unused rows
    for (const double count : counts) rows += static_cast<int64_t>(count);
    const int64_t k = 33, n = 18;
    const model::GroupedAttributes grouped{2 * kExperts, kExperts, rows, true};
    const TestValue count_value{DType::kInt32, {static_cast<int64_t>(counts.size())}, counts};
    ExpectSums({OpKind::kGroupedMatmul,
                grouped,
                {Compute({rows, k}), Compute({kExperts * n, k}), count_value},
                {Empty(compute(), {rows, n})}});
    ExpectSums({OpKind::kGroupedMatmulGradInput,
                grouped,
                {Compute({rows, n}), Compute({kExperts * n, k}), count_value},
                {Empty(compute(), {rows, k})}});
    for (const bool first : {false, true}) {
      ExpectSums({OpKind::kGroupedMatmulGradWeight,
                  grouped,
                  {Compute({rows, n}), Compute({rows, k}), count_value},
                  {Floats({kExperts * n, k})},
                  first},
                 {.first_microbatch = true});
    }
    ExpectEqual(
        {OpKind::kSwiGlu, {}, {Compute({rows, n}), count_value}, {Empty(compute(), {rows, n / 2})}},
        16);
    ExpectEqual({OpKind::kSwiGluGrad,
                 {},
                 {Compute({rows, n / 2}), Compute({rows, n}), count_value},
                 {Empty(compute(), {rows, n})}},
                32);
  }
}

}  // namespace
}  // namespace troupe::kernels
