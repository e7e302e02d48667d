// Every layout trains like the single rank: losses and gradient norms of the float64 reference
// agree to 1e-10. A gradient counted twice, a missing collective or a wrong slice exceeds this at
// once.
#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"
#include "tests/reference/reference_cluster.h"

namespace troupe {
namespace {

ReferenceRun Small(bool tied) {
  ReferenceRun run;
  run.model = model::SmallModel("ADADAD");
  run.model.num_key_value_heads = 4;  // tensor 4 divides them
  run.model.tie_word_embeddings = tied;
  return run;
}

void ExpectClose(const std::vector<StepNumbers>& actual, const std::vector<StepNumbers>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t step = 0; step < actual.size(); ++step) {
    EXPECT_LE(std::fabs(actual[step].loss / expected[step].loss - 1), tolerance)
        << what << ", step " << step + 1;
    EXPECT_LE(std::fabs(actual[step].grad_norm / expected[step].grad_norm - 1), tolerance)
        << what << ", step " << step + 1;
  }
}

class ReferenceLayoutTest : public testing::TestWithParam<bool> {
 protected:
  // Returns the single rank's numbers, the same for all cases.
  const std::vector<StepNumbers>& Single() {
    static const std::vector<StepNumbers> kUntied = Train(Small(false)), kTied = Train(Small(true));
    return GetParam() ? kTied : kUntied;
  }
};

TEST_P(ReferenceLayoutTest, EveryLayoutTrainsLikeTheSingleRank) {
  for (const int data : {1, 2, 4}) {
    for (const int tensor : {1, 2, 4}) {
      for (const int pipe : {1, 2, 4}) {
        if (data * tensor * pipe > 16) continue;
        ReferenceRun run = Small(GetParam());
        run.data = data;
        run.tensor = tensor;
        run.pipe = pipe;
        ExpectClose(Train(run), Single(), 1e-10, ToText(run));
      }
    }
  }
}

TEST_P(ReferenceLayoutTest, GroupedHeadsTrainLikeTheSingleRanks) {
  for (const int64_t key_value_heads : {1, 2}) {
    ReferenceRun single = Small(GetParam());
    single.model.num_key_value_heads = key_value_heads;
    const std::vector<StepNumbers> expected = Train(single);
    EXPECT_NE(expected[0].loss, Single()[0].loss) << "the heads are not grouped";
    for (const int data : {1, 2}) {
      for (const int tensor : {1, 2}) {
        for (const int pipe : {1, 2}) {
          if (key_value_heads % tensor != 0) continue;
          ReferenceRun run = single;
          run.data = data;
          run.tensor = tensor;
          run.pipe = pipe;
          ExpectClose(Train(run), expected, 1e-10,
                      fmt::format("{}, {} key-value heads", ToText(run), key_value_heads));
        }
      }
    }
  }
}

TEST_P(ReferenceLayoutTest, NumbersDependOnTrainingAndSeed) {
  const std::vector<StepNumbers>& numbers = Single();
  EXPECT_GT(numbers[0].grad_norm, 0.1);
  EXPECT_NE(numbers[0].loss, numbers[1].loss);
  ReferenceRun other = Small(GetParam());
  other.seed = 2;
  EXPECT_NE(Train(other)[0].loss, numbers[0].loss);
}

TEST_P(ReferenceLayoutTest, MicrobatchesBucketsFusionAndSplittingDoNotMatter) {
  for (const int64_t micro_batch_size : {1, 2, 4}) {
    for (const bool split : {false, true}) {
      ReferenceRun run = Small(GetParam());
      run.data = 2;
      run.tensor = 2;
      run.pipe = 2;
      run.micro_batch_size = micro_batch_size;
      run.split_backward = split;
      run.fuse = !split;
      run.bucket_elements = 300 * micro_batch_size;
      ExpectClose(Train(run), Single(), 1e-10, ToText(run));
    }
  }
}

TEST_P(ReferenceLayoutTest, RowChunksOfTheHeadDoNotMatter) {
  ReferenceRun run = Small(GetParam());
  run.model.blocks = "D";  // the head is under test; attention would be slow
  run.global_batch_size = 8;
  run.sequence_length = 520;
  run.steps = 2;
  run.micro_batch_size = 1;  // 520 rows: one chunk
  const std::vector<StepNumbers> whole = Train(run);
  run.micro_batch_size = 4;  // 2,080 rows: two chunks
  ExpectClose(Train(run), whole, 1e-10, ToText(run));
  run.tensor = 2;
  run.split_backward = true;
  ExpectClose(Train(run), whole, 1e-10, ToText(run));
}

INSTANTIATE_TEST_SUITE_P(Tied, ReferenceLayoutTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "tied" : "untied"; });

}  // namespace
}  // namespace troupe
