// Compiles for TPUs with libtpu (TROUPE_LIBTPU). Without it the tests are skipped with the reason.
#include "kernels/xla/pjrt/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernels/xla/pjrt/plugin_path.h"

namespace troupe::kernels::xla {
namespace {

using testing::HasSubstr;

// c = a·b + a, in the memory of `a`.
constexpr std::string_view kProgram = R"(module {
  func.func @main(%a: tensor<512x512xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<512x512xf32>)
      -> tensor<512x512xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %1 = stablehlo.add %0, %a : tensor<512x512xf32>
    return %1 : tensor<512x512xf32>
  }
})";

class TopologyTest : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<std::string> path = FindLibtpu();
    if (!path.ok()) GTEST_SKIP() << path.status();
    path_ = *path;
  }

  std::unique_ptr<Topology> Make(const std::string& name) {
    auto made = Topology::Make(path_, name);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }

  std::string path_;
};

TEST_F(TopologyTest, HasTheDevicesOfItsName) {
  for (const auto& [name, kind, devices, memory] :
       {std::tuple{"v4:2x2x1", "TPU v4", 4, 33'014'413'312},
        {"v5e:2x4", "TPU v5 lite", 8, 16'909'334'528},
        {"v5p:2x2x1", "TPU v5", 4, 102'786'660'352},
        {"v6e:4x4", "TPU v6 lite", 16, 33'546'041'344},
        {"tpu7x:2x2x1", "TPU7x", 8, 101'724'450'816}}) {
    const auto topology = Make(name);
    ASSERT_NE(topology, nullptr);
    EXPECT_EQ(topology->plugin().platform, "tpu");
    EXPECT_EQ(topology->devices().size(), static_cast<size_t>(devices)) << name;
    EXPECT_EQ(topology->devices().front().kind, kind);
    // libtpu keeps a few more bytes on larger slices.
    EXPECT_NEAR(topology->devices().front().memory_bytes, memory, 1 << 20);
  }
}

TEST_F(TopologyTest, OfAnUnknownNameIsRefused) {
  const Status status = Topology::Make(path_, "v6e:3x5").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr(path_ + " describes no devices \"v6e:3x5\": "));
}

TEST_F(TopologyTest, StatesTheMemoryOfACompiledProgram) {
  const auto topology = Make("v6e:2x2");
  ASSERT_NE(topology, nullptr);
  const auto compiled = topology->Compile(kProgram, {}, 0);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->memory.arguments, 2 << 20);
  EXPECT_EQ(compiled->memory.results, 1 << 20);
  EXPECT_EQ(compiled->memory.aliased, 1 << 20);
  EXPECT_GT(compiled->memory.code, 0);
  EXPECT_TRUE(compiled->collectives.empty());
}

TEST_F(TopologyTest, RefusesAWrongProgramAndAnUnknownOption) {
  const auto topology = Make("v6e:2x2");
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(topology->Compile("module {", {}, 0).status().code(), StatusCode::kInvalidArgument);
  const Status status = topology->Compile(kProgram, {{"xla_no_option", true}}, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("xla_no_option"));
}

TEST_F(TopologyTest, RefusesAProgramThatExceedsTheMemoryOfADevice) {
  const auto topology = Make("v5e:2x2");
  ASSERT_NE(topology, nullptr);
  // 32 GiB of arguments, on a device with 15.75.
  const Status status = topology
                            ->Compile(R"(module {
  func.func @main(%a: tensor<65536x65536xf32>, %b: tensor<65536x65536xf32>)
      -> tensor<65536x65536xf32> {
    %0 = stablehlo.add %a, %b : tensor<65536x65536xf32>
    return %0 : tensor<65536x65536xf32>
  }
})",
                                      {}, 0)
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace troupe::kernels::xla
