#include "kernels/xla/pjrt/tpu_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/temporary_directory.h"

namespace troupe::kernels::xla {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(TpuEnvironment, SkipsTheMetadataServerWhereNoDeviceIsGoogles) {
  EXPECT_TRUE(SkipsMetadataQuery({}));
  EXPECT_TRUE(SkipsMetadataQuery(std::vector<uint32_t>{0x8086, 0x10de}));
  EXPECT_FALSE(SkipsMetadataQuery(std::vector<uint32_t>{0x8086, 0x1ae0}));
}

TEST(TpuEnvironment, ReadsTheVendorsThatLinuxLists) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.Child("0000:00:04.0"));
  std::ofstream(directory.Child("0000:00:04.0/vendor")) << "0x1ae0\n";
  std::filesystem::create_directory(directory.Child("0000:00:05.0"));
  std::ofstream(directory.Child("0000:00:05.0/vendor")) << "0x8086\n";
  std::filesystem::create_directory(directory.Child("0000:00:06.0"));
  EXPECT_THAT(PciVendors(directory.path()), UnorderedElementsAre(0x1ae0, 0x8086));
  EXPECT_THAT(PciVendors(directory.Child("nowhere")), IsEmpty());
}

}  // namespace
}  // namespace troupe::kernels::xla
