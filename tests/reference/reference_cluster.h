// A whole small training run in one process: ranks as threads over loopback, stage programs on the
// float64 reference. Layouts can be compared far below float32's rounding: what differs is an error
// of a program, not of arithmetic.
#ifndef TROUPE_TESTS_REFERENCE_REFERENCE_CLUSTER_H_
#define TROUPE_TESTS_REFERENCE_REFERENCE_CLUSTER_H_

#include <string>
#include <vector>

#include "model/build.h"

namespace troupe {

struct ReferenceRun {
  model::ModelConfig model;
  int data = 1, tensor = 1, pipe = 1;
  int64_t global_batch_size = 8;  // samples
  int64_t micro_batch_size = 1;   // samples
  int64_t sequence_length = 6;    // tokens
  int steps = 3;
  uint64_t seed = 1;
  double max_norm = 1.0;
  int64_t bucket_elements = 40'000'000;
  bool fuse = true;
  bool split_backward = false;  // I and W apart
};

struct StepNumbers {
  double loss = 0;
  double grad_norm = 0;
};

// The numbers of each step as rank 0 sees them; fails the process where ranks do not agree bit for
// bit, or on any error. Samples are random with weights 0, 1/2 and 1, a function of (seed, step,
// slot) alone.
std::vector<StepNumbers> Train(const ReferenceRun& run);

std::string ToText(const ReferenceRun& run);

}  // namespace troupe

#endif  // TROUPE_TESTS_REFERENCE_REFERENCE_CLUSTER_H_
