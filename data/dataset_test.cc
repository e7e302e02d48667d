#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "data/indexed_dataset_writer.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Row {
  explicit Row(int64_t length)
      : tokens(static_cast<size_t>(length)),
        targets(tokens),
        positions(tokens),
        weights(tokens.size()) {}
  SampleRow View() { return {tokens, targets, weights, positions}; }
  bool operator==(const Row&) const = default;
  std::vector<int32_t> tokens, targets, positions;
  std::vector<float> weights;
};

class DatasetTest : public ::testing::Test {
 protected:
  // `documents` documents of `length` tokens; the stream counts up from 0, so that a row shows
  // where it lies.
  std::string Write(std::string_view name, int documents, int length) {
    const std::string prefix = folder_.Child(name);
    auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix});
    std::vector<int32_t> tokens(static_cast<size_t>(length));
    for (int d = 0; d < documents; ++d) {
      std::iota(tokens.begin(), tokens.end(), d * length);
      TROUPE_CHECK_OK((*writer)->Append(tokens));
      TROUPE_CHECK_OK((*writer)->EndDocument());
    }
    TROUPE_CHECK_OK((*writer)->Finish());
    return prefix;
  }
  DatasetOptions Options(std::string train) {
    return {.train = std::move(train),
            .sequence_length = 8,
            .global_batch_size = 4,
            .vocab_size = 60000,
            .seed = 5};
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(DatasetTest, ARowIsLengthPlusOneTokensAndRowsAdvanceByTheLength) {
  const auto dataset = Dataset::Open(files_, Options(Write("d", 10, 10)));
  ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
  ASSERT_EQ(dataset->samples_per_epoch(), 12);  // (100 - 1) / 8
  std::map<int32_t, int> firsts;
  Row row(8);
  for (int64_t step = 1; step <= 6; ++step) {  // 24 samples: two epochs
    for (int64_t slot = 0; slot < 4; ++slot) {
      ASSERT_TRUE(dataset->Train(step, slot, row.View()).ok());
      ++firsts[row.tokens[0]];
      for (int32_t i = 0; i < 8; ++i) {
        ASSERT_EQ(row.tokens[i], row.tokens[0] + i);
        ASSERT_EQ(row.targets[i], row.tokens[i] + 1);
        ASSERT_EQ(row.positions[i], i);
        ASSERT_EQ(row.weights[i], 1.0f);
      }
    }
  }
  EXPECT_EQ(firsts.size(), 12u);
  for (const auto& [first, count] : firsts) {
    EXPECT_EQ(first % 8, 0);
    EXPECT_EQ(count, 2);
  }
}

TEST_F(DatasetTest, EveryPartitionOfTheSlotsReadsTheSameSamples) {
  const std::string prefix = Write("d", 10, 20);
  DatasetOptions options = Options(prefix);
  options.global_batch_size = 12;
  std::map<int, std::vector<Row>> by_ranks;
  for (const int ranks : {1, 2, 3, 4, 6, 12}) {
    for (int64_t step = 1; step <= 5; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto dataset = Dataset::Open(files_, options);  // a process of its own
        for (int64_t slot = rank * 12 / ranks; slot < (rank + 1) * 12 / ranks; ++slot) {
          Row row(8);
          ASSERT_TRUE(dataset->Train(step, slot, row.View()).ok());
          by_ranks[ranks].push_back(row);
        }
      }
    }
    EXPECT_EQ(by_ranks[ranks], by_ranks[1]) << ranks;
  }
}

TEST_F(DatasetTest, TheBatchSizeCutsOneOrderIntoSteps) {
  const std::string prefix = Write("d", 10, 20);
  DatasetOptions small = Options(prefix), large = Options(prefix);
  large.global_batch_size = 8;
  const auto a = Dataset::Open(files_, small), b = Dataset::Open(files_, large);
  for (int64_t place = 0; place < 64; ++place) {
    Row x(8), y(8);
    ASSERT_TRUE(a->Train(1 + place / 4, place % 4, x.View()).ok());
    ASSERT_TRUE(b->Train(1 + place / 8, place % 8, y.View()).ok());
    EXPECT_EQ(x, y);
  }
}

TEST_F(DatasetTest, HoldsOutWholeSequencesInFixedOrder) {
  DatasetOptions options = Options(Write("d", 10, 20));
  options.validation_fraction = 0.25;  // 2.5 sequences round to 2, half to even
  const auto dataset = Dataset::Open(files_, options);
  ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
  EXPECT_EQ(dataset->train_tokens(), 160);
  EXPECT_EQ(dataset->validation_tokens(), 40);
  ASSERT_EQ(dataset->validation_samples(), 4);
  // Sequences 2 and 7.
  const auto held_out = [](int32_t token) { return token / 20 == 2 || token / 20 == 7; };
  const std::vector<int32_t> first_tokens = {40, 48, 56, 144};
  Row row(8);
  for (int64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(dataset->Validation(i, row.View()).ok());
    EXPECT_EQ(row.tokens[0], first_tokens[static_cast<size_t>(i)]);
    EXPECT_TRUE(std::all_of(row.targets.begin(), row.targets.end(), held_out));
  }
  for (int64_t step = 1; step <= 20; ++step) {
    for (int64_t slot = 0; slot < 4; ++slot) {
      ASSERT_TRUE(dataset->Train(step, slot, row.View()).ok());
      EXPECT_TRUE(std::none_of(row.targets.begin(), row.targets.end(), held_out));
    }
  }
}

TEST_F(DatasetTest, ReadsASeparateValidationDataset) {
  DatasetOptions options = Options(Write("train", 10, 20));
  options.validation = Write("validation", 2, 30);
  const auto dataset = Dataset::Open(files_, options);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(dataset->train_tokens(), 200);
  EXPECT_EQ(dataset->validation_samples(), 7);
  Row row(8);
  ASSERT_TRUE(dataset->Validation(6, row.View()).ok());
  EXPECT_EQ(row.targets[7], 56);
}

TEST_F(DatasetTest, RefusesASequenceLongerThanTheDataNamingBothNumbers) {
  DatasetOptions options = Options(Write("d", 2, 10));
  options.sequence_length = 20;
  EXPECT_THAT(std::string(Message(Dataset::Open(files_, options).status())),
              HasSubstr("training.sequence_length 20 is longer than the data: a sample takes 21 "
                        "tokens, data.train \"" +
                        options.train + "\" has 20 for training"));
  options.sequence_length = 19;
  EXPECT_TRUE(Dataset::Open(files_, options).ok());
  options.sequence_length = 9;
  options.validation_fraction = 0.5;
  EXPECT_TRUE(Dataset::Open(files_, options).ok());
  options.validation_fraction = 0.1;
  EXPECT_THAT(std::string(Message(Dataset::Open(files_, options).status())),
              HasSubstr("there are 0 (0 of 2 sequences held out"));
}

TEST_F(DatasetTest, RefusesOptionsThatMeanNothing) {
  const std::string prefix = Write("d", 2, 30);
  const auto refused = [&](auto change) {
    DatasetOptions options = Options(prefix);
    change(options);
    return Dataset::Open(files_, options).status().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto& o) { o.sequence_length = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.global_batch_size = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.vocab_size = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.validation_fraction = std::nan(""); }));
  EXPECT_TRUE(refused([](auto& o) { o.validation_fraction = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.validation_fraction = -0.1; }));
  EXPECT_TRUE(refused([](auto& o) { o.train = ""; }));
}

TEST_F(DatasetTest, NamesTheTokenThatIsNotInTheVocabulary) {
  DatasetOptions options = Options(Write("d", 1, 30));
  options.vocab_size = 20;
  const auto dataset = Dataset::Open(files_, options);
  ASSERT_TRUE(dataset.ok());
  Row row(8);
  Status status;
  for (int64_t slot = 0; slot < 3 && status.ok(); ++slot) {
    status = dataset->Train(1, slot, row.View());
  }
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("token 20 at position 20"));
}

}  // namespace
}  // namespace troupe
