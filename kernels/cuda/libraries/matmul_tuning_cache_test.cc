#include "kernels/cuda/libraries/matmul_tuning_cache.h"
#include "base/durable_write.h"

#include <gtest/gtest.h>

#include "base/temporary_directory.h"

namespace troupe::kernels::cuda {
namespace {

const TuningOwner kOwner = {"NVIDIA H200", 130100};
const MatmulTuningKey kForward = {{MatmulKind::kForward, true, 65536, 768, 2304}, 1 << 25};
const MatmulTuningKey kGradient = {{MatmulKind::kWeightGradient, false, 64, 1, 7}, 1 << 25};
const MatmulTuningKey kFloat8 = {
    {MatmulKind::kInputGradient, true, 64, 32, 16, Float8Scaling::kWhole}, 1 << 25};
const Algorithm kFirst = {0x12, 0, ~uint64_t{0}, 3, 4, 5, 6, 7}, kSecond = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(MatmulTunings, AreReadAsTheyWereWritten) {
  const MatmulTunings tunings = {{kForward, kFirst}, {kFloat8, kSecond}, {kGradient, kSecond}};
  const std::string text = FormatMatmulTunings(kOwner, tunings);
  EXPECT_EQ(
      text,
      "troupe matmul tuning 1\ndevice NVIDIA H200\nlibrary 130100\n"
      "forward bfloat16 rows=65536 k=768 n=2304 limit=33554432: 12 0 ffffffffffffffff 3 4 5 6 7\n"
      "input_gradient float8 rows=64 k=32 n=16 limit=33554432: 1 2 3 4 5 6 7 8\n"
      "weight_gradient float32 rows=64 k=1 n=7 limit=33554432: 1 2 3 4 5 6 7 8\n");
  EXPECT_EQ(ParseMatmulTunings(text, kOwner).value(), tunings);
  EXPECT_TRUE(ParseMatmulTunings(FormatMatmulTunings(kOwner, {}), kOwner).value().empty());
}

TEST(MatmulTunings, OfAnotherDeviceOrLibraryAreRefused) {
  const std::string text = FormatMatmulTunings(kOwner, {{kForward, kFirst}});
  EXPECT_EQ(ParseMatmulTunings(text, {"NVIDIA H100", 130100}).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(ParseMatmulTunings(text, {"NVIDIA H200", 130200}).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(MatmulTunings, EveryCutAndEveryStrangeLineIsRefused) {
  const std::string text = FormatMatmulTunings(kOwner, {{kForward, kFirst}, {kGradient, kSecond}});
  const size_t header = FormatMatmulTunings(kOwner, {}).size(),
               one = FormatMatmulTunings(kOwner, {{kForward, kFirst}}).size();
  for (size_t length = 0; length < text.size(); ++length) {
    if (length == header || length == one) continue;  // complete files with fewer entries
    EXPECT_FALSE(ParseMatmulTunings(text.substr(0, length), kOwner).ok()) << length;
  }
  const std::string known = FormatMatmulTunings(kOwner, {});
  for (const char* line : {"backward bfloat16 rows=1 k=1 n=1 limit=1: 1 2 3 4 5 6 7 8\n",
                           "forward float16 rows=1 k=1 n=1 limit=1: 1 2 3 4 5 6 7 8\n",
                           "forward float32 rows=0 k=1 n=1 limit=1: 1 2 3 4 5 6 7 8\n",
                           "forward float32 rows=1 k=-1 n=1 limit=1: 1 2 3 4 5 6 7 8\n",
                           "forward float32 rows=1 k=1 n=1x limit=1: 1 2 3 4 5 6 7 8\n",
                           "forward float32 rows=1 k=1 n=1: 1 2 3 4 5 6 7 8\n",
                           "forward float32 rows=1 k=1 n=1 limit=1: 1 2 3 4 5 6 7\n",
                           "forward float32 rows=1 k=1 n=1 limit=1: 1 2 3 4 5 6 7 g\n", "\n"}) {
    EXPECT_EQ(ParseMatmulTunings(known + line, kOwner).status().code(),
              StatusCode::kInvalidArgument)
        << line;
  }
  EXPECT_FALSE(
      ParseMatmulTunings(text + text.substr(header), kOwner).ok());  // an entry appears twice
}

TEST(MatmulTunings, AreKeptByDeviceAndLibrary) {
  EXPECT_EQ(TuningCacheFileName(kOwner), "matmul-tuning-nvidia-h200-130100.txt");
}

class MatmulTuningCacheTest : public testing::Test {
 protected:
  std::string path() const { return JoinPath(folder(), TuningCacheFileName(kOwner)); }
  std::string folder() const { return directory_.Child("tuning"); }
  std::string Text() { return ReadFile(files_, path(), 1 << 20, SymbolicLinks::kRefuse).value(); }

  PosixFileSystem files_;
  TemporaryDirectory directory_;
};

TEST_F(MatmulTuningCacheTest, KeepsWhatSeveralProcessesFind) {
  MatmulTuningCache one(files_, folder(), kOwner), other(files_, folder(), kOwner);
  EXPECT_FALSE(one.Find(kForward));
  one.Add(kForward, kFirst);
  other.Add(kGradient, kSecond);
  EXPECT_EQ(other.Find(kForward), kFirst);
  MatmulTuningCache later(files_, folder(), kOwner);
  EXPECT_EQ(later.Find(kForward), kFirst);
  EXPECT_EQ(later.Find(kGradient), kSecond);
}

TEST_F(MatmulTuningCacheTest, WritesADamagedFileAnew) {
  ASSERT_TRUE(MakeDirectories(files_, folder()).ok());
  ASSERT_TRUE(WriteFileDurably(files_, path(), AsBytes("half a li")).ok());
  MatmulTuningCache cache(files_, folder(), kOwner);
  EXPECT_FALSE(cache.Find(kForward));
  cache.Add(kForward, kFirst);
  EXPECT_EQ(Text(), FormatMatmulTunings(kOwner, {{kForward, kFirst}}));
}

TEST_F(MatmulTuningCacheTest, WithoutAFolderEntriesHoldForTheProcess) {
  MatmulTuningCache cache(files_, "", kOwner);
  cache.Add(kForward, kFirst);
  EXPECT_EQ(cache.Find(kForward), kFirst);
}

TEST_F(MatmulTuningCacheTest, ADiskThatRefusesCostsOnlyTheFile) {
  ASSERT_TRUE(WriteFileDurably(files_, folder(), AsBytes("a file where the folder would be")).ok());
  MatmulTuningCache cache(files_, folder(), kOwner);
  cache.Add(kForward, kFirst);
  EXPECT_EQ(cache.Find(kForward), kFirst);
}

}  // namespace
}  // namespace troupe::kernels::cuda
