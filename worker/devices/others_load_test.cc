#include "worker/devices/others_load.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "worker/devices/testing/fake_nvml_fixture.h"
#include "worker/rank/affinity.h"

namespace troupe {
namespace {

constexpr const char* kStat =
    "cpu  900 0 0 900 0 0 0 0 0 0\n"
    "cpu0 100 20 30 5000 600 7 8 35 90 0\n"
    "cpu1 1 0 0 5000 0 0 0 0 0 0\n"
    "cpu12 50 0 50 5000 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

TEST(OthersLoad, ACoreIsBusyUnlessItIdlesOrWaitsForADisk) {
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, {0}, 100).value(), 2.0);
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, {0, 12}, 100).value(), 3.0);
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, {1}, 10).value(), 0.1);
}

TEST(OthersLoad, IsNotKnownWhereTheSystemDoesNotReportACore) {
  EXPECT_FALSE(BusySeconds(kStat, {0, 2}, 100));
  EXPECT_FALSE(BusySeconds("", {0}, 100));
  EXPECT_FALSE(BusySeconds("cpu0 1 2\n", {0}, 100));
}

TEST(OthersLoad, RatesAreSpoiltByMoreThanATwentiethOfTheCores) {
  EXPECT_FALSE(SpoilsRates(0, 2));
  EXPECT_FALSE(SpoilsRates(0.09, 2));
  EXPECT_TRUE(SpoilsRates(0.11, 2));
  EXPECT_TRUE(SpoilsRates(0.06, 1));
  EXPECT_FALSE(SpoilsRates(3, 64));
}

TEST(OthersLoad, RatesOfABusyMachineAreKeptOnlyOnDemandAndWithANote) {
  EXPECT_EQ(NoteOnLoad(0.01, 2, /*even_if_busy=*/false).value(), "");
  EXPECT_EQ(NoteOnLoad(std::nullopt, 2, false).value(),
            "the system does not report whether other programs used the cores");
  const std::string note =
      "other programs used 1.50 of 2 cores during the measurement, so its rates are too low";
  EXPECT_EQ(NoteOnLoad(1.5, 2, /*even_if_busy=*/true).value(), note);
  const Status refused = NoteOnLoad(1.5, 2, /*even_if_busy=*/false).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(refused),
            note + "; nothing was written: measure on an idle machine, or add --even-if-busy");
}

TEST(OthersLoad, AMeasurementInVainIsGivenUpAfterItsFirstPart) {
  EXPECT_TRUE(CheckLoadSoFar(std::nullopt, 2, /*even_if_busy=*/false).ok());
  EXPECT_TRUE(CheckLoadSoFar(0.5, 2, false).ok()) << "the rest may be calm";
  EXPECT_TRUE(CheckLoadSoFar(1.5, 2, /*even_if_busy=*/true).ok());
  const Status refused = CheckLoadSoFar(1.5, 2, false);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(refused), Message(NoteOnLoad(1.5, 2, false).status()));
}

TEST(OthersLoad, RatesOfBusyGpusAreKeptOnlyOnDemandAndWithANote) {
  const GpuLoad idle = {.name = "GPU-a", .processes = 0, .utilization = 0.04};
  const GpuLoad busy = {.name = "GPU-b", .processes = 1, .utilization = 0.873};
  EXPECT_EQ(NoteOnGpuLoad({idle, idle}, /*even_if_busy=*/false).value(), "");
  const std::string note =
      "other programs used GPUs before the measurement, so its rates may be too low: GPU-b (1 "
      "process, busy for 87% of the time)";
  EXPECT_EQ(NoteOnGpuLoad({idle, busy}, /*even_if_busy=*/true).value(), note);
  const Status refused = NoteOnGpuLoad({idle, busy}, /*even_if_busy=*/false).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(refused),
            note + "; nothing was written: measure on an idle machine, or add --even-if-busy");
}

TEST(OthersLoad, AGpuIsBusyIfOthersHaveAProcessThereOrSomethingRuns) {
  EXPECT_FALSE(NoteOnGpuLoad({{.name = "a", .processes = 2, .utilization = 0.0}}, false).ok());
  EXPECT_FALSE(NoteOnGpuLoad({{.name = "a", .processes = 0, .utilization = 0.5}}, false).ok());
  EXPECT_EQ(
      Message(NoteOnGpuLoad({{.name = "a", .processes = 2}, {.name = "b", .utilization = 1}}, false)
                  .status()),
      "other programs used GPUs before the measurement, so its rates may be too low: a (2 "
      "processes), b (busy for 100% of the time); nothing was written: measure on an idle "
      "machine, or add --even-if-busy");
}

TEST(OthersLoad, RatesOfGpusWithoutNvmlAreKeptWithANote) {
  v1::Device device;
  device.set_index(1);
  const std::vector<GpuLoad> loads = LoadOfGpus("libno-such-library.so.1", {device});
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_FALSE(loads[0].processes || loads[0].utilization);
  EXPECT_NE(loads[0].fault.find("libno-such-library.so.1"), std::string::npos) << loads[0].fault;
  EXPECT_EQ(
      NoteOnGpuLoad(loads, /*even_if_busy=*/false).value(),
      "it is not known whether other programs used the GPUs: device 1 (" + loads[0].fault + ")");
}

using GpuLoadTest = FakeNvmlTest;

TEST_F(GpuLoadTest, NvmlReportsWhichProcessesUseAGpuAndForHowLong) {
  Change([](FakeNvml& fake) {
    fake.gpus[kSecondGpu].processes = 2;
    fake.gpus[kSecondGpu].utilization = 60;
  });
  std::vector<v1::Device> devices(3);
  devices[0].set_id(kFirstGpu);
  devices[1].set_id(kSecondGpu);
  devices[2].set_id("GPU-none");
  const std::vector<GpuLoad> loads = LoadOfGpus(TROUPE_FAKE_NVML, devices);
  ASSERT_EQ(loads.size(), 3u);
  EXPECT_EQ(loads[0].name, kFirstGpu);
  EXPECT_EQ(loads[0].processes, 0);
  EXPECT_EQ(loads[0].utilization, 0.0);
  EXPECT_EQ(loads[1].processes, 2);
  EXPECT_DOUBLE_EQ(loads[1].utilization.value(), 0.6);
  EXPECT_FALSE(loads[2].processes || loads[2].utilization);
  EXPECT_EQ(loads[2].fault, "GPU-none: Not Found");
}

TEST(OthersLoad, OthersUseNoMoreCoresThanThereAre) {
  const OthersLoad others;
  // This process keeps a core busy, which does not count as the load of others.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) {
  }
  const std::optional<double> cores = others.Cores();
  if (!cores) GTEST_SKIP() << "/proc/stat has no line for a core of this process";
  EXPECT_LE(*cores, 1.5 * static_cast<double>(AllowedCores().size()));
}

}  // namespace
}  // namespace troupe
