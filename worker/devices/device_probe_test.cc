#include "worker/devices/device_probe.h"

#include <gtest/gtest.h>

#include "base/durable_write.h"
#include "base/temporary_directory.h"
#include "plan/device/device_traits.h"

namespace troupe {
namespace {

TEST(DeviceProbe, ReadsTheProcessorsModel) {
  EXPECT_EQ(
      ProcessorModel("processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor \nflags: a\n"),
      "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(ProcessorModel("processor: 0\n"), "unknown");
  EXPECT_EQ(ProcessorModel("model name\t:\n"), "unknown");
}

TEST(DeviceProbe, OnlyKnownProcessorsHaveAPeak) {
  EXPECT_DOUBLE_EQ(KnownPeak("AMD EPYC 9654 96-Core Processor", 2).float32, 2 * 3.55e9 * 32);
  EXPECT_DOUBLE_EQ(KnownPeak("AMD EPYC 9654 96-Core Processor", 2).bfloat16, 2 * 3.55e9 * 64);
  EXPECT_EQ(KnownPeak("Some Processor", 2).float32, 0);
}

TEST(DeviceProbe, ThreadsThatShareACoreAreOne) {
  const auto siblings = [](int thread) {
    return thread >= 100 ? std::string() : fmt::format("{},{}", thread % 4, thread % 4 + 4);
  };
  EXPECT_EQ(PhysicalCores({0, 1, 2, 3}, siblings), 4);
  EXPECT_EQ(PhysicalCores({0, 1, 4, 5}, siblings), 2);
  EXPECT_EQ(PhysicalCores({0, 4, 100, 101}, siblings), 3);
}

TEST(DeviceProbe, AMeasuredPeakHoldsForThisProcessorAlone) {
  PosixFileSystem files;
  const TemporaryDirectory folder;
  EXPECT_EQ(ReadMeasuredPeak(files, folder.path()).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(WriteMeasuredPeak(files, folder.path(), {.float32 = 1e11, .bfloat16 = 2e11}).ok());
  const auto read = ReadMeasuredPeak(files, folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->float32, 1e11);
  const TemporaryDirectory own;
  EXPECT_EQ(FindPeak(files, {own.path(), folder.path()}).bfloat16, 2e11);
  ASSERT_TRUE(WriteMeasuredPeak(files, own.path(), {.float32 = 1e11, .bfloat16 = 3e11}).ok());
  EXPECT_EQ(FindPeak(files, {own.path(), folder.path()}).bfloat16, 3e11);
  ASSERT_TRUE(
      WriteFileDurably(files, folder.Child("peak.txt"), AsBytes("another | 2 cores | avx2\n1 2\n"))
          .ok());
  EXPECT_EQ(ReadMeasuredPeak(files, folder.path()).status().code(), StatusCode::kNotFound);
}

TEST(DeviceProbe, TheTightestControlGroupOnTheWayUpLimitsTheMemory) {
  PosixFileSystem files;
  const TemporaryDirectory folder;
  for (const char* path : {"a", "a/b", "memory", "memory/c"})
    ASSERT_TRUE(MakeDirectories(files, folder.Child(path)).ok());
  const auto write = [&](const char* path, const char* text) {
    ASSERT_TRUE(WriteFileDurably(files, folder.Child(path), AsBytes(text)).ok());
  };
  write("a/memory.max", "3000\n");
  write("a/b/memory.max", "max\n");
  write("memory/c/memory.limit_in_bytes", "2000\n");
  EXPECT_EQ(MemoryLimitOfGroups(folder.path(), "0::/a/b\n", 5000), 3000);
  EXPECT_EQ(MemoryLimitOfGroups(folder.path(), "0::/a/b\n", 1000), 1000);
  EXPECT_EQ(MemoryLimitOfGroups(folder.path(), "0::/\n", 5000), 5000);
  EXPECT_EQ(MemoryLimitOfGroups(folder.path(), "5:cpu:/a\n4:memory:/c\n", 5000), 2000);
  EXPECT_EQ(MemoryLimitOfGroups(folder.path(), "", 5000), 5000);
}

TEST(DeviceProbe, DevicesOfAHostAnnounceItsCoresAndVersions) {
  const auto devices = ProbeCpuDevices(2, {.float32 = 1e11, .bfloat16 = 2e11});
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[1].index(), 1);
  EXPECT_EQ((*devices)[1].kind().kind(), "cpu");
  EXPECT_FALSE((*devices)[1].kind().kernel_level().empty());
  EXPECT_NE((*devices)[1].kind().versions().find("oneDNN"), std::string::npos);
  EXPECT_GE((*devices)[1].cores(), 1);
  EXPECT_GT((*devices)[1].memory_bytes(), 0);
}

TEST(DeviceProbe, HasACaseForEachKindAndRefusesOthers) {
  const auto refusal = [](std::string_view kind) {
    const WorkerDevices stated{.kind = std::string(kind)};
    return Message(ProbeDevices(stated, {}).status()) ==
           fmt::format("a worker cannot have devices {}", stated.ToText());
  };
  for (const std::string_view kind : DeviceKinds()) EXPECT_FALSE(refusal(kind)) << kind;
  EXPECT_TRUE(refusal("tpu"));
  EXPECT_EQ((*ProbeDevices({.count = 2}, {}))[1].kind().kind(), "cpu");
}

}  // namespace
}  // namespace troupe
