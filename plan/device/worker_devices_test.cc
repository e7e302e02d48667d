#include "plan/device/worker_devices.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(WorkerDevicesTest, AreAKindAndANumber) {
  for (const char* good : {"cpu:1", "cuda:8", "cpu:64", "xla:2"}) {
    const auto devices = ParseWorkerDevices(good);
    ASSERT_TRUE(devices.ok()) << devices.status();
    EXPECT_EQ(devices->ToText(), good);
  }
  for (const char* bad :
       {"", "cuda", "cuda:", "cuda:0", "cpu:65", "gpu:1", "cuda:1x", "cuda:-1", "xla:0"}) {
    const auto devices = ParseWorkerDevices(bad);
    EXPECT_EQ(devices.status().code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Message(devices.status()),
              fmt::format("--devices is \"{}\", must be cpu:N or cuda:N or xla:N with N from 1 "
                          "to 64",
                          bad));
  }
}

TEST(WorkerDevicesTest, HaveAFormForEachBuiltKind) {
  EXPECT_EQ(WorkerDevicesForms("|"), "cpu:N|cuda:N|xla:N");
  EXPECT_EQ(WorkerDevices().ToText(), "cpu:1");
}

}  // namespace
}  // namespace troupe
