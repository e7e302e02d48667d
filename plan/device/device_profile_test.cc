#include "plan/device/device_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using ::testing::HasSubstr;

const std::string kWhole = R"(
name: imagined
memory_bytes: 80000000000
bfloat16_flops_per_second: 989.0e12
matmul_efficiency: 0.7
memory_bytes_per_second: 3.35e12
launch_seconds: 2.0e-6
devices_per_island: 8
island: {bytes_per_second: 450.0e9, latency_seconds: 3.0e-6}
fabric: {bytes_per_second: 50.0e9, latency_seconds: 6.0e-6}
)";

TEST(DeviceProfile, IsReadFromItsKeys) {
  const auto profile = ParseDeviceProfile(kWhole, "h100.yaml");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->name(), "imagined");
  EXPECT_EQ(profile->bfloat16_flops_per_second(), 989e12);
  EXPECT_EQ(profile->fabric().bytes_per_second(), 50e9);
}

TEST(DeviceProfile, AWholeNumberMayHaveAnExponent) {
  std::string text = kWhole;
  const std::string plain = "memory_bytes: 80000000000";
  const auto profile =
      ParseDeviceProfile(text.replace(text.find(plain), plain.size(), "memory_bytes: 80e9"), "p");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->memory_bytes(), 80'000'000'000);
}

TEST(DeviceProfile, TheEarlierNameOfAKeyIsRead) {
  std::string text = kWhole;
  const std::string now = "matmul_efficiency";
  const auto profile =
      ParseDeviceProfile(text.replace(text.find(now), now.size(), "product_efficiency"), "p");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->matmul_efficiency(), 0.7);
}

TEST(DeviceProfile, RefusesWhatIsAbsentUnknownOrNoRateByName) {
  const auto refused = [](const std::string& from, const std::string& to, const char* words) {
    std::string text = kWhole;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const auto profile = ParseDeviceProfile(text.replace(at, from.size(), to), "h100.yaml");
    ASSERT_FALSE(profile.ok()) << words;
    EXPECT_EQ(profile.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(profile.status())), HasSubstr(words));
  };
  refused("memory_bytes: ", "memory_byte: ", "nearest known key is memory_bytes");
  refused("memory_bytes: 80000000000", "", "memory_bytes is absent");
  refused("bfloat16_flops_per_second: 989.0e12", "", "float32_flops_per_second is absent");
  refused("0.7", "1.7", "matmul_efficiency is 1.7, not in (0, 1]");
  refused("matmul_efficiency: 0.7", "matmul_efficiency: 0.7\nattention_efficiency: 0",
          "attention_efficiency is 0, not in (0, 1]");
  refused("bytes_per_second: 50.0e9", "bytes_per_second: -1",
          "fabric.bytes_per_second is -1, not in (0, ∞)");
  refused("name: imagined", "device_model: TPU v9",
          "device_model is \"TPU v9\", not one of TPU v4, TPU v5 lite, TPU v5, TPU v6 lite, TPU7x");
  refused("name: imagined", "device_model: ''", "device_model is empty");
  refused("latency_seconds: 3.0e-6", "latency_seconds: -1", "island.latency_seconds");
}

TEST(DeviceProfile, AJobFileInItsPlaceIsRefusedAsSuch) {
  const auto refusal = [](const std::string& text) {
    const auto profile = ParseDeviceProfile(text, "job");
    EXPECT_EQ(profile.status().code(), StatusCode::kInvalidArgument) << text;
    return std::string(Message(profile.status()));
  };
  for (const char* const job :
       {"name: a\nmodel:\n  preset: tiny\ntraining: {steps: 3}\n",
        "{\"name\": \"a\", \"model\": {\"preset\": \"tiny\"}, \"training\": {\"steps\": 3}}",
        "name: \"a\"\nmodel {\n  preset: \"tiny\"\n}\ntraining { steps: 3 }\n",
        "name: a\nmodel: {preset: tiny\ntraining: {steps: 3}\n"}) {
    EXPECT_EQ(refusal(job),
              "job: looks like a job file, for it has the key model; a device profile is expected, "
              "a YAML file of a device's rates with keys such as memory_bytes (docs/planning.md)");
  }
  for (const char* const other : {"model: NVIDIA H200\nmemory_bytes: 1e9\n", "rates: {a: 1}\n",
                                  "{name: a", "name: a\n", "a text\n"}) {
    EXPECT_THAT(refusal(other), testing::Not(HasSubstr("job file"))) << other;
  }
}

}  // namespace
}  // namespace troupe
