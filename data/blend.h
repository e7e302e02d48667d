// Decides which of several weighted datasets provides the sample at each position of training: a
// pure function of the weights and the position.
//
// Definition. The weights become integer shares q_d of a period Q = Σ q_d. If the weights are
// decimal numbers with at most six decimal places, and their smallest integer multiples sum to at
// most 2^20, the shares are these multiples (0.7, 0.2, 0.1 become 7, 2, 1 of 10). Otherwise they
// are the shares of Q = 2^20 by largest remainders, which is within 2^-20 of the weights.
//
// Within a period the choice is Tijdeman's ("The chairman assignment problem", Discrete Mathematics
// 32, 1980). Let c_d be the number of earlier choices of dataset d. At position n = 1 … Q, among
// the datasets with q_d·n/Q - c_d >= 1/(2D - 2), the choice is the one with the least (1 - 1/(2D -
// 2) - (q_d·n/Q - c_d))·Q/q_d, the first one in a tie. After any number of positions every dataset
// has therefore been chosen within 1 - 1/(2D - 2), less than one sample, of its share, and after
// each period exactly; the periods repeat. The k-th choice of a dataset is its k-th sample.
//
// A table of one period, at most 2^20 choices of 2 bytes, makes any position a look-up: no state is
// carried from step to step. Immutable, thread-safe; copies share the table.
#ifndef TROUPE_DATA_BLEND_H_
#define TROUPE_DATA_BLEND_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

class Blend {
 public:
  static constexpr int64_t kPeriodMax = int64_t{1} << 20;
  static constexpr int64_t kDatasetsMax = 256;

  // REQUIRES: 1 to kDatasetsMax weights, each finite, above 0 and at least 1 / kPeriodMax of their
  // sum.
  explicit Blend(std::span<const double> weights);

  int64_t datasets() const { return static_cast<int64_t>(table_->shares.size()); }
  int64_t period() const { return table_->period; }
  // Returns the number of choices of `dataset` in one period.
  int64_t share(int64_t dataset) const { return table_->shares[static_cast<size_t>(dataset)]; }

  struct Choice {
    int64_t dataset;
    int64_t sample;  // number of earlier choices of the dataset
  };
  // REQUIRES: place >= 0.
  Choice At(int64_t place) const;

  // Returns how often `dataset` is chosen at positions [0, places). REQUIRES: places >= 0.
  int64_t Count(int64_t dataset, int64_t places) const;

 private:
  struct Table {
    int64_t period = 0;
    std::vector<int64_t> shares;
    std::vector<uint16_t> choices;  // the choices of one period
    std::vector<int32_t> counts;    // [b·D + d]: choices of d before position b·kBlock
  };

  std::shared_ptr<const Table> table_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_BLEND_H_
