// The parameters that a job trains; the others are frozen: they have no gradient, no optimizer
// states and no float32 master, and keep the values with which the job began.
#ifndef TROUPE_MODEL_PROGRAM_TRAINED_PARAMETERS_H_
#define TROUPE_MODEL_PROGRAM_TRAINED_PARAMETERS_H_

#include <set>
#include <string>
#include <vector>

namespace troupe::model {

struct TrainedParameters {
  // Over Hugging Face names (MatchesGlob in model/program/weight_decay.h); empty: all are trained.
  std::vector<std::string> globs;
  // With globs: the blocks that have a trained parameter; -1 is the embedding, and the number of
  // blocks is the head.
  std::set<int> blocks;

  // Nothing is trained: a bound of costs, which no job can state.
  static TrainedParameters None();

  bool Includes(const std::string& name) const;
  // Whether the embedding, block or head has a trained parameter.
  bool Trains(int block) const { return globs.empty() || blocks.contains(block); }
  // Whether the embedding or a block before `block` has one: if not, the input of `block` needs no
  // gradient.
  bool TrainsBefore(int block) const {
    return globs.empty() || (!blocks.empty() && *blocks.begin() < block);
  }
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_TRAINED_PARAMETERS_H_
