#include "kernels/cuda/libraries/tuned_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/temporary_directory.h"
#include "kernels/cuda/runtime/device_loss.h"

namespace troupe::kernels::cuda {
namespace {

const TuningOwner kAttentionOwner = {"NVIDIA H200", 91900};
const LibraryAttentionShape kShape = {true, 64, 1024, 12, 12, 64};
const LibraryAttentionShape kAbsent = {false, 64, 1024, 12, 12, 64};

template <typename Args>
class NoAttention : public LibraryAttentionOf<Args> {
 public:
  int64_t workspace_bytes() const override { return 0; }
  std::string implementation() const override { return "a library"; }
  Status Enqueue(const Args&, void*, Stream) override { return Internal("it is called"); }
};

// Supports bfloat16 only.
class BfloatLibrary : public AttentionLibrary {
 public:
  StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) override {
    if (!shape.bfloat16) return nullptr;
    return std::make_unique<NoAttention<AttentionArgs>>();
  }
  StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(
      const LibraryAttentionShape& shape) override {
    if (!shape.bfloat16) return nullptr;
    return std::make_unique<NoAttention<AttentionGradArgs>>();
  }
};

// Returns the seconds that the test sets, and counts the calls.
class StatedTiming : public AttentionTiming {
 public:
  StatusOr<AttentionSeconds> Time(const LibraryAttentionShape&, LibraryAttention&) override {
    ++times;
    return forward;
  }
  StatusOr<AttentionSeconds> Time(const LibraryAttentionShape&, LibraryAttentionGrad&) override {
    ++times;
    return gradient;
  }

  StatusOr<AttentionSeconds> forward = AttentionSeconds{.library = 1, .own = 2};
  StatusOr<AttentionSeconds> gradient = AttentionSeconds{.library = 2, .own = 1};
  int times = 0;
};

class TunedAttentionTest : public testing::Test {
 protected:
  TunedAttention Make(AttentionTiming* timing) {
    return TunedAttention(library_, timing, files_,
                          {.tuning_cache_folder = folder(), .owner = kAttentionOwner});
  }
  std::string folder() const { return directory_.Child("tuning"); }
  std::string path() const { return JoinPath(folder(), "attention-tuning-nvidia-h200-91900.txt"); }
  bool IsKept() { return files_.Stat(path(), SymbolicLinks::kRefuse).ok(); }

  BfloatLibrary library_;
  StatedTiming timing_;
  PosixFileSystem files_;
  TemporaryDirectory directory_;
};

TEST_F(TunedAttentionTest, IsTheQuickerOneForwardAndGradientApart) {
  TunedAttention tuned = Make(&timing_);
  EXPECT_NE(tuned.Prepare(kShape).value(), nullptr);
  EXPECT_EQ(tuned.PrepareGrad(kShape).value(), nullptr);
  EXPECT_EQ(timing_.times, 2);
  EXPECT_EQ(ReadFile(files_, path(), 1 << 20, SymbolicLinks::kRefuse).value(),
            "troupe attention tuning 1\ndevice NVIDIA H200\nlibrary 91900\n"
            "forward bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64: library\n"
            "gradient bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64: own\n");
}

TEST_F(TunedAttentionTest, IsTheSameInTheNextProcessWhateverTimingWouldShow) {
  TunedAttention first = Make(&timing_);
  EXPECT_NE(first.Prepare(kShape).value(), nullptr);
  EXPECT_EQ(first.PrepareGrad(kShape).value(), nullptr);
  EXPECT_EQ(first.tuning_cache_hits(), 0);
  std::swap(timing_.forward, timing_.gradient);
  TunedAttention next = Make(&timing_);
  EXPECT_NE(next.Prepare(kShape).value(), nullptr);
  EXPECT_EQ(next.PrepareGrad(kShape).value(), nullptr);
  EXPECT_EQ(timing_.times, 2);
  EXPECT_EQ(next.tuning_cache_hits(), 2);
}

TEST_F(TunedAttentionTest, WithoutTimingIsTheLibraryAndNothingIsKept) {
  TunedAttention tuned = Make(nullptr);
  EXPECT_NE(tuned.PrepareGrad(kShape).value(), nullptr);
  timing_.gradient = ResourceExhausted("10 bytes cannot be had");
  TunedAttention cramped = Make(&timing_);
  EXPECT_NE(cramped.PrepareGrad(kShape).value(), nullptr);
  EXPECT_FALSE(IsKept());
}

TEST_F(TunedAttentionTest, OfWhatTheLibraryDoesNotHaveIsNotTimed) {
  TunedAttention tuned = Make(&timing_);
  EXPECT_EQ(tuned.Prepare(kAbsent).value(), nullptr);
  EXPECT_EQ(tuned.PrepareGrad(kAbsent).value(), nullptr);
  EXPECT_EQ(timing_.times, 0);
  EXPECT_FALSE(IsKept());
}

TEST_F(TunedAttentionTest, IsOurOwnWhereTheLibraryDoesNotRunWhatItPrepared) {
  timing_.forward = Internal("cuDNN: CUDNN_STATUS_EXECUTION_FAILED");
  TunedAttention tuned = Make(&timing_);
  const auto prepared = tuned.Prepare(kShape);
  ASSERT_TRUE(prepared.ok()) << ToString(prepared.status());
  EXPECT_EQ(*prepared, nullptr);
  EXPECT_FALSE(IsKept());
}

TEST_F(TunedAttentionTest, AnErrorOfTheDeviceIsNotCached) {
  timing_.forward = WithDeviceLoss(Internal("an illegal address"), "cudaErrorIllegalAddress");
  TunedAttention tuned = Make(&timing_);
  EXPECT_EQ(tuned.Prepare(kShape).status().code(), StatusCode::kInternal);
  EXPECT_FALSE(IsKept());
}

TEST(AttentionTuning, AreOfKnownShapesAlone) {
  const TuningKind kind = AttentionTuning();
  const std::string key = "forward " + ShapeText(kShape);
  EXPECT_TRUE(kind.is_entry(key, "library"));
  EXPECT_TRUE(kind.is_entry("gradient " + ShapeText(kAbsent), "own"));
  EXPECT_FALSE(kind.is_entry(key, "cuDNN"));
  EXPECT_FALSE(kind.is_entry(key + "0x", "own"));
  EXPECT_FALSE(kind.is_entry(ShapeText(kShape), "own"));
  EXPECT_FALSE(kind.is_entry("forward " + ShapeText({true, 0, 1024, 12, 12, 64}), "own"));
  for (size_t length = 0; length < key.size() - 1; ++length) {
    EXPECT_FALSE(kind.is_entry(key.substr(0, length), "own")) << length;
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda
