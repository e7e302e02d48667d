#include "kernels/xla/runtime/xla_backend.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/instrumented.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/kernel_test.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/testing/recording_client.h"

namespace troupe::kernels {
namespace {

using Made = StatusOr<std::unique_ptr<xla::Client>>;

// A process has one client of a plugin; an error where there is none. It is never destroyed: the
// plugin's own statics end before those of this program.
const Made& TheClient() {
  static const Made& client = *new Made([]() -> Made {
    TROUPE_ASSIGN_OR_RETURN(const std::string path, xla::FindPlugin(""));
    return xla::Client::Make(path, 1);
  }());
  return client;
}

xla::ProgramCache& Programs() {
  // Fast compilation: most of the time of these tests is the compiler's.
  static xla::RecordingClient& client =
      *new xla::RecordingClient(**TheClient(), xla::RecordInFolder);
  static xla::ProgramCache& programs = *new xla::ProgramCache(
      client,
      {{"xla_backend_optimization_level", int64_t{0}}, {"xla_cpu_use_fusion_emitters", false}});
  return programs;
}

KernelSetting Setting(model::DType compute) {
  return {.name = model::Name(compute),
          .compute = compute,
          .make =
              [] {
                auto backend = xla::XlaBackend::Make(Programs(), {});
                TROUPE_CHECK_OK(backend.status());
                return *std::move(backend);
              },
          .keeps_bits_in_company = false};
}

// None without a plugin. A sanitizer makes compilation several times slower: there, one dtype is
// tested.
std::vector<KernelSetting> Settings() {
  if (!TheClient().ok()) return {};
  if (kInstrumented) return {Setting(model::DType::kFloat32)};
  return {Setting(model::DType::kFloat32), Setting(model::DType::kBFloat16)};
}

INSTANTIATE_TEST_SUITE_P(Xla, KernelTest, testing::ValuesIn(Settings()), NameOfSetting);
INSTANTIATE_TEST_SUITE_P(Xla, CollectiveTest, testing::ValuesIn(Settings()), NameOfSetting);

TEST(XlaBackend, KernelsAreTestedWithAPlugin) {
  if (!TheClient().ok()) GTEST_SKIP() << "no kernel was tested: " << TheClient().status();
  EXPECT_FALSE(Settings().empty());
}

TEST(XlaBackend, ADeviceThatThePluginLacksIsRefused) {
  if (!TheClient().ok()) GTEST_SKIP() << TheClient().status();
  const auto made = xla::XlaBackend::Make(Programs(), {.device = 1000});
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::kernels
