#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/confined/confined_file_system.h"
#include "base/confined/path_root.h"
#include "base/durable_write.h"
#include "base/temporary_directory.h"
#include "data/dataset_description.h"
#include "data/indexed_dataset_writer.h"
#include "data/test_files.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Row {
  explicit Row(int64_t length)
      : tokens(static_cast<size_t>(length)),
        targets(tokens),
        positions(tokens),
        documents(tokens),
        weights(tokens.size()) {}
  // Requests the channels that every dataset provides.
  SampleRow View() {
    SampleRow row;
    row.Add(channels::kTokens, tokens);
    row.Add(channels::kTargets, targets);
    row.Add(channels::kWeights, weights);
    return row;
  }
  SampleRow MaskedView() {
    SampleRow row = View();
    row.Add(channels::kPositions, positions);
    row.Add(channels::kDocuments, documents);
    return row;
  }
  bool operator==(const Row&) const = default;
  std::vector<int32_t> tokens, targets, positions, documents;
  std::vector<float> weights;
};

class DatasetTest : public ::testing::Test {
 protected:
  // Writes `documents` documents of `length` tokens. The tokens count up from 0, so that a row
  // shows its position.
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

TEST_F(DatasetTest, BeneathARootLinksAreFollowedUnlessTheyLeaveIt) {
  const std::string outside = Write("outside", 4, 10);
  const std::string root = folder_.Child("root");
  TROUPE_CHECK_OK(files_.MakeDirectory(root));
  TROUPE_CHECK_OK(files_.MakeDirectory(root + "/sets"));
  Write("root/sets/inside", 4, 10);
  for (const std::string end : {".idx", ".bin"}) {
    ASSERT_EQ(symlink(("sets/inside" + end).c_str(), (root + "/linked" + end).c_str()), 0);
    ASSERT_EQ(symlink(("../outside" + end).c_str(), (root + "/escape" + end).c_str()), 0);
  }
  ConfinedFileSystem confined(root);
  const auto open = [&](const std::string& path) {
    return Dataset::Open(
               confined,
               {.train = path, .sequence_length = 4, .global_batch_size = 1, .vocab_size = 100})
        .status();
  };
  EXPECT_TRUE(open(root + "/sets/inside").ok()) << open(root + "/sets/inside");
  EXPECT_TRUE(open(root + "/linked").ok()) << open(root + "/linked");
  for (const std::string& path :
       {root + "/escape", root + "/../outside", outside, root + "/escape.bin"}) {
    EXPECT_TRUE(LeavesRoot(open(path))) << open(path);
    EXPECT_THAT(std::string(Message(open(path))), HasSubstr(path));
  }
}

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

TEST_F(DatasetTest, StatesWhichChannelsItsRowsGiveAndOfWhatForm) {
  DatasetOptions options = Options(Write("d", 10, 3));
  const auto plain = Dataset::Open(files_, options);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(ToText(plain->channels()),
            "tokens i32 a token, targets i32 a token, weights f32 a token");
  options.document_mask = true;
  const auto masked = Dataset::Open(files_, options);
  ASSERT_TRUE(masked.ok());
  EXPECT_EQ(ToText(masked->channels()),
            "tokens i32 a token, targets i32 a token, weights f32 a token, positions i32 a token, "
            "documents i32 a token");
  const SampleSchema schema = CurrentSampleSchema();
  for (const ChannelForm& form : masked->channels()) {
    ASSERT_NE(schema.Find(form.name), nullptr) << form.name;
    EXPECT_EQ(schema.Find(form.name)->form, form);
  }
}

TEST_F(DatasetTest, FillsTheChannelsThatARowWantsAndNoOthers) {
  DatasetOptions options = Options(Write("d", 20, 5));
  options.document_mask = true;
  const auto dataset = Dataset::Open(files_, options);
  ASSERT_TRUE(dataset.ok());
  Row whole(8);
  ASSERT_TRUE(dataset->Train(1, 2, whole.MaskedView()).ok());
  for (const std::string_view alone :
       {channels::kTokens, channels::kTargets, channels::kPositions, channels::kDocuments}) {
    std::vector<int32_t> values(8, -1);
    SampleRow row;
    row.Add(alone, values);
    ASSERT_TRUE(dataset->Train(1, 2, row).ok());
    EXPECT_EQ(values, alone == channels::kTokens      ? whole.tokens
                      : alone == channels::kTargets   ? whole.targets
                      : alone == channels::kPositions ? whole.positions
                                                      : whole.documents)
        << alone;
  }
  std::vector<float> weights(8, -1);
  SampleRow row;
  row.Add(channels::kWeights, weights);
  ASSERT_TRUE(dataset->Train(1, 2, row).ok());
  EXPECT_EQ(weights, whole.weights);
}

TEST_F(DatasetTest, ADocumentMaskShowsWhereTheDocumentsOfARowBegin) {
  DatasetOptions options = Options(Write("d", 20, 5));  // the document of token t is t / 5
  options.document_mask = true;
  const auto dataset = Dataset::Open(files_, options);
  ASSERT_TRUE(dataset.ok());
  Row row(8);
  for (int64_t slot = 0; slot < 4; ++slot) {
    ASSERT_TRUE(dataset->Train(1, slot, row.MaskedView()).ok());
    for (int32_t i = 0; i < 8; ++i) {
      const int32_t begin = std::max(0, row.tokens[i] / 5 * 5 - row.tokens[0]);
      EXPECT_EQ(row.documents[i], begin) << "row at " << row.tokens[0] << " token " << i;
      EXPECT_EQ(row.positions[i], i - begin);
      EXPECT_EQ(row.weights[i], row.targets[i] % 5 == 0 ? 0.0f : 1.0f);
    }
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
        const auto dataset = Dataset::Open(files_, options);  // a new process
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
  // Sequences 2 and 7 are held out.
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

// Three datasets with tokens that identify their source: dataset d has tokens from 10'000·d.
class BlendedDatasetTest : public DatasetTest {
 protected:
  void SetUp() override {
    for (int d = 0; d < 3; ++d) {
      const std::string prefix = folder_.Child("b" + std::to_string(d));
      auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix});
      for (int document = 0; document < 10; ++document) {
        std::vector<int32_t> tokens(static_cast<size_t>(20 * (d + 1)));
        std::iota(tokens.begin(), tokens.end(), 10'000 * d + document * 20 * (d + 1));
        TROUPE_CHECK_OK((*writer)->Append(tokens));
        TROUPE_CHECK_OK((*writer)->EndDocument());
      }
      TROUPE_CHECK_OK((*writer)->Finish());
      options_.blend.push_back({prefix, kWeights[d]});
    }
  }
  std::vector<Row> Read(const Dataset& dataset, int64_t first_step, int64_t steps,
                        int64_t first_slot, int64_t slots) {
    std::vector<Row> rows;
    for (int64_t step = first_step; step < first_step + steps; ++step) {
      for (int64_t slot = first_slot; slot < first_slot + slots; ++slot) {
        rows.emplace_back(8);
        TROUPE_CHECK_OK(dataset.Train(step, slot, rows.back().View()));
      }
    }
    return rows;
  }

  static constexpr double kWeights[] = {0.2, 0.7, 0.1};
  DatasetOptions options_ = Options("");
};

TEST_F(BlendedDatasetTest, EveryPrefixHasEachDatasetWithinOneSampleOfItsWeight) {
  const auto dataset = Dataset::Open(files_, options_);
  ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
  std::array<int64_t, 3> counts{};
  int64_t places = 0;
  for (const Row& row : Read(*dataset, 1, 300, 0, 4)) {
    ++counts[static_cast<size_t>(row.tokens[0] / 10'000)];
    ++places;
    for (size_t d = 0; d < 3; ++d) {
      ASSERT_LE(
          std::abs(static_cast<double>(counts[d]) - kWeights[d] * static_cast<double>(places)),
          1.0);
    }
  }
  EXPECT_EQ(counts, (std::array<int64_t, 3>{240, 840, 120}));
  EXPECT_DOUBLE_EQ(dataset->share(1), 0.7);
}

TEST_F(BlendedDatasetTest, EveryDatasetGivesEachRowOnceInEachOfItsEpochs) {
  const auto dataset = Dataset::Open(files_, options_);
  ASSERT_TRUE(dataset.ok());
  // The datasets have 24 rows of 200 tokens, 49 of 400 and 74 of 600.
  std::array<std::map<int32_t, int>, 3> seen;
  std::array<int64_t, 3> taken{};
  for (const Row& row : Read(*dataset, 1, 300, 0, 4)) {
    const size_t d = static_cast<size_t>(row.tokens[0] / 10'000);
    ++seen[d][row.tokens[0]];
    const int64_t rows = dataset->samples_per_epoch(static_cast<int64_t>(d));
    ASSERT_EQ(rows, (std::array<int64_t, 3>{24, 49, 74})[d]);
    if (++taken[d] % rows != 0) continue;
    ASSERT_EQ(std::ssize(seen[d]), rows);
    for (const auto& [first, times] : seen[d]) ASSERT_EQ(times, taken[d] / rows);
  }
}

TEST_F(BlendedDatasetTest, AnotherProcessAnotherStepAndAnotherLayoutReadTheSame) {
  const auto whole = Dataset::Open(files_, options_);
  const std::vector<Row> expected = Read(*whole, 1, 40, 0, 4);
  // Reads from step 23, as after a resume.
  const auto resumed = Dataset::Open(files_, options_);
  const std::vector<Row> later = Read(*resumed, 23, 18, 0, 4);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), expected.begin() + 22 * 4));
  // Reads the slots of two data ranks.
  for (int64_t step = 1; step <= 40; ++step) {
    for (int64_t rank = 0; rank < 2; ++rank) {
      const std::vector<Row> half = Read(*resumed, step, 1, 2 * rank, 2);
      EXPECT_TRUE(
          std::equal(half.begin(), half.end(), expected.begin() + (step - 1) * 4 + 2 * rank));
    }
  }
  // Another batch size divides the same order.
  options_.global_batch_size = 8;
  EXPECT_EQ(Read(*Dataset::Open(files_, options_), 1, 20, 0, 8), expected);
}

TEST_F(BlendedDatasetTest, ABlendOfOneIsThatDataset) {
  options_.blend = {{options_.blend[1].path, 3.5}};
  const auto blend = Dataset::Open(files_, options_);
  const auto alone = Dataset::Open(files_, Options(options_.blend[0].path));
  ASSERT_TRUE(blend.ok() && alone.ok());
  EXPECT_EQ(Read(*blend, 1, 50, 0, 4), Read(*alone, 1, 50, 0, 4));
}

TEST_F(BlendedDatasetTest, HeldOutRowsComeFromEveryDatasetByItsWeightAndAreNotTrainedOn) {
  options_.validation_fraction = 0.3;
  const auto dataset = Dataset::Open(files_, options_);
  ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
  // Held out are 3 documents each, 60, 120 and 180 tokens: 7, 14 and 22 rows. With 14 rows at
  // weight 0.7 the blend has 20 positions, so 4 rows come from the first dataset and 2 from the
  // last.
  std::array<int64_t, 3> counts{};
  std::set<int32_t> held_out, firsts;
  Row row(8);
  for (int64_t i = 0; i < dataset->validation_samples(); ++i) {
    ASSERT_TRUE(dataset->Validation(i, row.View()).ok());
    ++counts[static_cast<size_t>(row.tokens[0] / 10'000)];
    firsts.insert(row.tokens[0]);
    held_out.insert(row.tokens.begin(), row.tokens.end());
  }
  EXPECT_NEAR(static_cast<double>(counts[1]), 14, 0);
  EXPECT_NEAR(static_cast<double>(counts[0]), 4, 1);
  EXPECT_NEAR(static_cast<double>(counts[2]), 2, 1);
  EXPECT_EQ(std::ssize(firsts), dataset->validation_samples());
  for (const Row& trained : Read(*dataset, 1, 200, 0, 4)) {
    for (const int32_t token : trained.tokens) ASSERT_FALSE(held_out.contains(token));
  }
}

TEST_F(BlendedDatasetTest, RefusesBlendsThatMeanNothing) {
  const auto refusal = [&](auto change) {
    DatasetOptions options = options_;
    change(options);
    const Status status = Dataset::Open(files_, options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  EXPECT_THAT(refusal([](auto& o) { o.train = o.blend[0].path; }), HasSubstr("are both set"));
  for (const double weight : {0.0, -1.0, std::nan(""), 1e-9}) {
    EXPECT_THAT(refusal([&](auto& o) { o.blend[2].weight = weight; }), HasSubstr("].weight"));
  }
  EXPECT_THAT(refusal([](auto& o) { o.blend.resize(257, o.blend[0]); }), HasSubstr("257 entries"));
  EXPECT_THAT(refusal([](auto& o) { o.sequence_length = 300; }), HasSubstr("b0\" has 200"));
  EXPECT_EQ(Dataset::Open(files_,
                          [&] {
                            DatasetOptions options = options_;
                            options.blend[1].path = folder_.Child("gone");
                            return options;
                          }())
                .status()
                .code(),
            StatusCode::kNotFound);
}

TEST_F(BlendedDatasetTest, RefusesOneFileOfTokensByTwoPathsAndTakesACopy) {
  const std::string path = options_.blend[0].path;
  const std::string other = folder_.Child("other");
  const auto add = [&](auto link) {
    for (const std::string end : {".idx", ".bin"}) link(path + end, other + end);
  };
  options_.blend.push_back({other, 1});
  const auto symbolic = [](const std::string& target, const std::string& name) {
    ASSERT_EQ(symlink(target.c_str(), name.c_str()), 0);
  };
  const auto hard = [](const std::string& target, const std::string& name) {
    ASSERT_EQ(link(target.c_str(), name.c_str()), 0);
  };
  for (const bool is_symbolic : {true, false}) {
    is_symbolic ? add(symbolic) : add(hard);
    const Status refused = Dataset::Open(files_, options_).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(KeyToBlame(refused), "data.blend[3].path");
    EXPECT_THAT(std::string(Message(refused)),
                HasSubstr(fmt::format("data.blend[3].path {} has the same file of tokens as "
                                      "data.blend[0].path {}",
                                      other, path)));
    for (const std::string end : {".idx", ".bin"}) ASSERT_TRUE(files_.Remove(other + end).ok());
  }
  add([](const std::string& source, const std::string& name) {
    std::filesystem::copy_file(source, name);
  });
  const auto copied = Dataset::Open(files_, options_);
  EXPECT_TRUE(copied.ok()) << copied.status();
}

TEST_F(DatasetTest, RefusesDataWithoutATargetThatCounts) {
  const std::string one_token = Write("one", 40, 1);
  DatasetOptions options = Options(one_token);
  EXPECT_TRUE(Dataset::Open(files_, options).ok()) << "without a mask each token has a target";
  options.document_mask = true;
  const auto refusal = [&](const std::string& key) {
    const Status status = Dataset::Open(files_, options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(KeyToBlame(status), key);
    return std::string(Message(status));
  };
  EXPECT_THAT(refusal("data.train"), HasSubstr(one_token + " has no target: no document"));
  const std::string long_ones = Write("long", 10, 10);
  options.train = long_ones;
  EXPECT_TRUE(Dataset::Open(files_, options).ok());
  options.validation = one_token;
  EXPECT_THAT(refusal("data.validation"), HasSubstr(one_token + " has no target"));
  options.validation.clear();
  options.train.clear();
  options.blend = {{long_ones, 1}, {one_token, 1}};
  EXPECT_THAT(refusal("data.blend[1].path"), HasSubstr(one_token + " has no target"));
}

TEST_F(DatasetTest, OneDocumentOfTwoTokensInALastRowIsATarget) {
  const std::string prefix = folder_.Child("late");
  auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix});
  for (int document = 0; document < 31; ++document) {
    const std::vector<int32_t> tokens(document < 30 ? 1u : 2u, 7);
    ASSERT_TRUE((*writer)->Append(tokens).ok());
    ASSERT_TRUE((*writer)->EndDocument().ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  DatasetOptions options = Options(prefix);
  options.document_mask = true;
  // 32 tokens are three rows of 8 targets, the last of them token 24: the pair is beyond.
  EXPECT_FALSE(Dataset::Open(files_, options).ok());
  options.sequence_length = 31;
  EXPECT_TRUE(Dataset::Open(files_, options).ok());
}

TEST_F(DatasetTest, ItsHeldOutPartNeedsATargetToo) {
  // Every second document, beginning with the first, is held out.
  const std::string prefix = folder_.Child("held");
  auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix});
  for (int document = 0; document < 40; ++document) {
    const std::vector<int32_t> tokens(document % 2 == 0 ? 1u : 10u, 7);
    ASSERT_TRUE((*writer)->Append(tokens).ok());
    ASSERT_TRUE((*writer)->EndDocument().ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  DatasetOptions options = Options(prefix);
  options.document_mask = true;
  options.validation_fraction = 0.5;
  const Status status = Dataset::Open(files_, options).status();
  EXPECT_EQ(KeyToBlame(status), "data.train");
  EXPECT_THAT(std::string(Message(status)), HasSubstr("has no target in what is held out of it"));
}

TEST_F(DatasetTest, AnErrorNamesTheKeyToBlame) {
  const std::string prefix = Write("d", 10, 10);
  DatasetOptions options = Options(folder_.Child("gone"));
  EXPECT_EQ(KeyToBlame(Dataset::Open(files_, options).status()), "data.train");
  options.train = prefix;
  options.sequence_length = 200;
  EXPECT_EQ(KeyToBlame(Dataset::Open(files_, options).status()), "training.sequence_length");
  options.sequence_length = 8;
  DatasetDescription description = {
      .tokenizer = "x", .vocab_size = 500, .end_of_document = 1, .tokens = 100};
  ASSERT_TRUE(WriteDescription(files_, prefix, description).ok());
  options.vocab_size = 499;
  EXPECT_EQ(KeyToBlame(Dataset::Open(files_, options).status()), "model.vocab_size");
  description.tokens = 99;
  ASSERT_TRUE(WriteDescription(files_, prefix, description).ok());
  EXPECT_EQ(KeyToBlame(Dataset::Open(files_, options).status()), "data.train");
  options.train = Write("e", 10, 10);
  options.validation = folder_.Child("gone");
  EXPECT_EQ(KeyToBlame(Dataset::Open(files_, options).status()), "data.validation");
}

TEST_F(DatasetTest, ADescriptionReportsAtOnceThatTheVocabularyIsTooSmall) {
  const std::string prefix = Write("d", 10, 10);
  const DatasetDescription described = {
      .tokenizer = "x", .vocab_size = 500, .end_of_document = 1, .tokens = 100};
  DatasetOptions options = Options(prefix);
  options.vocab_size = 499;
  ASSERT_TRUE(Dataset::Open(files_, options).ok());
  ASSERT_TRUE(WriteDescription(files_, prefix, described).ok());
  EXPECT_THAT(std::string(Message(Dataset::Open(files_, options).status())),
              HasSubstr("model.vocab_size 499 is below the 500 of the tokenizer"));
  options.vocab_size = 500;
  EXPECT_TRUE(Dataset::Open(files_, options).ok());
  DatasetDescription other = described;
  other.tokens = 99;
  ASSERT_TRUE(WriteDescription(files_, prefix, other).ok());
  EXPECT_THAT(std::string(Message(Dataset::Open(files_, options).status())),
              HasSubstr("tokens is 99, but"));
  ASSERT_TRUE(WriteFileDurably(files_, DescriptionPath(prefix), AsBytes("[")).ok());
  EXPECT_THAT(std::string(Message(Dataset::Open(files_, options).status())),
              HasSubstr("d.troupe.json: is no JSON object"));
  ASSERT_TRUE(WriteFileDurably(files_, DescriptionPath(prefix),
                               AsBytes("version https://git-lfs.github.com/spec/v1\n"))
                  .ok());
  EXPECT_THAT(std::string(Message(Dataset::Open(files_, options).status())),
              HasSubstr("d.troupe.json: is a Git LFS pointer"));
}

}  // namespace
}  // namespace troupe
