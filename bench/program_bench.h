// What the benchmarks of kernels and of whole steps share.
#ifndef TROUPE_BENCH_PROGRAM_BENCH_H_
#define TROUPE_BENCH_PROGRAM_BENCH_H_

#include <time.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/backend.h"
#include "model/config.h"
#include "model/program/program.h"

namespace troupe::bench {

// CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID: what one thread takes on a busy machine.
extern clockid_t timing_clock;
double Now();  // seconds on it

double Median(std::vector<double> values);

// llama-124m or tiny.
StatusOr<model::ModelConfig> ConfigOf(const std::string& preset);

using KeepOp = std::function<bool(const model::Op&)>;
// The same values, of the ops those that `keep` wants.
model::Program OnlyOps(const model::Program& program, const KeepOp& keep);

// Small normal numbers in the values of the program's ops; integers from 0 to 127.
void FillRandomly(kernels::Executable& executable, const model::Program& program);

}  // namespace troupe::bench

#endif  // TROUPE_BENCH_PROGRAM_BENCH_H_
