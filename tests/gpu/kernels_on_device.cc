// troupe-kernels-test: compares every kernel and whole small programs on this machine's GPU with
// the float64 reference, on fresh random inputs. It takes GoogleTest's flags. If no GPU can be used
// it prints the reason and exits with 77, for "skipped".
//
// Each dtype is tested twice: with matmuls of cuBLASLt and attention of cuDNN, if it is installed,
// and with our own kernels alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "kernels/cuda/libraries/cublaslt_library.h"
#include "kernels/cuda/libraries/cudnn_attention.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/testing/float8_kernel_test.h"
#include "tests/gpu/device_backend.h"

namespace troupe::kernels {
namespace {

constexpr int kSkipped = 77;  // exit code that test drivers treat as "skipped"

KernelSetting Setting(model::DType compute, bool library) {
  return {std::string(model::Name(compute)) + (library ? "" : "_own_kernels"), compute, [library] {
            const cuda::CublasLtOptions untimed{.tune = false};
            return MakeDeviceBackend(library ? &untimed : nullptr);
          }};
}

INSTANTIATE_TEST_SUITE_P(Device, KernelTest,
                         testing::Values(Setting(model::DType::kFloat32, true),
                                         Setting(model::DType::kBFloat16, true),
                                         Setting(model::DType::kFloat32, false),
                                         Setting(model::DType::kBFloat16, false)),
                         NameOfSetting);

INSTANTIATE_TEST_SUITE_P(Device, Float8KernelTest,
                         testing::Values(Setting(model::DType::kBFloat16, true),
                                         Setting(model::DType::kBFloat16, false)),
                         NameOfSetting);

// Tuned algorithms compute the same matmul and are found again in the cache.
TEST(LibraryMatmuls, ThatWereChosenByTimingMatchTheReference) {
  const cuda::CublasLtOptions timed{.tune = true};
  const std::unique_ptr<Backend> backend = MakeDeviceBackend(&timed);
  ReferenceBackend reference;
  TestRandom random;
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    const int64_t rows = 256, k = 512, n = 384;
    const TestOp op{model::OpKind::kMatmulGradWeight,
                    {},
                    {{compute, {rows, n}, random.Normals(rows * n)},
                     {compute, {rows, k}, random.Normals(rows * k)}},
                    {{model::DType::kFloat32, {n, k}, {}}},
                    true};
    const double unit = compute == model::DType::kBFloat16 ? 0x1.0p-8 : 0x1.0p-23;
    const TestResult expected = RunOp(reference, op);
    for (int run = 0; run < 2; ++run) {
      EXPECT_LE(RelativeError(RunOp(*backend, op).outputs[0], expected.outputs[0]), 64 * unit)
          << model::Name(compute);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto device = troupe::kernels::cuda::CudaDevice::Make(0, {});
  if (!device.ok()) {
    fmt::print("troupe-kernels-test: skipped, no kernel was tested: {}\n",
               troupe::ToString(device.status()));
    return troupe::kernels::kSkipped;
  }
  fmt::print("troupe-kernels-test: {}, {} multiprocessors, {} bytes, {}, {}\n",
             (*device)->description(), (*device)->facts().multiprocessors,
             (*device)->facts().memory_bytes, (*device)->facts().uuid,
             troupe::kernels::cuda::CudnnInUse());
  std::fflush(stdout);
  return RUN_ALL_TESTS();
}
