// The dtypes in which parameters are gathered, used by matmuls and reduced are independent of each
// other.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "model/build.h"
#include "model/cost.h"
#include "model/program/builder.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

using Dtypes = std::tuple<DType, std::optional<DType>, DType>;  // compute, param, reduce

BuildOptions PrecisionOptions(const Dtypes& dtypes, int zero_stage, int shard_run = 0) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = 4;
  mesh.coordinates[Axis::kDataShard] = 1;
  BuildOptions options = StageOptions(SmallMixture("AE"), mesh, 2, 8);
  std::tie(options.compute_dtype, options.param_dtype, options.reduce_dtype) = dtypes;
  options.zero_stage = zero_stage;
  options.shard_run = shard_run;
  return options;
}

// Norms and routers are read in their stored dtype.
bool IsMatrix(const Program& program, const ParameterEntry& entry) {
  const Value& value = program.value(entry.value);
  return value.dims.size() >= 2 && value.name.find("router") == std::string::npos;
}

class Precision : public testing::TestWithParam<Dtypes> {};

TEST_P(Precision, EachCollectiveHasTheDtypeThatIsStatedForIt) {
  const auto [compute, stated, reduce] = GetParam();
  for (const auto& [zero_stage, run] : {std::pair(0, 0), {1, 0}, {2, 0}, {3, 0}, {3, 2}}) {
    const auto built = BuildProgram(PrecisionOptions(GetParam(), zero_stage, run));
    ASSERT_TRUE(built.ok()) << built.status();
    const Program& program = *built;
    const DType param = stated.value_or(compute);
    std::map<std::string, bool> is_matrix;
    for (const ParameterEntry& entry : program.parameters) {
      const bool matrix = IsMatrix(program, entry);
      is_matrix[program.value(entry.value).name] = matrix;
      for (const ValueId id :
           {entry.value, entry.gradient, entry.optimizer_states[0], entry.optimizer_states[1]}) {
        EXPECT_EQ(program.value(id).dtype, DType::kFloat32) << program.value(id).name;
      }
      EXPECT_EQ(program.value(entry.unsharded).dtype, matrix ? compute : DType::kFloat32);
    }
    int gathers = 0, sums = 0;
    for (const Piece piece : {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce}) {
      for (const Op& op : program.Ops(0, piece)) {
        const auto* collective = FindCollective(op.attributes);
        if (collective == nullptr) continue;
        const Value& input = program.value(op.inputs[0]);
        if (op.kind == OpKind::kAllGather && collective->purpose == CollectivePurpose::kUnshard) {
          const std::string& name = program.value(op.outputs[0]).name;
          const bool matrix = is_matrix.at(
              name.substr(0, name.rfind(name.ends_with(".again") ? ".gathered" : ".")));
          EXPECT_EQ(input.dtype, matrix ? param : DType::kFloat32) << ToText(op, program);
          ++gathers;
        } else if (collective->purpose == CollectivePurpose::kGradient) {
          EXPECT_EQ(input.dtype, DType::kFloat32) << ToText(op, program);
          EXPECT_EQ(WireOf(op), reduce) << ToText(op, program);
          ++sums;
        }
      }
    }
    EXPECT_EQ(gathers > 0, zero_stage > 0);
    EXPECT_GT(sums, 0);
  }
}

std::string NameOf(const Dtypes& dtypes) {
  const auto& [compute, param, reduce] = dtypes;
  return fmt::format("Compute_{}_param_{}_reduce_{}", Name(compute),
                     param ? Name(*param) : "default", Name(reduce));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Precision,
                         testing::Combine(testing::Values(DType::kFloat32, DType::kBFloat16),
                                          testing::Values(std::nullopt, DType::kFloat32,
                                                          DType::kBFloat16),
                                          testing::Values(DType::kFloat32, DType::kBFloat16)),
                         [](const auto& info) { return NameOf(info.param); });

// Bytes sent per step by the collectives of Unshard.
double GatheredBytes(const Program& program) {
  double bytes = 0;
  for (const auto& cost : Collectives(program, program.Ops(0, Piece::kUnshard)))
    bytes += cost.sent_bytes;
  return bytes;
}

TEST(PrecisionCost, GatheringInFloat32SendsTwiceTheBytesOfBfloat16) {
  const auto bytes = [](DType compute, DType param) {
    MeshView mesh;
    mesh.degrees[Axis::kDataShard] = 4;
    BuildOptions options = StageOptions(SmallModel("AD"), mesh, 2, 8);
    options.compute_dtype = compute;
    options.param_dtype = param;
    options.zero_stage = 1;
    return GatheredBytes(BuildProgram(options).value());
  };
  const double half = bytes(DType::kBFloat16, DType::kBFloat16);
  EXPECT_EQ(bytes(DType::kFloat32, DType::kBFloat16), half);
  EXPECT_EQ(bytes(DType::kBFloat16, DType::kFloat32), bytes(DType::kFloat32, DType::kFloat32));
  // Norms are float32 in both cases.
  EXPECT_GT(bytes(DType::kFloat32, DType::kFloat32), 1.9 * half);
  EXPECT_LT(bytes(DType::kFloat32, DType::kFloat32), 2 * half);
}

TEST(PrecisionBuffer, IsThatOfEveryRotation) {
  BuildOptions options = PrecisionOptions({DType::kFloat32, std::nullopt, DType::kFloat32}, 0);
  options.buffer_dtype = DType::kBFloat16;
  const Program program = BuildProgram(options).value();
  int rotations = 0;
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const Op& op : program.Ops(0, piece)) {
      if (op.kind != OpKind::kRope) continue;
      EXPECT_EQ(std::get<RopeAttributes>(op.attributes).buffer, DType::kBFloat16);
      ++rotations;
    }
  }
  EXPECT_EQ(rotations, 2);
}

}  // namespace
}  // namespace troupe::model
