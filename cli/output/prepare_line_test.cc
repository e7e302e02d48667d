#include "cli/output/prepare_line.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PrepareLineTest, ShowsThePartThatIsReadTheRateAndTheTimeLeft) {
  PrepareProgress progress{
      .bytes_read = 25'000'000, .bytes_total = 100'000'000, .documents = 12, .tokens = 5'000'000};
  EXPECT_EQ(PrepareLine::Text(progress, 10),
            "25% of 100.0 MB  12 documents  5000000 tokens  500000 tokens/s  30 s left");
  progress.bytes_read = 100'000'000;
  EXPECT_EQ(PrepareLine::Text(progress, 3600),
            "100% of 100.0 MB  12 documents  5000000 tokens  1389 tokens/s  0 s left");
}

TEST(PrepareLineTest, FilesThatAppearedMeanwhileAndEmptyOnesGiveNoNonsense) {
  EXPECT_EQ(PrepareLine::Text({.bytes_read = 9, .bytes_total = 3}, 1),
            "100% of 0.0 MB  0 documents  0 tokens  0 tokens/s  0 s left");
  EXPECT_EQ(PrepareLine::Text({}, 0),
            "100% of 0.0 MB  0 documents  0 tokens  0 tokens/s  0 s left");
}

}  // namespace
}  // namespace troupe
