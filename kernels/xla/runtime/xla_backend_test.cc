#include "kernels/xla/runtime/xla_backend.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "kernels/testing/kernel_test.h"
#include "kernels/xla/pjrt/plugin_path.h"

namespace troupe::kernels {
namespace {

// A process has one client of a plugin.
xla::Client& TheClient() {
  static const std::unique_ptr<xla::Client> client = [] {
    const auto path = xla::FindPlugin("");
    TROUPE_CHECK_OK(path.status());
    auto made = xla::Client::Make(*path, 1);
    TROUPE_CHECK_OK(made.status());
    return *std::move(made);
  }();
  return *client;
}

KernelSetting Setting(model::DType compute) {
  return {model::Name(compute), compute, [] {
            auto backend = xla::XlaBackend::Make(TheClient(), {});
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
