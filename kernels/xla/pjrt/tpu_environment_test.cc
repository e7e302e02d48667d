#include "kernels/xla/pjrt/tpu_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary_directory.h"

namespace troupe::kernels::xla {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(TpuEnvironment, SkipsTheMetadataServerWhereNoDeviceIsGoogles) {
  EXPECT_TRUE(SkipsMetadataQuery({}));
  EXPECT_TRUE(SkipsMetadataQuery(std::vector<PciDevice>{{0x8086, 1}, {0x10de, 2}}));
  EXPECT_FALSE(SkipsMetadataQuery(std::vector<PciDevice>{{0x8086, 1}, {0x1ae0, 0x63}}));
}

TEST(TpuEnvironment, ReadsTheDevicesThatLinuxLists) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.Child("0000:00:04.0"));
  std::ofstream(directory.Child("0000:00:04.0/vendor")) << "0x1ae0\n";
  std::ofstream(directory.Child("0000:00:04.0/device")) << "0x0063\n";
  std::filesystem::create_directory(directory.Child("0000:00:05.0"));
  std::ofstream(directory.Child("0000:00:05.0/vendor")) << "0x8086\n";
  std::filesystem::create_directory(directory.Child("0000:00:06.0"));
  EXPECT_THAT(PciDevices(directory.path()),
              UnorderedElementsAre(PciDevice{0x1ae0, 0x63}, PciDevice{0x8086, 0}));
  EXPECT_THAT(PciDevices(directory.Child("nowhere")), IsEmpty());
}

// Sets variables of the environment anew at its end.
class Environment {
 public:
  explicit Environment(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
    unsetenv(name);
  }
  ~Environment() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(TpuEnvironment, LetsSeveralProcessesLoadLibtpuUnlessAVariableForbidsIt) {
  const Environment load("ALLOW_MULTIPLE_LIBTPU_LOAD"), query("TPU_SKIP_MDS_QUERY");
  SetTpuEnvironment();
  EXPECT_STREQ(std::getenv("ALLOW_MULTIPLE_LIBTPU_LOAD"), "1");
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "0", 1);
  SetTpuEnvironment();
  EXPECT_STREQ(std::getenv("ALLOW_MULTIPLE_LIBTPU_LOAD"), "0");
}

}  // namespace
}  // namespace troupe::kernels::xla
