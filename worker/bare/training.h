// Training steps of a preset on one device: the plan, the program and the executor of the product, without coordinator,
// worker daemon and job file.
#ifndef TROUPE_WORKER_BARE_TRAINING_H_
#define TROUPE_WORKER_BARE_TRAINING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/backend.h"

namespace troupe {

struct TrainingOptions {
  std::string preset = "llama-124m";
  std::string pattern;  // model.pattern in place of the preset's; empty: the preset's
  std::string devices = "cpu";  // what the backend computes on: "cpu" or "cuda"
  int64_t batch = 64;  // samples of a step
  int64_t micro_batch = 64;
  int64_t sequence = 1024;
  int64_t steps = 20;
  double learning_rate = 3e-4;
  std::string dtype = "bfloat16";
  std::string float8 = "none";  // training.float8.recipe of a job file
  uint64_t seed = 1234;
  std::string data;  // a path that data.train takes; empty: synthetic tokens
};

struct TrainingStep {
  int64_t step = 0;
  double loss = 0;  // nats a token
  double grad_norm = 0;
  int64_t tokens = 0;
  double seconds = 0;  // from its begin, or from the end of the step before where that was later, to its end
  double flops = 0;  // model FLOPs
};

// Tells `report` of each step. INVALID_ARGUMENT naming the option that cannot be; errors of backend and data.
Status Train(kernels::Backend& backend, FileSystem& files, const TrainingOptions& options,
             const std::function<void(const TrainingStep&)>& report);

// Writes a token file (data/llmc_token_file.h) of `tokens` ids below `vocabulary`, of which three in four follow from the
// one before: a model learns that, so that its loss falls. The same for the same seed.
Status WriteSyntheticTokens(FileSystem& files, const std::string& path, int64_t tokens, int64_t vocabulary,
                            uint64_t seed);

}  // namespace troupe

#endif  // TROUPE_WORKER_BARE_TRAINING_H_
