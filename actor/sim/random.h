// The random stream of one simulation: one seed decides every choice that is otherwise left open.
#ifndef TROUPE_ACTOR_SIM_RANDOM_H_
#define TROUPE_ACTOR_SIM_RANDOM_H_

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"

namespace troupe {

class SeededRandom {
 public:
  SeededRandom(uint64_t seed, std::string_view purpose) : key_(RandomKey(seed, purpose)) {}

  uint64_t Bits() { return UniformBits(key_, index_++); }
  // Uniform in [0, bound). REQUIRES: bound > 0. The modulo bias is below 2^-32 for the bounds in
  // use.
  uint64_t Below(uint64_t bound) { return Bits() % bound; }
  // Uniform in [low, high]. REQUIRES: low <= high.
  Duration Between(Duration low, Duration high) {
    return low +
           Duration(static_cast<int64_t>(Below(static_cast<uint64_t>((high - low).count()) + 1)));
  }
  bool Chance(double probability) {
    return static_cast<double>(Bits() >> 11) * 0x1.0p-53 < probability;
  }

 private:
  uint64_t key_;
  uint64_t index_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_RANDOM_H_
