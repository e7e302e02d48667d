// A small mixture model under any layout, for the tests of this folder.
#ifndef TROUPE_TESTS_LAYOUTS_EXPERTS_JOB_H_
#define TROUPE_TESTS_LAYOUTS_EXPERTS_JOB_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "troupe/v1/job.pb.h"

namespace troupe {

struct Spread {
  int expert = 1;
  int data = 1;
  int pipe = 1;
  int tensor = 1;
  int context = 1;
  int shard = 1;
  int zero_stage = 3;            // of shard > 1
  bool over_tensor = false;      // experts over expert × tensor
  bool by_rows = false;          // sequence parallelism; always beside tensor and expert
  bool gathers = false;          // expert_dispatch: all_gather
  const char* schedule = "1F1B";
  bool ring = false;             // context_parallel_method, else all_to_all
  int key_value_heads = 4;       // of 4 heads

  int ranks() const { return expert * data * pipe * tensor * context * shard; }
};

// "Expert2Tensor2Rows".
std::string NameOf(const Spread& spread);
void PrintTo(const Spread& spread, std::ostream* out);

// Eight experts of 48, two a token and one shared, with auxiliary and z losses, in two blocks E.
v1::JobSpec Mixture(const Spread& spread, int64_t steps = 20);

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_EXPERTS_JOB_H_
