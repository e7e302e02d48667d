#include "worker/rank/xla_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/xla/pjrt/plugin_path.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kVariable = "TROUPE_XLA_PLUGIN";

// Returns the error of probing a host with four chips of a TPU v6e.
Status ProbeErrorOnTpuHost() {
  return ProbeXlaDevices(4, TpuChips{.model = FindTpuModel("TPU v6 lite"), .count = 4}).status();
}

TEST(XlaBackend, ProbesTpusWithLibtpuAndStatesWhichVariableNamesIt) {
  const auto plugin = kernels::xla::FindPlugin("");
  if (!plugin.ok()) GTEST_SKIP() << plugin.status();
  if (plugin->find("libtpu") != std::string::npos)
    GTEST_SKIP() << "the plugin is libtpu, which knows the chips: " << *plugin;
  const Status status = ProbeErrorOnTpuHost();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ToString(status),
              AllOf(HasSubstr("the plugin of this host's 4 chips of TPU v6 lite is libtpu, and "
                              "TROUPE_XLA_PLUGIN must be set to the path of libtpu.so"),
                    HasSubstr(*plugin)));
}

TEST(XlaBackend, IsUnavailableOnATpuHostWithoutThePlugin) {
  const char* const set = std::getenv(kVariable);
  const std::string former = set == nullptr ? "" : set;
  setenv(kVariable, "/nowhere/libtpu.so", /*overwrite=*/1);
  const Status status = ProbeErrorOnTpuHost();
  set == nullptr ? unsetenv(kVariable) : setenv(kVariable, former.c_str(), /*overwrite=*/1);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ToString(status), AllOf(HasSubstr("TROUPE_XLA_PLUGIN must be set to the path of"),
                                      HasSubstr("/nowhere/libtpu.so does not exist")));
}

}  // namespace
}  // namespace troupe
