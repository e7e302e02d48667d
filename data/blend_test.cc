#include "data/blend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace troupe {
namespace {

std::vector<int64_t> Shares(const Blend& blend) {
  std::vector<int64_t> shares;
  for (int64_t d = 0; d < blend.datasets(); ++d) shares.push_back(blend.share(d));
  return shares;
}

TEST(Blend, DecimalWeightsAreExact) {
  EXPECT_EQ(Shares(Blend({{0.7, 0.2, 0.1}})), (std::vector<int64_t>{7, 2, 1}));
  EXPECT_EQ(Shares(Blend({{3, 3, 6}})), (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(Shares(Blend({{0.000001, 0.5}})), (std::vector<int64_t>{1, 500'000}));
  EXPECT_EQ(Shares(Blend({{70, 30}})), (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(Shares(Blend({{5.5}})), (std::vector<int64_t>{1}));
}

TEST(Blend, OtherWeightsAreWithinAMillionth) {
  const std::vector<double> weights = {std::sqrt(2.0), std::exp(1.0), 1.0 / 3};
  const Blend blend(weights);
  EXPECT_EQ(blend.period(), Blend::kPeriodMax);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int64_t d = 0; d < 3; ++d) {
    EXPECT_NEAR(static_cast<double>(blend.share(d)) / static_cast<double>(blend.period()),
                weights[static_cast<size_t>(d)] / sum, std::ldexp(1, -20));
  }
}

TEST(Blend, AfterAnyNumberOfPlacesEveryDatasetIsWithinOneSampleOfItsShare) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(1 + random() % 9);
    for (double& weight : weights) weight = static_cast<double>(1 + random() % (1 + round * round));
    const Blend blend(weights);
    const int64_t places = std::min<int64_t>(2 * blend.period() + 3, 4000);
    std::vector<int64_t> counts(weights.size(), 0);
    for (int64_t place = 0; place < places; ++place) {
      for (int64_t d = 0; d < blend.datasets(); ++d) {
        const int64_t count = counts[static_cast<size_t>(d)];
        ASSERT_EQ(blend.Count(d, place), count);
        // |count - share·place| <= 1 - 1/(2D - 2), times (2D - 2)·Q.
        const int64_t twice = std::max<int64_t>(1, 2 * blend.datasets() - 2);
        ASSERT_LE(twice * std::abs(count * blend.period() - blend.share(d) * place),
                  (twice - 1) * blend.period());
      }
      const Blend::Choice choice = blend.At(place);
      ASSERT_EQ(choice.sample, counts[static_cast<size_t>(choice.dataset)]++);
    }
  }
}

TEST(Blend, PeriodsFollowEachOtherForever) {
  const Blend blend({{0.7, 0.2, 0.1}});
  for (int64_t place = 0; place < 10; ++place) {
    const Blend::Choice first = blend.At(place), later = blend.At(place + (int64_t{1} << 40) * 10);
    EXPECT_EQ(later.dataset, first.dataset);
    EXPECT_EQ(later.sample, first.sample + (int64_t{1} << 40) * blend.share(first.dataset));
  }
}

TEST(Blend, ManyUnequalDatasetsKeepTheBoundOverAWholePeriod) {
  std::vector<double> weights;
  for (int d = 0; d < 24; ++d) weights.push_back(std::exp(0.37 * d));
  const Blend blend(weights);
  ASSERT_EQ(blend.period(), Blend::kPeriodMax);
  for (int64_t place = 0; place <= blend.period(); place += 997) {
    for (int64_t d = 0; d < blend.datasets(); ++d) {
      const double ideal = static_cast<double>(blend.share(d)) * static_cast<double>(place) /
                           static_cast<double>(blend.period());
      ASSERT_LT(std::abs(static_cast<double>(blend.Count(d, place)) - ideal), 1.0);
    }
  }
}

}  // namespace
}  // namespace troupe
