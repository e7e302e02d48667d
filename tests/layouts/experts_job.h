// A small MoE model under any layout, for the tests of this folder.
#ifndef TROUPE_TESTS_LAYOUTS_EXPERTS_JOB_H_
#define TROUPE_TESTS_LAYOUTS_EXPERTS_JOB_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "troupe/v1/job.pb.h"

namespace troupe {

struct Spread {
  int expert = 1;
  int data = 1;
  int pipe = 1;
  int tensor = 1;
  int context = 1;
  int shard = 1;
  int zero_stage = 3;        // for shard > 1
  bool over_tensor = false;  // experts spread over expert × tensor
  bool by_rows = false;      // sequence parallelism; always with tensor and expert
  bool gathers = false;      // expert_dispatch: all_gather
  const char* schedule = "1F1B";
  bool ring = false;        // context_parallel_method, else all_to_all
  int key_value_heads = 4;  // the model has 4 query heads

  int ranks() const { return expert * data * pipe * tensor * context * shard; }
};

// Returns a name such as "Expert2Tensor2Rows".
std::string NameOf(const Spread& spread);
void PrintTo(const Spread& spread, std::ostream* out);

// Returns a job with two MoE blocks, each with eight experts of width 48, two per token, and one
// shared expert, with auxiliary and z losses.
v1::JobSpec Mixture(const Spread& spread, int64_t steps = 20);

// The layouts under which the mixture is compared with one rank.
std::vector<Spread> MixturesOfOneAxis();
std::vector<Spread> MixturesOfTwoAxes();
std::vector<Spread> MixturesOfEightRanks();
std::vector<Spread> MixturesThatGather();
std::vector<Spread> MixturesBySchedule();
std::vector<Spread> MixturesOnRings();

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_EXPERTS_JOB_H_
