#include "tests/simulation/truth.h"

#include <utility>

#include "base/random.h"

namespace troupe::simulation {
namespace {

constexpr size_t kKeptViolations = 20;

uint64_t MixBits(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9E3779B97F4A7C15 + b;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t Gradient(uint64_t seed, int64_t step, int rank, int ranks) {
  uint64_t sum = 0;
  for (int slot = rank; slot < kSlots; slot += ranks) {
    sum += MixBits(MixBits(seed, static_cast<uint64_t>(step)), static_cast<uint64_t>(slot));
  }
  return sum;
}

uint64_t InitialState(uint64_t seed) { return MixBits(seed, 0x696E6974); }

uint64_t NextState(uint64_t state, int64_t step, uint64_t gradient) {
  return MixBits(MixBits(state, static_cast<uint64_t>(step)), gradient);
}

double Loss(uint64_t seed, int64_t step) {
  return static_cast<double>(MixBits(seed, static_cast<uint64_t>(step)) >> 44);
}

uint64_t Truth::State(uint64_t seed, int64_t step) {
  std::vector<uint64_t>& states = states_[seed];
  if (states.empty()) states.push_back(InitialState(seed));
  while (static_cast<int64_t>(states.size()) <= step) {
    const auto next = static_cast<int64_t>(states.size());
    states.push_back(NextState(states.back(), next, Gradient(seed, next, 0, 1)));
  }
  return states[static_cast<size_t>(step)];
}

void Truth::Add(int invariant, std::string what) {
  if (violations_.size() < kKeptViolations) violations_.push_back({invariant, std::move(what)});
}

}  // namespace troupe::simulation
