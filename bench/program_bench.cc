#include "bench/program_bench.h"

#include <algorithm>

#include "plan/job/job_defaults.h"
#include "plan/validate/decoded_job.h"

namespace troupe::bench {

clockid_t timing_clock = CLOCK_MONOTONIC;

double Now() {
  timespec now;
  clock_gettime(timing_clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void AddCpuTimeFlag(FlagParser& parser) {
  parser.AddParsed(
      {"--cpu-time", "",
       "measures CPU time instead of wall-clock time: for one thread on a busy machine"},
      [](const std::string&) {
        timing_clock = CLOCK_PROCESS_CPUTIME_ID;
        return OkStatus();
      });
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

StatusOr<model::ModelConfig> ConfigOf(const std::string& preset) {
  if (!IsKnownPreset(preset))
    return InvalidArgument("model is \"{}\", not one of {}", preset, KnownPresets());
  v1::JobSpec spec;
  spec.mutable_model()->set_preset(preset);
  ApplyDefaults(&spec);
  return MakeModelConfig(spec.model());
}

}  // namespace troupe::bench
