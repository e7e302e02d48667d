// The stage program: everything one rank computes, as data. Built once (model/build.h), verified, printed, costed,
// given addresses (memory_plan.h) and prepared by a backend (kernels/backend.h).
//
// Immutable after building; thread-safe to read.
#ifndef TROUPE_MODEL_PROGRAM_PROGRAM_H_
#define TROUPE_MODEL_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/op.h"
#include "model/program/placement.h"
#include "model/program/value.h"

namespace troupe::model {

// Pieces of a chunk, run by the schedule's actions, and of the rank (kUpdate). kBackward holds the ops of
// kInputGradient and kWeightGradient in the derivative's own order; a schedule uses either it or the two apart.
enum class Piece : uint8_t { kUnshard, kForward, kBackward, kInputGradient, kWeightGradient, kReduce, kUpdate };
inline constexpr int kNumPieces = 7;
const char* Name(Piece piece);

// One Hugging Face tensor inside a parameter value, as this rank holds it: rows [row_begin, row_begin+local_shape[0])
// of the value are the slice at `global_offset` of the tensor `name`.
struct ParameterPart {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> global_shape;
  std::vector<int64_t> global_offset;
  std::vector<int64_t> local_shape;
  int64_t row_begin = 0;
  bool weight_decay = false;
};

// A parameter with its companions. Where it is sharded over data axes, master, compute copy, reduced
// gradient and optimizer states are this rank's block of rows; the rest are whole.
struct ParameterEntry {
  ValueId value = kNoValue;         // float32 master
  ValueId compute_copy = kNoValue;  // what is gathered; == value where that is the master itself
  // Where it is sharded: all blocks of the compute copy (of runs, where the ranks of one hold a block each: this rank's).
  // Of parameters that F and B gather whole: none.
  ValueId gathered = kNoValue;
  // The gathered copy in the compute dtype, where it is gathered in another and converted once a step: whole.
  ValueId converted = kNoValue;
  ValueId unsharded = kNoValue;     // the compute copy as F, I and W see it (Unshard's output)
  ValueId gradient = kNoValue;      // accumulator, Partial over the data axes
  ValueId reduced_gradient = kNoValue;  // in the same storage after Reduce: what the optimizer reads
  ValueId exp_avg = kNoValue;
  ValueId exp_avg_sq = kNoValue;
  std::vector<ParameterPart> parts;
  // Where it is sharded: the ranks over which its blocks lie (of a bank of experts not those of expert); where data_shard
  // is cut into runs those within one, and over which each of these blocks is cut once more: those across runs.
  struct Shards {
    CollectiveGroup group;
    RowCut cut;
  };
  std::vector<Shards> shards;
  bool counted_in_norm = true;      // false on ranks that hold a copy that another rank counts
  bool tied = false;                // owned by first and last stage
  // The gradient is the first or last of a bucket of gradients that are summed at once, in the order of memory.
  bool begins_bucket = false, ends_bucket = false;
  enum class Init : uint8_t { kNormal, kOnes } init = Init::kNormal;
  double init_std = 0.02;
};

// A channel of samples (base/sample_schema.h) and the value that holds it: one row of the value for each
// of the rank's tokens, those of whole samples where the schema says so, or for each sample.
struct ChannelInput {
  std::string channel;  // "tokens"
  ValueId value = kNoValue;
};

// What the executor reads and writes of one chunk.
struct ChunkInterface {
  int chunk = 0;                      // global chunk number
  std::vector<ChannelInput> channels; // those that it reads, in the order in which it was built
  ValueId input = kNoValue;           // boundary activation received; none on the first chunk
  ValueId output = kNoValue;          // boundary activation sent; none on the last chunk
  ValueId output_gradient = kNoValue; // received in B; none on the last chunk
  ValueId input_gradient = kNoValue;  // sent in B; none on the first chunk

  // The value of `channel`; kNoValue where the chunk does not read it.
  ValueId Input(std::string_view channel) const {
    for (const ChannelInput& read : channels) {
      if (read.channel == channel) return read.value;
    }
    return kNoValue;
  }
};

// The bias of a block E that balances without a loss: state beside the parameters, kept in checkpoints.
struct RouterBias {
  ValueId bias = kNoValue;  // f[E]
  ParameterPart part;
};

// Delayed scaling of one quantised value: the largest magnitudes of the last steps, state beside the parameters that is
// kept in checkpoints, and that of the present one.
struct AmaxHistory {
  ValueId history = kNoValue;  // f[kAmaxSteps], the latest first; 0: none yet
  ValueId amax = kNoValue;     // f[1], of this rank's microbatches so far
  ParameterPart part;
};

// Where the gradients of a bucket are in memory, in elements: each begins at a multiple of `alignment`, and what is
// summed at once is padded with zeros to a multiple of `padding` (facts of the field: Megatron-LM's distributed
// optimizer). Numbers do not depend on it.
struct BucketLayout {
  int64_t alignment = 1;
  int64_t padding = 1;
};

struct Program {
  MeshView mesh;
  // F of one chunk may run interleaved with the backward of another (model/pair_order.h): its
  // temporaries share no memory with theirs, and every collective that can be begun apart from its
  // wait is.
  bool interleaves_pairs = false;
  BucketLayout bucket;
  std::vector<Value> values;          // index = ValueId
  std::vector<ParameterEntry> parameters;
  std::vector<ChunkInterface> chunks; // this rank's, in schedule order of chunk number
  // ops[chunk index][piece]; kUpdate is in `update`.
  std::vector<std::vector<std::vector<Op>>> ops;
  std::vector<Op> update;
  std::vector<Op> initialize;         // after parameters are filled: compute copies

  ValueId loss_totals = kNoValue;     // d[2]: {Σ weight·nll, Σ weight} of the step so far; zeroed by the executor
  std::vector<ValueId> router_totals; // d[3+E] of each block E of this rank, in order, of the step so far
  std::vector<RouterBias> router_biases; // of the blocks of router_totals, in order; empty: no bias
  std::vector<ValueId> quantized_weights;    // with their scales, made in Unshard: persistent
  std::vector<AmaxHistory> amax_histories;   // of delayed scaling, in the order of the values that they scale
  ValueId control_word = kNoValue;    // d[kControlLanes]
  // d[1], kept from step to step: not 0 once a step was not finite, and no step is applied any more. Zeroed by the
  // executor before the first step; kNoValue: steps that are not finite stop no later ones.
  ValueId halted = kNoValue;
  ValueId learning_rate = kNoValue;   // f[1]: that of the next update; the executor writes it
  // f[1]: updates that changed the parameters since they were initial ones; what bias correction counts. AdamW adds 1 where
  // it applies a step. The same on all ranks; kept in checkpoints.
  ValueId applied_steps = kNoValue;

  const std::vector<Op>& Ops(int chunk_index, Piece piece) const {
    return ops[chunk_index][static_cast<int>(piece)];
  }
  const Value& value(ValueId id) const { return values[id]; }
};

// One line a value and an op, stable: golden files hold it.
std::string ToText(const Program& program);
// One op: "%7 = matmul(%5, %6)" with attributes.
std::string ToText(const Op& op, const Program& program);

// Rows [begin, end) of a parameter's value that decay, or do not.
struct DecayRun {
  Range rows;
  bool decays = false;
};
// The rows of `entry`'s value in order, neighbouring parts that decay alike as one run. Rows that no part has (of a
// rank that holds none) are left out.
std::vector<DecayRun> DecayRuns(const ParameterEntry& entry);

// The rank number of `mesh`'s coordinates: tensor fastest, then expert, context, data_shard, data_replicate, pipe.
int RankNumber(const MeshView& mesh);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_PROGRAM_H_
