// Compares the arena of a program on a GPU with the size in its plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/cuda/emulated/host_collectives.h"
#include "kernels/cuda/runtime/preparation.h"
#include "kernels/testing/collective_test.h"
#include "model/program/gpu_working_memory.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using cuda::Stream;
using cuda::emulator::EmulatedDevice;
using cuda::emulator::HostCollectives;

// A matmul that never runs and requests the maximum workspace.
class HungryMatmul : public cuda::LibraryMatmul {
 public:
  int64_t workspace_bytes() const override { return model::kMatmulWorkspaceBytesMax; }
  std::string implementation() const override { return "hungry"; }
  Status Enqueue(const void*, const void*, void*, bool, void*, Stream,
                 const cuda::OperandScales&) override {
    return OkStatus();
  }
};

class HungryMatmulLibrary : public cuda::MatmulLibrary {
 public:
  explicit HungryMatmulLibrary(bool takes_float8) : takes_float8_(takes_float8) {}
  StatusOr<std::unique_ptr<cuda::LibraryMatmul>> Prepare(const MatmulShape& shape) override {
    if (!takes_float8_ && shape.float8 != Float8Scaling::kNone) return nullptr;
    return std::make_unique<HungryMatmul>();
  }

 private:
  const bool takes_float8_;
};

class HungryGradient : public cuda::LibraryAttentionGrad {
 public:
  explicit HungryGradient(int64_t bytes) : bytes_(bytes) {}
  int64_t workspace_bytes() const override { return bytes_; }
  std::string implementation() const override { return "hungry"; }
  Status Enqueue(const AttentionGradArgs&, void*, Stream) override { return OkStatus(); }

 private:
  const int64_t bytes_;
};

// Like cuDNN: supports bfloat16 only, and in a gradient handles as many heads at once as fit.
class HungryAttention : public cuda::AttentionLibrary {
 public:
  StatusOr<std::unique_ptr<cuda::LibraryAttention>> Prepare(
      const cuda::LibraryAttentionShape&) override {
    return nullptr;
  }
  StatusOr<std::unique_ptr<cuda::LibraryAttentionGrad>> PrepareGrad(
      const cuda::LibraryAttentionShape& shape) override {
    if (!shape.bfloat16) return nullptr;
    const int64_t of_head = model::AttentionGradHeadBytes({.query_heads = shape.query_heads,
                                                           .key_value_heads = shape.key_value_heads,
                                                           .head_dim = shape.head_dim,
                                                           .tokens = shape.tokens});
    return std::make_unique<HungryGradient>(
        std::min(model::kAttentionGradCallBytes + shape.samples * shape.key_value_heads * of_head,
                 model::kAttentionWorkspaceBytesMax));
  }
};

// One layer of a model in which kernel tables and alignment are small compared with working memory.
model::BuildOptions Options(const model::MeshView& mesh) {
  model::ModelConfig config = model::SmallModel("AD");
  config.hidden_size = 256;
  config.head_dim = 64;
  config.intermediate_size = 512;
  config.vocab_size = 4096;
  return model::StageOptions(config, mesh, 8, 512);
}

void ExpectArenaAsPlanned(const model::BuildOptions& options, const FindCommunicator& groups,
                          bool takes_float8 = false) {
  constexpr int64_t kTables = 1 << 20;
  const model::Program program = model::BuildProgram(options).value();
  const model::MemoryPlan plan = model::PlanMemory(program, {2}, false, 1);
  EmulatedDevice device;
  HungryMatmulLibrary matmuls(takes_float8);
  HungryAttention attention;
  std::unique_ptr<HostCollectives> group;
  if (groups) group = std::make_unique<HostCollectives>(device, *groups({}));
  cuda::Stalls stalls(device);
  TROUPE_CHECK_OK(stalls.Prepare());
  cuda::Preparation preparation(program, plan, device,
                                {.matmuls = &matmuls, .attention = &attention}, stalls,
                                [&](const model::CollectiveGroup& of) {
                                  return GroupSize(program.mesh, of) > 1 ? group.get() : nullptr;
                                });
  TROUPE_CHECK_OK(preparation.Allocate());
  const int64_t planned = ArenaLayout(plan).bytes() + model::GpuWorkingBytes(program);
  EXPECT_LE(preparation.arena_bytes(), planned + kTables);
  if (!takes_float8) {
    EXPECT_GE(preparation.arena_bytes(), planned - kTables);
  }
  EXPECT_LE(ArenaLayout(plan).bytes(), plan.total_bytes() - plan.scratch_bytes + kTables);
}

TEST(CudaArena, IsNoLargerThanThePlanStates) {
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    SCOPED_TRACE(model::Name(compute));
    model::BuildOptions options = Options({});
    options.compute_dtype = compute;
    ExpectArenaAsPlanned(options, nullptr);
  }
}

// The plan does not know whether the device supports FP8 operands.
TEST(CudaArena, HasRoomForFloat8OperandsThatAreDequantized) {
  using enum model::Float8Recipe;
  for (const model::Float8Recipe recipe : {kCurrent, kDelayed, kBlockwise}) {
    for (const bool takes_float8 : {false, true}) {
      SCOPED_TRACE(model::Name(recipe));
      model::BuildOptions options = Options({});
      options.compute_dtype = model::DType::kBFloat16;
      options.float8 = recipe;
      ExpectArenaAsPlanned(options, nullptr, takes_float8);
    }
  }
}

// Gradients sent as bfloat16, reduced whole and by blocks; heads exchanged for rows.
TEST(CudaArena, HasTheBuffersOfCollectivesThatPack) {
  const auto run = [](model::Axis axis, const std::function<void(model::BuildOptions*)>& change) {
    RunRanks(
        2, [] { return std::make_unique<EmulatedBackend>(); },
        [&](int rank, Backend&, const FindCommunicator& groups) {
          model::MeshView mesh;
          mesh.degrees[axis] = 2;
          mesh.coordinates[axis] = rank;
          model::BuildOptions options = Options(mesh);
          change(&options);
          SCOPED_TRACE(model::Name(axis));
          ExpectArenaAsPlanned(options, groups);
        });
  };
  run(model::Axis::kDataReplicate,
      [](auto* options) { options->reduce_dtype = model::DType::kBFloat16; });
  run(model::Axis::kDataShard, [](auto* options) {
    options->reduce_dtype = model::DType::kBFloat16;
    options->zero_stage = 2;
  });
  run(model::Axis::kContext, [](auto*) {});
}

}  // namespace
}  // namespace troupe::kernels
