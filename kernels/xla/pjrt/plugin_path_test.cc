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
constexpr const char* kLibtpuVariable = "TROUPE_LIBTPU";

// A variable of the environment that is not set, and is restored at the end.
class Unset {
 public:
  explicit Unset(const char* variable) : variable_(variable) {
    if (const char* const value = std::getenv(variable)) before_ = value;
    unsetenv(variable);
  }
  ~Unset() {
    unsetenv(variable_);
    if (before_) setenv(variable_, before_->c_str(), 1);
  }
  Unset(const Unset&) = delete;
  Unset& operator=(const Unset&) = delete;

 private:
  const char* variable_;
  std::optional<std::string> before_;
};

// A folder build/ with a program, and the variables of the environment.
class PluginPath : public testing::Test {
 protected:
  std::string Install(const char* folder = "xla-plugin",
                      const char* file = "xla_cpu_pjrt.so") const {
    std::filesystem::create_directory(directory_.Child(folder));
    const std::string path = directory_.Child(std::string(folder) + "/" + file);
    std::ofstream(path) << "a library";
    return path;
  }

  const TemporaryDirectory directory_;
  const std::string program_ = directory_.Child("release/bin/troupe-worker");

 private:
  const Unset plugin_{kVariable}, libtpu_{kLibtpuVariable};
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

TEST_F(PluginPath, OfLibtpuIsThatOfTheEnvironmentThenThatOfTheBuild) {
  const std::string installed = Install("libtpu", "libtpu.so");
  EXPECT_EQ(FindLibtpu(program_).value(), installed);
  const std::string other = Install("elsewhere", "libtpu.so");
  setenv(kLibtpuVariable, other.c_str(), 1);
  EXPECT_EQ(FindLibtpu(program_).value(), other);
}

TEST_F(PluginPath, OfAMissingLibtpuStatesHowToGetIt) {
  const Status none = FindLibtpu(program_).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(ToString(none), HasSubstr("TROUPE_LIBTPU is not set in the environment, and " +
                                        directory_.Child("libtpu/libtpu.so") + " does not exist"));
  EXPECT_THAT(ToString(none), HasSubstr("pip download --no-deps libtpu"));
  setenv(kLibtpuVariable, "/nowhere/libtpu.so", 1);
  EXPECT_EQ(FindLibtpu(program_).status(),
            NotFound("TROUPE_LIBTPU is /nowhere/libtpu.so, which is no file; pip download "
                     "--no-deps libtpu gets it, under Google's terms, and unzip unpacks it"));
}

TEST_F(PluginPath, OfTheEnvironmentIsATextThatMayBeAPath) {
  setenv(kVariable, "/opt/\x1b[2J.so", 1);
  EXPECT_EQ(FindPlugin("", program_).status(),
            InvalidArgument("TROUPE_XLA_PLUGIN: \"/opt/\\u001b[2J.so\" has the control character "
                            "U+001B at its byte 6"));
  setenv(kLibtpuVariable, "/caf\xe9", 1);
  EXPECT_EQ(FindLibtpu(program_).status(),
            InvalidArgument("TROUPE_LIBTPU: \"/caf\\xe9\" is not UTF-8: its byte 5 is \\xe9"));
}

}  // namespace
}  // namespace troupe::kernels::xla
