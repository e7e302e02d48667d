#include "cli/output/prepare_line.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PrepareLineTest, ShowsThePartThatIsReadTheRateAndTheTimeLeft) {
  PrepareProgress progress{
      .bytes_read = 25'000'000, .bytes_total = 100'000'000, .documents = 12, .tokens = 5'000'000};
  EXPECT_EQ(PrepareLine::Text(progress, 10, 79),
            " 25% of 100 MB     12 documents   5000000 tokens   500000 tokens/s  30 s left");
  progress.bytes_read = 100'000'000;
  EXPECT_EQ(PrepareLine::Text(progress, 3600, 79),
            "100% of 100 MB     12 documents   5000000 tokens     1389 tokens/s  0 s left");
}

TEST(PrepareLineTest, ANarrowTerminalDoesNotCutTheTimeLeft) {
  const PrepareProgress progress{
      .bytes_read = 25'000'000, .bytes_total = 100'000'000, .documents = 12, .tokens = 5'000'000};
  EXPECT_EQ(PrepareLine::Text(progress, 10, 76),
            " 25% of 100 MB   5000000 tokens   500000 tokens/s  30 s left");
  EXPECT_EQ(PrepareLine::Text(progress, 10, 49), " 25% of 100 MB   500000 tokens/s  30 s left");
  EXPECT_EQ(PrepareLine::Text(progress, 10, 30), " 25% of 100 MB  30 s left");
}

TEST(PrepareLineTest, FilesThatAppearedMeanwhileAndEmptyOnesGiveNoNonsense) {
  EXPECT_EQ(PrepareLine::Text({.bytes_read = 9, .bytes_total = 3}, 1, 30), "100% of 3 B  0 s left");
  EXPECT_EQ(PrepareLine::Text({}, 0, 30), "100% of 1 B  0 s left");
}

}  // namespace
}  // namespace troupe
