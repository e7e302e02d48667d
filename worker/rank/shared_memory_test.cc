#include "worker/rank/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/failure_cause.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMegabyte = 1'000'000;

SharedMemory Memory(int64_t total_bytes, int64_t free_bytes) {
  return {.path = "/dev/shm", .total_bytes = total_bytes, .free_bytes = free_bytes};
}

TEST(SharedMemory, TooLittleForAllRanksIsRefusedWithPathSizeAndNeed) {
  const Status status = CheckSharedMemory(Memory(8 * kMegabyte, 8 * kMegabyte), 2);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(AttachedCause(status), cause::kSharedMemory);
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("/dev/shm has 8.0 MB, of which 8.0 MB are free"),
                    HasSubstr("2 ranks of this worker need 8.6 MB"), HasSubstr("--shm-size")));
}

TEST(SharedMemory, FullMemoryMayHaveRoomLater) {
  const Status status = CheckSharedMemory(Memory(64 * kMegabyte, kMegabyte), 2);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(AttachedCause(status), cause::kSharedMemory);
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("1.0 MB are free"), HasSubstr("a rank needs 4.3 MB")));
}

TEST(SharedMemory, WithRoomOrWithoutSuchMemoryTheCheckPasses) {
  EXPECT_TRUE(CheckSharedMemory(Memory(64 * kMegabyte, 64 * kMegabyte), 8).ok());
  EXPECT_TRUE(CheckSharedMemory(Memory(2 * kRankSharedBytes, kRankSharedBytes), 2).ok())
      << "the other rank has its part already";
  EXPECT_TRUE(CheckSharedMemory({}, 8).ok());
  EXPECT_TRUE(CheckSharedMemory(Memory(0, 0), 8).ok()) << "mounted without a limit";
}

TEST(SharedMemory, TheTransportsOfUcxDecideWhetherItIsUsed) {
  EXPECT_TRUE(UsesSharedFiles(nullptr));
  for (const char* used : {"", "all", "^tcp", "tcp,sm,self", "posix", "^sysv,cma"})
    EXPECT_TRUE(UsesSharedFiles(used)) << used;
  for (const char* unused : {"tcp", "tcp,self", "^posix", "^tcp,shm", "rc,sysv"})
    EXPECT_FALSE(UsesSharedFiles(unused)) << unused;
}

TEST(SharedMemory, OnlyAFailureOfNcclIsExplainedAndOnlyIfTheMemoryIsFull) {
  const Status failed = Internal("NCCL: unhandled system error");
  const SharedMemory full = Memory(64 * kMegabyte, 5 * kMegabyte);
  const Status explained = ExplainBySharedMemory(failed, full);
  EXPECT_EQ(AttachedCause(explained), cause::kSharedMemory);
  EXPECT_THAT(
      std::string(Message(explained)),
      AllOf(HasSubstr("NCCL: unhandled system error; /dev/shm has 64.0 MB, of which 5.0 MB"),
            HasSubstr("NCCL needs up to 9.6 MB for each connection")));
  EXPECT_EQ(ExplainBySharedMemory(failed, Memory(64 * kMegabyte, 30 * kMegabyte)), failed);
  EXPECT_EQ(ExplainBySharedMemory(failed, {}), failed);
  EXPECT_EQ(ExplainBySharedMemory(failed, Memory(0, 0)), failed);
  const Status other = Unavailable("rank 1 closed the connection");
  EXPECT_EQ(ExplainBySharedMemory(other, full), other);
  EXPECT_TRUE(ExplainBySharedMemory(OkStatus(), full).ok());
}

}  // namespace
}  // namespace troupe
