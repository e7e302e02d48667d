#include "model/initialize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "model/testing.h"

namespace troupe::model {
namespace {

TEST(FillNormalTest, IsAPureFunctionOfTheIndex) {
  std::vector<float> whole(5000);
  FillNormal(7, "x", 0, 1.0, whole);
  for (const auto& [begin, count] :
       {std::pair(0, 1), std::pair(1, 300), std::pair(127, 2), std::pair(4000, 1000)}) {
    std::vector<float> part(static_cast<size_t>(count));
    FillNormal(7, "x", begin, 1.0, part);
    for (int i = 0; i < count; ++i) EXPECT_EQ(part[i], whole[begin + i]) << begin + i;
  }
  std::vector<float> other(5000);
  FillNormal(8, "x", 0, 1.0, other);
  EXPECT_NE(other, whole);
  FillNormal(7, "y", 0, 1.0, other);
  EXPECT_NE(other, whole);
}

TEST(FillNormalTest, HasTheMomentsAndTailsOfANormal) {
  constexpr int kCount = 1 << 20;
  std::vector<float> z(kCount);
  FillNormal(3, "moments", 0, 1.0, z);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, neighbours = 0;
  int beyond_two = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = z[i];
    ASSERT_TRUE(std::isfinite(x));
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    if (i > 0) neighbours += x * z[i - 1];
    beyond_two += std::fabs(x) > 2;
  }
  // The tolerance is five standard errors.
  const double root = std::sqrt(kCount);
  EXPECT_NEAR(m1 / kCount, 0, 5 / root);
  EXPECT_NEAR(m2 / kCount, 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(m3 / kCount, 0, 5 * std::sqrt(15.0) / root);
  EXPECT_NEAR(m4 / kCount, 3, 5 * std::sqrt(96.0) / root);
  EXPECT_NEAR(neighbours / kCount, 0, 5 / root);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kCount, 0.0455003,
              5 * std::sqrt(0.0455 * 0.9545) / root);
}

TEST(FillNormalTest, KeepsItsBits) {
  std::vector<float> z(4);
  FillNormal(1234, "model.norm.weight", 1000, 1.0, z);
  const float kGolden[4] = {0x1.0545fp-1f, 0x1.4b2f04p-5f, -0x1.8a481p-2f, -0x1.449c3p+0f};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(z[i], kGolden[i]) << fmt::format("{:a}", z[i]);
}

TEST(InitialValues, FollowFromTheRangeOfTheModel) {
  ModelConfig model = SmallModel("ADAD");
  model.initializer_range = 0.5;
  const Program program = BuildProgram(StageOptions(model, {}, 1, 8)).value();
  int residual = 0, others = 0, norms = 0;
  for (const State& state : program.states) {
    if (state.kind != StateKind::kWeight) {
      EXPECT_EQ(state.initial.kind, InitialValue::Kind::kZeros) << state.name;
    } else if (state.initial.kind == InitialValue::Kind::kOnes) {
      ++norms;
    } else if (state.initial.std == 0.5) {
      ++others;
    } else {
      EXPECT_DOUBLE_EQ(state.initial.std, 0.5 / std::sqrt(2.0 * 2));  // two layers
      ++residual;
    }
  }
  EXPECT_EQ(residual, 4);  // o_proj and down_proj of each layer
  EXPECT_EQ(others, 6);    // qkv_proj and gate_up_proj of each, both tables
  EXPECT_EQ(norms, 5);
}

TEST(InitialValues, OfExpertsFollowFromTheRangeToo) {
  ModelConfig model = SmallMixture("AE");
  model.initializer_range = 0.5;
  const Program program = BuildProgram(StageOptions(model, {}, 1, 8)).value();
  std::map<std::string, double> std_of;
  for (const State& state : program.states) {
    if (state.kind == StateKind::kWeight)
      std_of[program.value(state.value).name] = state.initial.std;
  }
  EXPECT_EQ(std_of.at("block1.experts.router"), 0.5);
  EXPECT_EQ(std_of.at("block1.experts.gate_up_proj"), 0.5);
  EXPECT_DOUBLE_EQ(std_of.at("block1.experts.down_proj"), 0.5 / std::sqrt(2.0));
}

// The slices of a parameter on every rank agree with the whole tensor.
TEST(FillInitialTest, IsTheSameUnderEveryLayout) {
  for (const int tensor : {1, 2}) {
    for (int coordinate = 0; coordinate < tensor; ++coordinate) {
      MeshView mesh;
      mesh.degrees[Axis::kTensor] = tensor;
      mesh.coordinates[Axis::kTensor] = coordinate;
      const Program program = BuildProgram(StageOptions(SmallModel("AD"), mesh, 1, 8)).value();
      for (const State& state : program.states) {
        if (state.kind != StateKind::kWeight) continue;
        for (const ParameterPart& part : PartsOf(program, state)) {
          int64_t count = 1, global_count = 1;
          for (const int64_t extent : part.local_shape) count *= extent;
          for (const int64_t extent : part.global_shape) global_count *= extent;
          std::vector<float> whole(static_cast<size_t>(global_count)),
              local(static_cast<size_t>(count));
          if (state.initial.kind == InitialValue::Kind::kOnes) {
            std::fill(whole.begin(), whole.end(), 1.0f);
          } else {
            FillNormal(5, part.name, 0, state.initial.std, whole);
          }
          const size_t half = local.size() / 2;
          FillInitial(5, state.initial, part, 0, std::span(local).first(half));
          FillInitial(5, state.initial, part, static_cast<int64_t>(half),
                      std::span(local).subspan(half));
          const int64_t columns = part.local_shape.back(),
                        global_columns = part.global_shape.back();
          for (int64_t i = 0; i < count; ++i) {
            const int64_t row =
                i / columns + (part.global_shape.size() == 2 ? part.global_offset[0] : 0);
            const int64_t column = i % columns + part.global_offset.back();
            ASSERT_EQ(local[i], whole[row * global_columns + column]) << part.name << " " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::model
