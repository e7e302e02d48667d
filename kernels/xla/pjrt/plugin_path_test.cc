#include "kernels/xla/pjrt/plugin_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/temporary_directory.h"

namespace troupe::kernels::xla {
namespace {

using testing::HasSubstr;

constexpr const char* kVariable = "TROUPE_XLA_PLUGIN";

// A folder build/ with a program, and the variable of the environment, which it restores.
class PluginPath : public testing::Test {
 protected:
  PluginPath() {
    if (const char* const value = std::getenv(kVariable)) before_ = value;
    unsetenv(kVariable);
  }
  ~PluginPath() override {
    unsetenv(kVariable);
    if (before_) setenv(kVariable, before_->c_str(), 1);
  }

  std::string Install() const {
    std::filesystem::create_directory(directory_.Child("xla-plugin"));
    const std::string path = directory_.Child("xla-plugin/xla_cpu_pjrt.so");
    std::ofstream(path) << "a library";
    return path;
  }

  const TemporaryDirectory directory_;
  const std::string program_ = directory_.Child("release/bin/troupe-worker");

 private:
  std::optional<std::string> before_;
};

TEST_F(PluginPath, IsTheStatedOneFirst) {
  Install();
  setenv(kVariable, "/opt/environment.so", 1);
  EXPECT_EQ(FindPlugin("/opt/stated.so", program_).value(), "/opt/stated.so");
}

TEST_F(PluginPath, IsThatOfTheEnvironmentNext) {
  Install();
  setenv(kVariable, "/opt/environment.so", 1);
  EXPECT_EQ(FindPlugin("", program_).value(), "/opt/environment.so");
}

TEST_F(PluginPath, IsThatOfTheBuildLast) {
  const std::string installed = Install();
  EXPECT_EQ(FindPlugin("", program_).value(), installed);
  setenv(kVariable, "", 1);
  EXPECT_EQ(FindPlugin("", program_).value(), installed);
}

TEST_F(PluginPath, IsMissingInThreePlaces) {
  const Status status = FindPlugin("", program_).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(ToString(status), HasSubstr("no path is stated"));
  EXPECT_THAT(ToString(status), HasSubstr("TROUPE_XLA_PLUGIN is not set"));
  EXPECT_THAT(ToString(status), HasSubstr(directory_.Child("xla-plugin/xla_cpu_pjrt.so")));
}

}  // namespace
}  // namespace troupe::kernels::xla
