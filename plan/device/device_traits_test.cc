#include "plan/device/device_traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/device/device_kind.h"
#include "plan/job/key_schema.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

TEST(DeviceTraitsTest, HasARowForEachWordOfAJobsDevices) {
  const auto& key = *v1::JobSpec::descriptor()->FindFieldByName("devices");
  EXPECT_EQ(KeyOptionsOf(key).default_(), kDefaultDeviceKind);
  std::vector<std::string> kinds;
  for (const std::string_view kind : DeviceKinds()) kinds.emplace_back(kind);
  EXPECT_THAT(kinds, testing::UnorderedElementsAreArray(WordsOf(key)));
}

TEST(DeviceTraitsTest, AnAbsentKindIsTheDefault) {
  EXPECT_EQ(DeviceTraitsOf("").kind, kDefaultDeviceKind);
  EXPECT_EQ(FindDeviceTraits(""), nullptr);
  EXPECT_EQ(FindDeviceTraits("tpu"), nullptr);
}

}  // namespace
}  // namespace troupe
