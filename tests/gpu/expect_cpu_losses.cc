#include "tests/gpu/expect_cpu_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/file_system.h"

namespace troupe {

void ExpectCpuLosses(kernels::Backend& backend, const std::string& devices,
                     const CpuLosses& recorded, int64_t steps, double tolerance) {
  TROUPE_CHECK(steps >= 1 && steps <= static_cast<int64_t>(recorded.losses.size()));
  PosixFileSystem files;
  TrainingOptions options = recorded.training;
  options.devices = devices;
  options.steps = steps;
  std::vector<double> losses;
  const Status trained = Train(backend, files, options,
                               [&](const TrainingStep& step) { losses.push_back(step.loss); });
  ASSERT_TRUE(trained.ok()) << trained;
  ASSERT_EQ(losses.size(), static_cast<size_t>(steps));
  double largest = 0;
  size_t at = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double expected = recorded.losses[i],
                 difference = std::abs(losses[i] - expected) / expected;
    // Written so that a NaN fails, too.
    ASSERT_TRUE(difference <= tolerance) << fmt::format(
        "{} in {} on {}, step {}: loss {:.9f}, the CPU's was {:.9f}; they differ by {:.2e}, "
        "allowed are {:.0e}",
        options.preset, options.dtype, devices, i + 1, losses[i], expected, difference, tolerance);
    if (difference > largest) {
      largest = difference;
      at = i;
    }
  }
  fmt::print(
      "{} in {} on {}, {} steps: loss {:.6f} to {:.6f}, at most {:.2e} from the CPU's (step {})\n",
      options.preset, options.dtype, devices, steps, losses.front(), losses.back(), largest,
      at + 1);
  std::fflush(stdout);
}

}  // namespace troupe
