#include "kernels/xla/runtime/xla_backend.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "kernels/testing/kernel_test.h"
#include "kernels/xla/pjrt/plugin_path.h"

namespace troupe::kernels {
namespace {

// A process has one client of a plugin.
xla::ProgramCache& Programs() {
  static const std::unique_ptr<xla::Client> client = [] {
    const auto path = xla::FindPlugin("");
    TROUPE_CHECK_OK(path.status());
    auto made = xla::Client::Make(*path, 1);
    TROUPE_CHECK_OK(made.status());
    return *std::move(made);
  }();
  // Fast compilation: most of the time of these tests is the compiler's.
  static xla::ProgramCache programs(*client, {{"xla_backend_optimization_level", int64_t{0}},
                                              {"xla_cpu_use_fusion_emitters", false}});
  return programs;
}

KernelSetting Setting(model::DType compute) {
  return {model::Name(compute), compute, [] {
            auto backend = xla::XlaBackend::Make(Programs(), {});
            TROUPE_CHECK_OK(backend.status());
            return *std::move(backend);
          }};
}

INSTANTIATE_TEST_SUITE_P(Xla, KernelTest,
                         testing::Values(Setting(model::DType::kFloat32),
                                         Setting(model::DType::kBFloat16)),
                         NameOfSetting);

}  // namespace
}  // namespace troupe::kernels
