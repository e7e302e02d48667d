// Compares the update kernels, on the emulator, with float64.
#include "kernels/cuda/kernels/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated/launch.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/testing/testing.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {
namespace {

using emulator::Launch;

TEST(UpdateParts, CutTensorsIntoEqualPartsAndNoneOfAnEmptyOne) {
  const int64_t counts[] = {1, 0, kUpdateElements, kUpdateElements + 1};
  const std::vector<UpdatePart> parts = UpdateParts(counts);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].tensor, 0);
  EXPECT_EQ(parts[1].tensor, 2);
  EXPECT_EQ(parts[2].tensor, 3);
  EXPECT_EQ(parts[3].tensor, 3);
  EXPECT_EQ(parts[2].part, 0);
  EXPECT_EQ(parts[3].part, 1);
}

struct Tensor {
  // Aligned like tensors of an arena.
  struct alignas(16) Pack {
    float of[4];
    bool operator==(const Pack&) const = default;
  };
  explicit Tensor(int64_t count) : packs(static_cast<size_t>(count) / 4 + 1) {}
  float* data() { return packs[0].of; }
  std::vector<Pack> packs;
};

class CudaUpdate : public testing::Test {
 protected:
  CudaUpdate() {
    for (const int64_t count : counts_) {
      for (std::vector<Tensor>* tensors : {&parameters_, &means_, &squares_, &gradients_}) {
        Tensor& tensor = tensors->emplace_back(count);
        for (int64_t i = 0; i < count; ++i) {
          const double number = random_.Normal();
          tensor.data()[i] = static_cast<float>(tensors == &squares_ ? number * number : number);
        }
      }
      copies_.emplace_back(static_cast<size_t>(count + 8));
    }
  }

  void SumSquares() {
    std::vector<GradientTensor> tensors;
    for (size_t t = 0; t < counts_.size(); ++t) {
      tensors.push_back({gradients_[t].data() + begin_, counts_[t]});
    }
    std::vector<double> partial(parts_.size(), NAN);
    const SumOfSquaresTensors args = {
        tensors.data(), parts_.data(),   static_cast<int64_t>(parts_.size()),
        partial.data(), control_.data(), /*rank=*/3};
    Launch(SumOfSquares(args));
    Launch(SumOfSquaresFinish(args));
  }

  // Runs step kStep, if it is applied. The second tensor has weight decay; the first has no copy.
  void UpdateAll() {
    applied_steps_ = kStep - 1;
    Launch(CountStep(control_.data(), &applied_steps_));
    const std::vector<UpdateArgs> tensors = Tensors();
    Launch(AdamW(Args(tensors), {kBeta1, kBeta2, kEps, kDecay, kMaxNorm}));
  }

  std::vector<UpdateArgs> Tensors() {
    std::vector<UpdateArgs> tensors;
    for (size_t t = 0; t < counts_.size(); ++t) {
      tensors.push_back({parameters_[t].data(),
                         {means_[t].data(), squares_[t].data()},
                         gradients_[t].data() + begin_,
                         t == 0 ? nullptr : copies_[t].data() + begin_,
                         counts_[t],
                         t == 1});
    }
    return tensors;
  }

  UpdateTensors Args(const std::vector<UpdateArgs>& tensors) {
    return {tensors.data(),  parts_.data(), static_cast<int64_t>(parts_.size()),
            control_.data(), &kRate,        &applied_steps_};
  }

  static constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8, kDecay = 0.1, kMaxNorm = 1;
  static constexpr float kRate = 0.25, kStep = 3;
  float applied_steps_ = 0;

  TestRandom random_;
  // A part of one element, a size that is not a multiple of a pack, and several parts.
  const std::vector<int64_t> counts_ = {1, 1003, 2 * kUpdateElements + 6};
  const std::vector<UpdatePart> parts_ = UpdateParts(counts_);
  std::vector<Tensor> parameters_, means_, squares_, gradients_;
  std::vector<std::vector<BFloat16>> copies_;
  int64_t begin_ = 0;  // elements before gradients and copies
  std::vector<double> control_ = std::vector<double>(model::kControlLanes);
};

TEST_F(CudaUpdate, SquaresAddUpInFloat64) {
  control_[model::kLaneSumOfSquares] = 5;
  SumSquares();
  double expected = 5;
  for (size_t t = 0; t < counts_.size(); ++t) {
    for (int64_t i = 0; i < counts_[t]; ++i) {
      expected += std::pow(static_cast<double>(gradients_[t].data()[i]), 2);
    }
  }
  EXPECT_NEAR(control_[model::kLaneSumOfSquares], expected, 1e-12 * expected);
  EXPECT_EQ(control_[model::kLaneNonfinite], 0);
}

TEST_F(CudaUpdate, AShardOfATensorMayBeginAtAnyElement) {
  const std::vector<Tensor> parameters = parameters_, means = means_, squares = squares_;
  SumSquares();
  control_[model::kLaneWeight] = 8;
  UpdateAll();
  const std::vector<double> control = std::exchange(control_, std::vector<double>(control_.size()));
  const std::vector<Tensor> updated = std::exchange(parameters_, parameters);
  means_ = means;
  squares_ = squares;
  begin_ = 1;
  for (size_t t = 0; t < counts_.size(); ++t) {
    float* const data = gradients_[t].data();
    std::copy_backward(data, data + counts_[t], data + counts_[t] + begin_);
  }
  SumSquares();
  control_[model::kLaneWeight] = 8;
  EXPECT_NEAR(control_[model::kLaneSumOfSquares], control[model::kLaneSumOfSquares],
              1e-12 * control[model::kLaneSumOfSquares]);
  UpdateAll();
  for (size_t t = 0; t < counts_.size(); ++t) {
    Tensor whole = updated[t];
    for (int64_t i = 0; i < counts_[t]; ++i) {
      const float actual = parameters_[t].data()[i];
      ASSERT_NEAR(actual, whole.data()[i], 1e-6 * (1 + std::abs(actual))) << t << " " << i;
      if (t > 0) {
        ASSERT_EQ(copies_[t][static_cast<size_t>(i + begin_)].bits, ToBFloat16(actual).bits)
            << t << " " << i;
      }
    }
  }
}

TEST_F(CudaUpdate, WhatIsNotFiniteNamesTheRankAndChangesNothing) {
  gradients_[2].data()[kUpdateElements + 1] = INFINITY;
  SumSquares();
  EXPECT_EQ(control_[model::kLaneNonfinite], 4);
  control_[model::kLaneWeight] = 8;
  const std::vector<Tensor::Pack> before = parameters_[1].packs;
  UpdateAll();
  EXPECT_TRUE(parameters_[1].packs == before);
  EXPECT_EQ(applied_steps_, kStep - 1);
}

TEST_F(CudaUpdate, TotalsOfALossThatIsNotFiniteNameTheRank) {
  double totals[2] = {3, 2};
  Launch(ControlTotals(1, totals, control_.data()));
  EXPECT_EQ(control_[model::kLaneLoss], 3);
  EXPECT_EQ(control_[model::kLaneWeight], 2);
  EXPECT_EQ(control_[model::kLaneNonfinite], 0);
  totals[0] = NAN;
  Launch(ControlTotals(1, totals, control_.data()));
  EXPECT_EQ(control_[model::kLaneNonfinite], 2);
}

TEST_F(CudaUpdate, AJobThatHasHaltedIsChangedByNoLaterStep) {
  double halted = 0;
  SumSquares();
  control_[model::kLaneWeight] = 8;
  const std::vector<double> finite = control_;
  Launch(ControlHalt(control_.data(), &halted));
  EXPECT_EQ(control_, finite);
  // Each of these alone halts a job; the next step, although finite, is not applied.
  for (const auto& [lane, number] : std::vector<std::pair<int, double>>{
           {model::kLaneNonfinite, 2}, {model::kLaneSumOfSquares, INFINITY}}) {
    halted = 0;
    control_ = finite;
    control_[static_cast<size_t>(lane)] = number;
    Launch(ControlHalt(control_.data(), &halted));
    EXPECT_EQ(halted, 1) << lane;
    control_ = finite;
    Launch(ControlHalt(control_.data(), &halted));
    EXPECT_EQ(control_[model::kLaneHalted], 1) << lane;
    const std::vector<Tensor::Pack> before = parameters_[1].packs;
    UpdateAll();
    EXPECT_TRUE(parameters_[1].packs == before) << lane;
    EXPECT_EQ(applied_steps_, kStep - 1) << lane;
  }
}

TEST_F(CudaUpdate, AdamWIsTheFormulaWithAndWithoutDecay) {
  const std::vector<Tensor> parameters = parameters_, means = means_, squares = squares_;
  SumSquares();
  control_[model::kLaneWeight] = 8;
  const double norm = std::sqrt(control_[model::kLaneSumOfSquares]) / 8;
  const double scale = kMaxNorm / (norm + 1e-6) / 8;
  ASSERT_LT(kMaxNorm, norm);
  UpdateAll();
  EXPECT_EQ(applied_steps_, kStep);
  for (size_t t = 0; t < counts_.size(); ++t) {
    Tensor parameter = parameters[t], mean = means[t], square = squares[t];
    for (int64_t i = 0; i < counts_[t]; ++i) {
      const double g = gradients_[t].data()[i] * scale;
      const double m = kBeta1 * mean.data()[i] + (1 - kBeta1) * g;
      const double v = kBeta2 * square.data()[i] + (1 - kBeta2) * g * g;
      const double decay = t == 1 ? 1 - kRate * kDecay : 1;
      const double root = std::sqrt(v / (1 - std::pow(kBeta2, kStep))) + kEps;
      const double expected =
          parameter.data()[i] * decay - kRate * m / (1 - std::pow(kBeta1, kStep)) / root;
      const float actual = parameters_[t].data()[i];
      ASSERT_NEAR(means_[t].data()[i], m, 1e-6 * (1 + std::abs(m)));
      ASSERT_NEAR(squares_[t].data()[i], v, 1e-6 * (1 + v));
      ASSERT_NEAR(actual, expected, 1e-6 * (1 + std::abs(expected))) << t << " " << i;
      if (t > 0) {
        ASSERT_EQ(copies_[t][static_cast<size_t>(i)].bits, ToBFloat16(actual).bits);
      }
    }
  }
}

TEST_F(CudaUpdate, SgdIsTorchsFormulaWithAndWithoutMomentum) {
  SumSquares();
  control_[model::kLaneWeight] = 8;
  const double norm = std::sqrt(control_[model::kLaneSumOfSquares]) / 8;
  const double scale = kMaxNorm / (norm + 1e-6) / 8;
  for (const auto& [momentum, nesterov] :
       {std::pair(0.0, false), std::pair(0.75, false), std::pair(0.75, true)}) {
    const std::vector<Tensor> parameters = parameters_, buffers = means_;
    std::vector<UpdateArgs> tensors = Tensors();
    for (UpdateArgs& tensor : tensors) {
      if (momentum == 0) tensor.states[0] = nullptr;
      tensor.states[1] = nullptr;
    }
    Launch(Sgd(Args(tensors), {momentum, kDecay, kMaxNorm, nesterov}));
    for (size_t t = 0; t < counts_.size(); ++t) {
      Tensor before = parameters[t], buffer = buffers[t];
      for (int64_t i = 0; i < counts_[t]; ++i) {
        const double decay = t == 1 ? kDecay : 0;
        const double g = gradients_[t].data()[i] * scale + decay * before.data()[i];
        const double sum = momentum * buffer.data()[i] + g;
        const double step = nesterov ? g + momentum * sum : momentum == 0 ? g : sum;
        const double expected = before.data()[i] - kRate * step;
        const float actual = parameters_[t].data()[i];
        ASSERT_NEAR(actual, expected, 1e-6 * (1 + std::abs(expected))) << t << " " << i;
        ASSERT_NEAR(means_[t].data()[i], momentum == 0 ? buffer.data()[i] : sum,
                    1e-6 * (1 + std::abs(sum)));
        if (t > 0) {
          ASSERT_EQ(copies_[t][static_cast<size_t>(i)].bits, ToBFloat16(actual).bits);
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda
