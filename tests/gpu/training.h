// Training steps of a preset on one device with the product's plan, program and executor, without
// coordinator, worker daemon and job file.
#ifndef TROUPE_TESTS_GPU_TRAINING_H_
#define TROUPE_TESTS_GPU_TRAINING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/backend/backend.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct TrainingOptions {
  std::string preset = "llama-124m";
  std::string pattern;          // replaces the preset's model.pattern; empty: the preset's
  std::string devices = "cpu";  // devices of the backend: "cpu" or "cuda"
  int64_t batch = 64;           // samples of a step
  int64_t micro_batch = 64;
  int64_t sequence = 1024;
  int64_t steps = 20;
  double learning_rate = 3e-4;
  std::string dtype = "bfloat16";
  std::string float8 = "none";  // training.float8.recipe of a job file
  uint64_t seed = 1234;
  std::string data;  // a path as in data.train; empty: synthetic tokens
};

struct TrainingStep {
  int64_t step = 0;
  double loss = 0;  // nats per token
  double grad_norm = 0;
  int64_t tokens = 0;
  // From its begin, or from the end of the previous step if that was later, to its end.
  double seconds = 0;
  double flops = 0;  // model FLOPs
};

// Returns the complete job that the options state. Returns INVALID_ARGUMENT, which names the
// option, for an invalid one. REQUIRES: `options.data` is not empty. It is not opened.
StatusOr<v1::JobSpec> BareTrainingJob(const TrainingOptions& options);

// Reports each step to `report`. Returns INVALID_ARGUMENT, which names the option, for an invalid
// one; errors of backend and data.
Status Train(kernels::Backend& backend, FileSystem& files, const TrainingOptions& options,
             const std::function<void(const TrainingStep&)>& report);

// Writes a token file (data/llmc_token_file.h) of `tokens` ids below `vocabulary`. Three in four
// ids are determined by the previous one, which a model learns, so that its loss falls.
// Deterministic in the seed.
Status WriteSyntheticTokens(FileSystem& files, const std::string& path, int64_t tokens,
                            int64_t vocabulary, uint64_t seed);

}  // namespace troupe

#endif  // TROUPE_TESTS_GPU_TRAINING_H_
