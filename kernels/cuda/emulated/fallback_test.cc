// What the CUDA backend says of products that a library does not make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/cuda/kernels.h"
#include "kernels/program_run.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using cuda::LibraryProduct;
using cuda::Stream;
using cuda::emulator::EmulatedDevice;

// Makes products by our own kernel, and counts them.
class CountedProduct : public LibraryProduct {
 public:
  CountedProduct(EmulatedDevice& device, const ProductShape& shape, int* runs)
      : device_(device), shape_(shape), runs_(*runs) {}
  int64_t workspace_bytes() const override { return 1000; }
  std::string implementation() const override { return "counted"; }
  Status Enqueue(const void* a, const void* b, void* c, bool accumulate, void* workspace,
                 Stream stream) override {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace) % 256, 0u);
    ++runs_;
    return device_.Launch(cuda::Matmul({shape_.kind, a, b, c, shape_.rows, shape_.k, shape_.n, nullptr, 1,
                                        1, accumulate},
                                       shape_.bfloat16),
                          stream);
  }

 private:
  EmulatedDevice& device_;
  const ProductShape shape_;
  int& runs_;
};

class OneKindLibrary : public cuda::ProductLibrary {
 public:
  OneKindLibrary(EmulatedDevice& device, ProductKind missing) : device_(device), missing_(missing) {}
  StatusOr<std::unique_ptr<LibraryProduct>> Prepare(const ProductShape& shape) override {
    if (shape.kind == missing_) return nullptr;
    return std::make_unique<CountedProduct>(device_, shape, &runs);
  }

  int runs = 0;

 private:
  EmulatedDevice& device_;
  const ProductKind missing_;
};

TEST(Fallbacks, AreTheProductsThatTheLibraryDoesNotMakeOnceEach) {
  EmulatedDevice device;
  OneKindLibrary library(device, ProductKind::kInputGradient);
  CudaBackend backend(device, {.products = &library}, nullptr);
  ProgramRun run(backend, model::StageOptions(model::SmallModel("AD"), {}, 2, 8), 3);
  const Microbatch microbatch = run.MakeMicrobatch(1);
  run.Train(microbatch, true);
  EXPECT_GT(library.runs, 0);
  int missing = 0;
  for (const model::Op& op : run.program().Ops(0, model::Piece::kBackward)) {
    if (op.kind == model::OpKind::kMatmulGradInput) ++missing;
  }
  ASSERT_GT(missing, 1);
  EXPECT_EQ(backend.fallbacks().size(), static_cast<size_t>(missing));
  EXPECT_THAT(backend.fallbacks(),
              testing::Each(testing::AllOf(testing::StartsWith("matmul_grad_input "),
                                           testing::EndsWith(": own kernel"))));
}

}  // namespace
}  // namespace troupe::kernels
