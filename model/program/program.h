// The stage program: everything that one rank computes, as data. It is built once (model/build.h),
// verified, printed, costed, given addresses (memory_plan.h) and prepared by a backend
// (kernels/backend/backend.h).
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

// Pieces of a chunk, run by the schedule's actions, and of the rank (kUpdate). kBackward contains
// the operations of kInputGradient and kWeightGradient in the derivative's own order; a schedule
// uses either kBackward or the two others.
enum class Piece : uint8_t {
  kUnshard,
  kForward,
  kBackward,
  kInputGradient,
  kWeightGradient,
  kReduce,
  kUpdate
};
inline constexpr int kNumPieces = 7;
const char* Name(Piece piece);

// One Hugging Face tensor inside a parameter value, as this rank stores it: rows [row_begin,
// row_begin+local_shape[0]) of the value are the slice at `global_offset` of the tensor `name`.
struct ParameterPart {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> global_shape;
  std::vector<int64_t> global_offset;
  std::vector<int64_t> local_shape;
  int64_t row_begin = 0;
  bool weight_decay = false;
};

// A parameter with its related values. If it is sharded over data axes, the master, compute copy,
// reduced gradient and optimizer states are this rank's block of rows; the other values are whole.
// A frozen one (trained_parameters.h) has no gradient and no states, and its value has the dtype
// that the compute copy of a trained one would have.
struct ParameterEntry {
  ValueId value = kNoValue;         // float32 master, or the frozen value
  ValueId compute_copy = kNoValue;  // the gathered value; == value if that is the master itself
  // If the parameter is sharded: all blocks of the compute copy. With runs, each rank of a run
  // holds one block of the whole: this rank's block. None if F and B gather the whole parameter.
  ValueId gathered = kNoValue;
  // The whole gathered copy in the compute dtype, if it is gathered in another dtype and converted
  // once per step.
  ValueId converted = kNoValue;
  // The compute copy as F, I and W read it (Unshard's output).
  ValueId unsharded = kNoValue;
  ValueId gradient = kNoValue;  // accumulator, Partial over the data axes; none if it is frozen
  // The value of the gradient's storage after Reduce; the optimizer reads it.
  ValueId reduced_gradient = kNoValue;
  // The optimizer keeps these of the parameter, each with the master's shape and placement.
  std::vector<ValueId> optimizer_states;
  std::vector<ParameterPart> parts;
  // The groups over which a sharded parameter is divided: the ranks that hold its blocks (for a
  // bank of experts without the expert axis). If data_shard is divided into runs: first the ranks
  // within a run, then those across runs, over which each of these blocks is divided again.
  struct Shards {
    CollectiveGroup group;
    RowCut cut;
  };
  std::vector<Shards> shards;
  bool counted_in_norm = true;  // false on ranks that hold a copy that another rank counts
  bool tied = false;            // owned by first and last stage
  // The gradient is the first or last of a bucket of gradients that are summed at once, in memory
  // order.
  bool begins_bucket = false, ends_bucket = false;

  bool trained() const { return gradient != kNoValue; }
};

// The contents of a state before the first step.
struct InitialValue {
  enum class Kind : uint8_t { kZeros, kOnes, kNormal } kind = Kind::kZeros;
  double std = 0;  // the standard deviation, for kNormal, whose mean is 0
};

// In the order in which checkpoints list them.
enum class StateKind : uint8_t {
  kWeight,
  kOptimizer,
  kRouterBias,    // the bias of a block E that balances without a loss
  kAmaxHistory,   // the last steps' amax values for delayed scaling, the latest first; 0: none yet
  kAppliedSteps,  // Program::applied_steps
};
// The name of Program::applied_steps in checkpoints.
inline constexpr char kAppliedStepsTensor[] = "optimizer.applied_steps";

// A value that outlives a step: checkpoints store it, unless it is frozen. Initial values, places
// in memory, loads and saves are loops over Program::states, which has one row for each.
struct State {
  StateKind kind = StateKind::kWeight;
  ValueId value = kNoValue;
  // The tensor's name in checkpoints. A state that belongs to a parameter holds the parameter's
  // parts, with this prefix before their names: "" for the weights, "exp_avg.".
  std::string name;
  int parameter = -1;  // index in Program::parameters, or none
  InitialValue initial;
};

// A channel of samples (base/sample_schema.h) and the value that holds it. The value has one row
// for each of the rank's tokens (for the tokens of whole samples if the schema requires that), or
// for each sample.
struct ChannelInput {
  std::string channel;  // "tokens"
  ValueId value = kNoValue;
};

// The values of one chunk that the executor reads and writes.
struct ChunkInterface {
  int chunk = 0;                       // global chunk number
  std::vector<ChannelInput> channels;  // the channels that the chunk reads, in order of creation
  ValueId input = kNoValue;            // received boundary activation; none on the first chunk
  ValueId output = kNoValue;           // sent boundary activation; none on the last chunk
  // Received and sent in B; none on the last and the first chunk, and where all parameters of the
  // chunks below are frozen.
  ValueId output_gradient = kNoValue;
  ValueId input_gradient = kNoValue;

  // The value of `channel`; kNoValue if the chunk does not read it.
  ValueId Input(std::string_view channel) const {
    for (const ChannelInput& read : channels) {
      if (read.channel == channel) return read.value;
    }
    return kNoValue;
  }
};

// Delayed scaling of one quantised value.
struct AmaxHistory {
  ValueId history = kNoValue;  // f[kAmaxSteps], a state
  ValueId amax = kNoValue;     // f[1], over this rank's microbatches of the step so far
};

// The memory layout of the gradients of a bucket, in elements: each begins at a multiple of
// `alignment`, and the range summed at once is padded with zeros to a multiple of `padding`, as in
// Megatron-LM's distributed optimizer. Results do not depend on it.
struct BucketLayout {
  int64_t alignment = 1;
  int64_t padding = 1;
};

struct Program {
  MeshView mesh;
  // F of one chunk may run interleaved with the backward of another (model/pair_order.h): their
  // temporaries share no memory, and every collective that can be separated from its wait is
  // asynchronous.
  bool interleaves_pairs = false;
  BucketLayout bucket;
  std::vector<Value> values;  // index = ValueId
  std::vector<ParameterEntry> parameters;
  // By kind, then (states of optimizers) by name, then in order of creation.
  std::vector<State> states;
  std::vector<ChunkInterface> chunks;  // this rank's, ordered by chunk number
  // ops[chunk index][piece]; kUpdate is in `update`.
  std::vector<std::vector<std::vector<Op>>> ops;
  std::vector<Op> update;
  std::vector<Op> initialize;  // runs after parameters are filled: compute copies

  // d[2]: {Σ weight·nll, Σ weight} of the step so far; zeroed by the executor.
  ValueId loss_totals = kNoValue;
  // d[3+E] for each block E of this rank, in order, of the step so far.
  std::vector<ValueId> router_totals;
  // f[E], one for each block of router_totals, in order; empty: no bias.
  std::vector<ValueId> router_biases;
  // With their scales, computed in Unshard: persistent.
  std::vector<ValueId> quantized_weights;
  // For delayed scaling, in the order of the values that they scale.
  std::vector<AmaxHistory> amax_histories;
  ValueId control_word = kNoValue;  // d[kControlLanes]
  // d[1], kept between steps: not 0 once a step was not finite; then no further step is applied.
  // The executor zeroes it before the first step. kNoValue: a step that is not finite does not stop
  // later ones.
  ValueId halted = kNoValue;
  ValueId learning_rate = kNoValue;  // f[1]: for the next update; the executor writes it
  // f[1]: the number of updates that changed the parameters since initialisation, for bias
  // correction. kCountStep adds 1 when a step is applied. Identical on all ranks; stored in
  // checkpoints.
  ValueId applied_steps = kNoValue;

  const std::vector<Op>& Ops(int chunk_index, Piece piece) const {
    return ops[chunk_index][static_cast<int>(piece)];
  }
  const Value& value(ValueId id) const { return values[id]; }
};

// Whether `state` is the value of a frozen parameter: checkpoints do not store it.
bool IsFrozen(const Program& program, const State& state);
// Adds a row at its place in Program::states.
void AddState(Program& program, State state);
// The tensors of checkpoints of which this rank's value of `state` holds slices.
std::vector<ParameterPart> PartsOf(const Program& program, const State& state);

// One line per value and per operation, in a stable format for golden files.
std::string ToText(const Program& program);
// One operation: "%7 = matmul(%5, %6)" with attributes.
std::string ToText(const Op& op, const Program& program);

// Rows [begin, end) of a parameter's value, all with or all without weight decay.
struct DecayRun {
  Range rows;
  bool decays = false;
};
// The rows of `entry`'s value in order; neighbouring parts with the same decay form one run. Rows
// that belong to no part are omitted.
std::vector<DecayRun> DecayRuns(const ParameterEntry& entry);

// The rank number of `mesh`'s coordinates: tensor varies fastest, then expert, context, data_shard,
// data_replicate, pipe.
int RankNumber(const MeshView& mesh);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_PROGRAM_H_
