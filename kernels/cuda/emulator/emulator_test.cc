#include "kernels/cuda/emulator/emulator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "kernels/cuda/device_code/numbers.h"

namespace troupe::kernels::cuda::emulator {
namespace {

TEST(Emulator, RunsEveryThreadOfEveryBlockOnce) {
  std::vector<int> runs(3 * 2 * 70);
  RunBlocks({.blocks = {3, 2}, .threads = 70}, [&] {
    EXPECT_EQ(Blocks().x, 3u);
    EXPECT_EQ(Blocks().y, 2u);
    EXPECT_EQ(BlockThreads(), 70u);
    ++runs[(BlockIndex().y * 3 + BlockIndex().x) * 70 + ThreadIndex()];
  });
  EXPECT_EQ(runs, std::vector<int>(3 * 2 * 70, 1));
}

TEST(Emulator, ABarrierShowsWhatEveryThreadOfTheBlockWrote) {
  constexpr unsigned kThreads = 96;
  std::vector<unsigned> sums(2 * kThreads);
  RunBlocks({.blocks = {2, 1}, .threads = kThreads, .shared_bytes = kThreads * sizeof(unsigned)},
            [&] {
              auto* const shared = reinterpret_cast<unsigned*>(DynamicShared());
              unsigned sum = 0;
              for (unsigned round = 0; round < 3; ++round) {
                shared[ThreadIndex()] = ThreadIndex() * round;
                SyncBlock();
                for (unsigned i = 0; i < kThreads; ++i) sum += shared[i];
                SyncBlock();
              }
              sums[BlockIndex().x * kThreads + ThreadIndex()] = sum;
            });
  EXPECT_EQ(sums, std::vector<unsigned>(2 * kThreads, 3 * (kThreads - 1) * kThreads / 2));
}

TEST(Emulator, LanesExchangeWithinTheirWarpThoughAnotherWarpIsDone) {
  std::vector<double> xored(96), first(96);
  RunBlocks({.blocks = {1, 1}, .threads = 96}, [&] {
    const unsigned thread = ThreadIndex();
    if (thread / 32 == 1) return;
    xored[thread] = ShuffleXor(1.0 * thread, 5);
    first[thread] = ShuffleFrom(2.0 * thread, 3);
  });
  for (unsigned thread = 0; thread < 96; ++thread) {
    const bool runs = thread / 32 != 1;
    EXPECT_EQ(xored[thread], runs ? thread ^ 5u : 0);
    EXPECT_EQ(first[thread], runs ? 2.0 * (thread / 32 * 32 + 3) : 0);
  }
}

TEST(EmulatorDeathTest, ABarrierThatSomeThreadsMissEndsTheProcess) {
  EXPECT_DEATH(RunBlocks({.blocks = {1, 1}, .threads = 64},
                         [] {
                           if (ThreadIndex() < 40) SyncBlock();
                         }),
               "different barriers");
  EXPECT_DEATH(RunBlocks({.blocks = {1, 1}, .threads = 32},
                         [] { ThreadIndex() < 3 ? SyncBlock() : SyncWarp(); }),
               "different barriers");
}

TEST(EmulatorDeathTest, AnAddressThatIsNoMultipleOfWhatIsReadEndsTheProcess) {
  alignas(32) float numbers[12] = {};
  const auto read = [&](int64_t first) {
    RunBlocks({.blocks = {1, 1}, .threads = 1},
              [&] { numbers[8] += Pack<float, 4>::Load(numbers + first)[0]; });
  };
  read(4);
  EXPECT_DEATH(read(1), "not a multiple");
  const auto copy = [&](int64_t first) {
    RunBlocks({.blocks = {1, 1}, .threads = 1, .shared_bytes = 16}, [&] {
      BeginCopy(DynamicShared(), numbers + first, 8, 8);
      EndCopyGroup();
      WaitForCopies(0);
    });
  };
  copy(4);
  EXPECT_DEATH(copy(2), "not a multiple");
}

#if defined(__SANITIZE_THREAD__)
TEST(EmulatorDeathTest, ThreadSanitizerSeesThatABarrierIsMissing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // ThreadSanitizer needs more than a fork
  // `before`, `after`: whether a barrier of the block, rather than of warps, precedes and follows
  // the reads of other threads' values.
  const auto exchange = [](bool before, bool after, unsigned threads) {
    std::vector<unsigned> read(threads);
    RunBlocks({.blocks = {2, 1}, .threads = threads, .shared_bytes = threads * sizeof(unsigned)},
              [&] {
                auto* const shared = reinterpret_cast<unsigned*>(DynamicShared());
                for (unsigned round = 0; round < 3; ++round) {
                  shared[ThreadIndex()] = ThreadIndex() + round;
                  before ? SyncBlock() : SyncWarp();
                  read[ThreadIndex()] = shared[threads - 1 - ThreadIndex()];
                  after ? SyncBlock() : SyncWarp();
                }
              });
    std::exit(read[0] == threads + 1 ? 0 : 1);
  };
  constexpr int kRace = 66;  // ThreadSanitizer's exit code
  EXPECT_EXIT(exchange(true, true, 64), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exchange(false, false, 32), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exchange(false, true, 64), testing::ExitedWithCode(kRace), "data race");
  EXPECT_EXIT(exchange(true, false, 64), testing::ExitedWithCode(kRace), "data race");
}
#endif

}  // namespace
}  // namespace troupe::kernels::cuda::emulator
