// The least time and memory that the blocks of a model take on one rank, measured on one small
// program of the model. Each kind of block, and each two kinds that follow each other in the model,
// are a chunk of this program. The costs of any chunk are the sums over its blocks and over the
// junctions between them: operations that fuse across a junction, and layers that are recomputed
// up to it, are in the difference between a chunk of two blocks and two chunks of one.
//
// The program has one stage and unsharded parameters, so layouts that differ only in the degrees of
// pipe, data_shard and data_replicate share it. Pure.
#ifndef TROUPE_PLAN_SEARCH_BLOCK_COSTS_H_
#define TROUPE_PLAN_SEARCH_BLOCK_COSTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "model/program/program.h"
#include "plan/search/work.h"
#include "plan/validate/decoded_job.h"

namespace troupe {

struct ChunkCosts {
  Work forward, backward;  // work of one microbatch; I and W together
  double saved_bytes = 0;  // between F and B of one microbatch
  double elements = 0;     // elements of its parameters on one tensor and expert rank
  double tensors = 0;      // parameters that are gathered and reduced one by one
  ChunkCosts& operator+=(const ChunkCosts& other);
  ChunkCosts operator-(const ChunkCosts& other) const;
  ChunkCosts operator*(double factor) const;
};

class BlockCosts {
 public:
  // INVALID_ARGUMENT where the program cannot be built. REQUIRES: ValidateJobSpec
  // accepts the job.
  static StatusOr<BlockCosts> Measure(const DecodedJob& job, const LeastSeconds& seconds);

  // The costs of a chunk with the blocks `letters`. Its table of the head is counted even where it
  // is tied to the embedding's.
  ChunkCosts Of(std::string_view letters, bool has_embedding, bool has_head) const;

 private:
  // The same from one program. `context`: the ranks of context among which it communicates.
  static StatusOr<BlockCosts> MeasureWhole(const DecodedJob& job, int context,
                                           const LeastSeconds& seconds);

  std::map<char, ChunkCosts> alone_;
  // The costs of a chunk of two blocks less those of two chunks of one; mostly below 0.
  std::map<std::pair<char, char>, ChunkCosts> junctions_;
  // The costs that these add to the first and to the last chunk.
  ChunkCosts embedding_, head_;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_BLOCK_COSTS_H_
