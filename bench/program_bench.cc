#include "bench/program_bench.h"

#include <algorithm>

#include "model/blocks/pattern.h"

namespace troupe::bench {

clockid_t timing_clock = CLOCK_MONOTONIC;

double Now() {
  timespec now;
  clock_gettime(timing_clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

StatusOr<model::ModelConfig> ConfigOf(const std::string& preset) {
  if (preset == "llama-124m") {
    return model::ModelConfig{
        model::ExpandPattern("(AD)x12").value(), 768, 12, 12, 64, 2048, 50304, true};
  }
  if (preset == "tiny") {
    return model::ModelConfig{
        model::ExpandPattern("(AD)x4").value(), 256, 8, 4, 32, 704, 259, false};
  }
  return InvalidArgument("model is {}, must be llama-124m or tiny", preset);
}

}  // namespace troupe::bench
