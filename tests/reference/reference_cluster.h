// Runs a whole small training in one process: ranks are threads over loopback, stage programs run
// on the float64 reference. Layouts can be compared far below float32's rounding: a difference is
// an error of a program, not of the arithmetic.
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
  bool split_backward = false;  // input gradient and weight gradient as separate actions
};

struct StepNumbers {
  double loss = 0;
  double grad_norm = 0;
};

// Returns the numbers of each step from rank 0; terminates the process if ranks do not agree bit
// for bit, or on any error. Samples are random with weights 0, 1/2 and 1, a function of (seed,
// step, slot) alone.
std::vector<StepNumbers> Train(const ReferenceRun& run);

std::string ToText(const ReferenceRun& run);

}  // namespace troupe

#endif  // TROUPE_TESTS_REFERENCE_REFERENCE_CLUSTER_H_
