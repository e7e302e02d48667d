// Dropout of what a block adds to the residual, and of the embedding.
#ifndef TROUPE_MODEL_BLOCKS_DROPOUT_H_
#define TROUPE_MODEL_BLOCKS_DROPOUT_H_

#include <cstdint>
#include <string>

#include "model/program/builder.h"

namespace troupe::model {

struct DropoutPolicy {
  double probability = 0;  // 0: none
  uint64_t seed = 0;
  int64_t tokens = 0;  // of a whole sample
};

// x c[R,H], as between products, with some elements 0 and the rest scaled; x itself without dropout.
// `where` ("block3") names the value and, with the seed, the draws: values of one name have the same
// elements dropped, so that two of them that are added up are dropped as their sum.
// REQUIRES: the present chunk has `samples`, if anything is dropped.
ValueId Drop(ProgramBuilder& builder, const DropoutPolicy& policy, const std::string& where,
             ValueId x);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_DROPOUT_H_
