// troupe-kernels-test: every kernel and whole small programs on this machine's GPU, beside the float64 reference, on fresh
// random inputs; flags are GoogleTest's. Where no GPU can be used it says why and ends with 77: nothing was tested.
//
// Each dtype twice: with products of cuBLASLt and attention of cuDNN, where it is there, and with our own kernels alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/file_system.h"
#include "kernels/cuda/cublaslt_library.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/device_attention.h"
#include "kernels/float8_kernel_test.h"

namespace troupe::kernels {
namespace {

constexpr int kSkipped = 77;  // what test drivers take for "skipped"

struct OnDevice {
  PosixFileSystem files;
  std::unique_ptr<cuda::CudaDevice> device;
  std::unique_ptr<cuda::CublasLtLibrary> products;  // null: our own kernels make them, here and below
  std::unique_ptr<cuda::DeviceAttention> attention;
};

std::unique_ptr<OnDevice> Open(const cuda::CublasLtOptions* products) {
  auto opened = std::make_unique<OnDevice>();
  auto device = cuda::CudaDevice::Make(0, {});
  TROUPE_CHECK_OK(device.status());
  opened->device = std::move(*device);
  if (products != nullptr) {
    auto library = cuda::CublasLtLibrary::Make(*opened->device, opened->files, *products);
    TROUPE_CHECK_OK(library.status());
    opened->products = std::move(*library);
    opened->attention = cuda::DeviceAttention::Make(*opened->device, opened->files, {.tune = products->tune});
  }
  return opened;
}

// With the device that it is over.
class OwningBackend : public CudaBackend {
 public:
  explicit OwningBackend(std::unique_ptr<OnDevice> on)
      : CudaBackend(*on->device, {.products = on->products.get(), .attention = on->attention.get()}, nullptr), on_(std::move(on)) {}

 private:
  std::unique_ptr<OnDevice> on_;
};

KernelSetting Setting(model::DType compute, bool library) {
  return {std::string(model::Name(compute)) + (library ? "" : "_own_kernels"), compute, [library] {
            const cuda::CublasLtOptions untimed{.tune = false};
            return std::make_unique<OwningBackend>(Open(library ? &untimed : nullptr));
          }};
}

INSTANTIATE_TEST_SUITE_P(Device, KernelTest,
                         testing::Values(Setting(model::DType::kFloat32, true), Setting(model::DType::kBFloat16, true),
                                         Setting(model::DType::kFloat32, false),
                                         Setting(model::DType::kBFloat16, false)),
                         NameOfSetting);

INSTANTIATE_TEST_SUITE_P(Device, Float8KernelTest,
                         testing::Values(Setting(model::DType::kBFloat16, true), Setting(model::DType::kBFloat16, false)),
                         NameOfSetting);

// Timed choices give the product too, and are found again.
TEST(LibraryProducts, ThatWereChosenByTimingMatchTheReference) {
  const cuda::CublasLtOptions timed{.tune = true};
  OwningBackend backend(Open(&timed));
  ReferenceBackend reference;
  TestRandom random;
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    const int64_t rows = 256, k = 512, n = 384;
    const TestOp op{model::OpKind::kMatmulGradWeight,
                    {},
                    {{compute, {rows, n}, random.Normals(rows * n)}, {compute, {rows, k}, random.Normals(rows * k)}},
                    {{model::DType::kFloat32, {n, k}, {}}},
                    true};
    const double unit = compute == model::DType::kBFloat16 ? 0x1.0p-8 : 0x1.0p-23;
    const TestResult expected = RunOp(reference, op);
    for (int run = 0; run < 2; ++run) {
      EXPECT_LE(RelativeError(RunOp(backend, op).outputs[0], expected.outputs[0]), 64 * unit) << model::Name(compute);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto device = troupe::kernels::cuda::CudaDevice::Make(0, {});
  if (!device.ok()) {
    fmt::print("troupe-kernels-test: skipped, no kernel was tested: {}\n", troupe::ToString(device.status()));
    return troupe::kernels::kSkipped;
  }
  fmt::print("troupe-kernels-test: {}, {} multiprocessors, {} bytes, {}, {}\n", (*device)->description(),
             (*device)->facts().multiprocessors, (*device)->facts().memory_bytes, (*device)->facts().uuid,
             troupe::kernels::cuda::CudnnInUse());
  std::fflush(stdout);
  return RUN_ALL_TESTS();
}
