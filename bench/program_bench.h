// Functions shared by the benchmarks of kernels and of whole steps.
#ifndef TROUPE_BENCH_PROGRAM_BENCH_H_
#define TROUPE_BENCH_PROGRAM_BENCH_H_

#include <time.h>

#include <string>
#include <vector>

#include "base/flag_parser.h"
#include "base/status.h"
#include "model/blocks/config.h"

namespace troupe::bench {

// CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID to time one thread on a busy machine.
extern clockid_t timing_clock;
double Now();  // seconds on timing_clock
// Adds --cpu-time, which sets timing_clock.
void AddCpuTimeFlag(FlagParser& parser);

double Median(std::vector<double> values);

// Returns the configuration of a preset of model.preset.
StatusOr<model::ModelConfig> ConfigOf(const std::string& preset);

}  // namespace troupe::bench

#endif  // TROUPE_BENCH_PROGRAM_BENCH_H_
