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

std::string RefusalOf(const char* devices, const char* model) {
  v1::JobSpec spec;
  if (*devices != '\0') spec.set_devices(devices);
  v1::DeviceProfile profile;
  profile.set_name("P");
  if (*model != '\0') profile.set_device_model(model);
  return std::string(Message(CheckProfileIsOfJobsDevices(spec, profile)));
}

TEST(DeviceTraitsTest, AProfileOfAnotherKindThanTheJobsDevicesIsRefused) {
  EXPECT_EQ(RefusalOf("cpu", "NVIDIA H200"),
            "devices is cpu, but device profile P is of NVIDIA H200, which jobs with devices: cuda "
            "use");
  EXPECT_EQ(RefusalOf("", "NVIDIA H200").substr(0, 15), "devices is cpu,");
  EXPECT_EQ(RefusalOf("cuda", "AMD EPYC 9654"),
            "devices is cuda, but device profile P is of AMD EPYC 9654, which jobs with devices: "
            "cpu use; the model of a GPU begins with NVIDIA, and that of a TPU with TPU");
  EXPECT_EQ(RefusalOf("cuda", "emulated"), "") << "it may be of any kind";
  EXPECT_EQ(RefusalOf("cuda", "TPU v5 lite"),
            "devices is cuda, but device profile P is of TPU v5 lite, which jobs with devices: xla "
            "use");
  EXPECT_EQ(RefusalOf("xla", "NVIDIA H200").substr(0, 15), "devices is xla,");
}

TEST(DeviceTraitsTest, AProfileOfTheKindOrWithoutAModelIsAccepted) {
  EXPECT_EQ(RefusalOf("cuda", "NVIDIA B200"), "");
  EXPECT_EQ(RefusalOf("xla", "TPU v5 lite"), "");
  EXPECT_EQ(RefusalOf("cpu", "AMD EPYC 9654"), "");
  EXPECT_EQ(RefusalOf("xla", "AMD EPYC 9654"), "") << "XLA's plugin for processors";
  for (const char* devices : {"", "cpu", "cuda", "xla"}) EXPECT_EQ(RefusalOf(devices, ""), "");
  EXPECT_EQ(RefusalOf("abacus", "NVIDIA H200"), "") << "the validation of the job refuses the word";
}

}  // namespace
}  // namespace troupe
