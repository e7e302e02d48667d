#include "worker/executor/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "data/indexed_dataset_writer.h"

namespace troupe {
namespace {

constexpr int64_t kLength = 8;

class BatchReaderTest : public ::testing::Test {
 protected:
  BatchReaderTest() {
    auto writer = IndexedDatasetWriter::Create(files_, {.prefix = folder_.Child("d")});
    std::vector<int32_t> tokens(200);
    std::iota(tokens.begin(), tokens.end(), 0);
    TROUPE_CHECK_OK((*writer)->Append(tokens));
    TROUPE_CHECK_OK((*writer)->EndDocument());
    TROUPE_CHECK_OK((*writer)->Finish());
  }
  Dataset Open(int64_t vocab_size) {
    auto dataset = Dataset::Open(files_, {.train = folder_.Child("d"),
                                          .sequence_length = kLength,
                                          .global_batch_size = 4,
                                          .vocab_size = vocab_size,
                                          .seed = 3,
                                          .document_mask = true});
    TROUPE_CHECK_OK(dataset.status());
    return *dataset;
  }

  const TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(BatchReaderTest, GivesTheRowsOfItsSlotsForEachStepAlsoAfterAJump) {
  const Dataset dataset = Open(200);
  BatchReader reader(dataset, dataset.channels(), kLength, 2, 2);
  for (const int64_t step : {1, 2, 3, 9, 10, 4}) {
    const auto batch = reader.Consume(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    SampleBatch expected(dataset.channels(), 2, kLength);
    for (int64_t sample = 0; sample < 2; ++sample) {
      ASSERT_TRUE(dataset.Train(step, 2 + sample, expected.Row(sample)).ok());
    }
    for (const ChannelForm& channel : dataset.channels()) {
      const auto read = (*batch)->Bytes(channel.name), due = expected.Bytes(channel.name);
      ASSERT_EQ(due.size(), 2 * kLength * 4);
      EXPECT_TRUE(std::equal(read.begin(), read.end(), due.begin(), due.end()))
          << channel.name << " of step " << step;
    }
  }
}

TEST_F(BatchReaderTest, ABadTokenIsTheErrorOfItsStep) {
  const Dataset dataset = Open(100);  // tokens 100 to 199 are not in the vocabulary
  BatchReader reader(dataset, dataset.channels(), kLength, 0, 4);
  bool failed = false;
  for (int64_t step = 1; step <= 6; ++step) failed |= !reader.Consume(step).ok();
  EXPECT_TRUE(failed);
}

}  // namespace
}  // namespace troupe
