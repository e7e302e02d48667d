#include "data/blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/check.h"

namespace troupe {
namespace {

// Positions per row of counts: one look-up counts at most this many choices.
constexpr int64_t kBlock = 256;

// Returns the smallest integer multiples of the weights if they are decimal numbers.
std::optional<std::vector<int64_t>> DecimalShares(std::span<const double> weights) {
  for (double scale = 1; scale <= 1e6; scale *= 10) {
    std::vector<int64_t> shares;
    for (const double weight : weights) {
      const double scaled = weight * scale;
      const double whole = std::nearbyint(scaled);
      if (whole < 1 || whole > 1e12 || std::abs(scaled - whole) > 1e-12 * whole) break;
      shares.push_back(static_cast<int64_t>(whole));
    }
    if (shares.size() < weights.size()) continue;
    int64_t divisor = 0;
    for (const int64_t share : shares) divisor = std::gcd(divisor, share);
    int64_t period = 0;
    for (int64_t& share : shares) period += share /= divisor;
    if (period > Blend::kPeriodMax) return std::nullopt;
    return shares;
  }
  return std::nullopt;
}

std::vector<int64_t> RoundedShares(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = weight / sum * static_cast<double>(Blend::kPeriodMax);
    shares.push_back(std::max<int64_t>(1, static_cast<int64_t>(exact)));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t left =
      Blend::kPeriodMax - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  TROUPE_CHECK(left >= 0 && left <= std::ssize(order), "{} places are left", left);
  for (int64_t i = 0; i < left; ++i) ++shares[order[static_cast<size_t>(i)]];
  return shares;
}

}  // namespace

Blend::Blend(std::span<const double> weights) {
  TROUPE_CHECK(!weights.empty() && std::ssize(weights) <= kDatasetsMax);
  auto table = std::make_shared<Table>();
  const auto decimal = DecimalShares(weights);
  table->shares = decimal.has_value() ? *decimal : RoundedShares(weights);
  const std::vector<int64_t>& shares = table->shares;
  const int64_t datasets = std::ssize(shares);
  const int64_t period = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  table->period = period;
  table->choices.reserve(static_cast<size_t>(period));

  // Each dataset's lag behind its share, multiplied by Q so that it is an integer.
  std::vector<int64_t> lags(shares.size(), 0);
  std::vector<int32_t> counts(shares.size(), 0);
  const int64_t twice = 2 * datasets - 2;
  for (int64_t place = 0; place < period; ++place) {
    if (place % kBlock == 0) {
      table->counts.insert(table->counts.end(), counts.begin(), counts.end());
    }
    size_t chosen = 0;
    int64_t least = 0;  // slack of `chosen` over its share, both times twice·Q
    bool any = false;
    for (size_t d = 0; d < shares.size(); ++d) {
      lags[d] += shares[d];
      if (datasets > 1 && twice * lags[d] < period) continue;
      const int64_t slack = (twice - 1) * period - twice * lags[d];
      if (!any || slack * shares[chosen] < least * shares[d]) {
        any = true;
        chosen = d;
        least = slack;
      }
    }
    TROUPE_CHECK(any, "no dataset lags at place {}", place);
    lags[chosen] -= period;
    ++counts[chosen];
    table->choices.push_back(static_cast<uint16_t>(chosen));
  }
  TROUPE_CHECK(std::all_of(lags.begin(), lags.end(), [](int64_t lag) { return lag == 0; }));
  table_ = std::move(table);
}

Blend::Choice Blend::At(int64_t place) const {
  TROUPE_CHECK(place >= 0);
  const int64_t dataset = table_->choices[static_cast<size_t>(place % table_->period)];
  return {dataset, Count(dataset, place)};
}

int64_t Blend::Count(int64_t dataset, int64_t places) const {
  TROUPE_CHECK(places >= 0 && dataset >= 0 && dataset < datasets());
  const int64_t within = places % table_->period;
  const int64_t block = within / kBlock;
  const auto choices = table_->choices.begin();
  return places / table_->period * share(dataset) +
         table_->counts[static_cast<size_t>(block * datasets() + dataset)] +
         std::count(choices + block * kBlock, choices + within, static_cast<uint16_t>(dataset));
}

}  // namespace troupe
