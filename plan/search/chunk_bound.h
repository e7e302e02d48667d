// Lower bounds on the time and memory of one chunk under a layout, computed from the model's
// dimensions only. Each term is an operation, a transfer or a value that the chunk's program cannot
// avoid, at the cost that the planner assigns to it (plan/cost/step_time.h). Costs that are not
// certain (dropout, the collectives of experts) count as zero. Pure.
#ifndef TROUPE_PLAN_SEARCH_CHUNK_BOUND_H_
#define TROUPE_PLAN_SEARCH_CHUNK_BOUND_H_

#include <cstdint>
#include <vector>

#include "model/blocks/block_kind.h"
#include "model/config.h"
#include "model/passes/passes.h"
#include "plan/layout/mesh.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// The blocks of one kind in a chunk.
struct BlockCount {
  const model::BlockKind* kind = nullptr;
  int count = 0;
  // Those directly followed, in the same chunk, by a block with an outline of their layer.
  int continued = 0;
};

struct ChunkContents {
  std::vector<BlockCount> blocks;  // in the order of model::BlockKinds()
  bool has_embedding = false;
  bool has_head = false;
  bool owns_head = false;  // the head's matrix is not the embedding's matrix of the same rank
};

// Counts the blocks [first_block, end_block) of `model`. The chunk has the embedding if it starts
// at block 0, and the head if it ends at the last block.
ChunkContents ContentsOf(const model::ModelConfig& model, int first_block, int end_block);

struct ChunkSeconds {
  double forward = 0;   // per microbatch, without the send to the next stage
  double backward = 0;  // likewise: I and W together, whether run as B or apart
  // Per step, in addition to the microbatches: gathers and reductions at its ends, update.
  double once = 0;
};

struct ChunkBytes {
  int64_t state = 0;      // parameters, copies, gradients, moments
  int64_t saved = 0;      // activations of one live microbatch
  int64_t temporary = 0;  // the chunks of a rank share this memory
};

class ChunkBound {
 public:
  // `flops`: attained FLOPs per second of matmuls. Keeps references to all other arguments.
  // REQUIRES: `spec` is a valid job with this `model`, and its defaults are filled in.
  ChunkBound(const model::ModelConfig& model, const v1::DeviceProfile& profile, double flops,
             const v1::JobSpec& spec);

  ChunkSeconds Seconds(const ChunkContents& chunk) const;
  ChunkBytes Bytes(const ChunkContents& chunk) const;
  // Seconds to send the activations of one microbatch to a neighbouring stage.
  double TransferSeconds() const;

 private:
  using Recomputation = model::Recomputation::Mode;

  // compute: seconds in which the device is busy. within, across: seconds in which its links within
  // an island and across islands are busy. waits: seconds of link time that cannot overlap with
  // compute.
  struct Work {
    double compute = 0;
    double within = 0;
    double across = 0;
    double waits = 0;
  };
  double Total(const Work& work) const;
  // Adds `seconds` to the link time of a group of ranks; `span` is its last rank number minus its
  // first.
  void Send(int64_t span, double seconds, Work* work) const;

  // Each returns seconds. Pass: an element-wise operation over `elements` elements of the compute
  // dtype. Product: the matmul of [m,k] by [k,n] with `bytes_of_result` bytes per element of the
  // result. Forward, Gradients: the matmul of a linear layer with `rows` rows, and the two matmuls
  // of its backward.
  double Pass(double elements) const;
  double Product(double m, double n, double k, double bytes_of_result) const;
  double Forward(double rows, double out, double in) const {
    return Product(rows, out, in, element_);
  }
  double Gradients(double rows, double out, double in) const {
    return Product(rows, in, out, element_) + WeightGradient(rows, out, in);
  }
  double WeightGradient(double rows, double out, double in) const {
    return Product(out, in, rows, 4);
  }
  // Scores and values of all keys with `queries` columns; `passes` is 1 for one forward.
  double Attention(double passes, double queries) const;

  // Seconds of the reduce-scatter or all-gather of a microbatch's rows over tensor (HalfSum), and
  // of the all-reduce (WholeSum).
  double HalfSum() const;
  double WholeSum() const;
  // Each returns seconds. RingOfShards: a ring collective over the shards, or over the shards of
  // one run where they are cut into runs (plan/validate/reshard.h), for `parameters` elements of
  // `bytes` bytes each in `tensors` separate collectives. RingAcrossRuns: the collective across the
  // runs that remains to be done.
  double RingOfShards(double parameters, double tensors, double bytes) const;
  double RingAcrossRuns(double parameters, double tensors, double bytes) const;
  // Seconds of the all-reduce of gradients over the ranks that hold the same blocks of parameters.
  double SumOverReplicas(double parameters) const;

  const v1::LinkProfile& LinkOver(int64_t span) const;

  // The blocks of a kind that has an outline, on one tensor rank.
  struct OutlinedBlocks {
    double count, continued;
    bool attends;
    model::BlockOutline outline;
    // Seconds of what is between the matmuls of one block. relayout: queries, keys and values are
    // transposed and, for ring attention, split; the results are merged and transposed back.
    double relayout, middle_forward, middle_backward;
  };
  // Each returns seconds of the first or the last matmul of one block, or of the two of its
  // backward.
  double First(const OutlinedBlocks& blocks) const {
    return Forward(rows_, blocks.outline.first_out, hidden_);
  }
  double FirstGradients(const OutlinedBlocks& blocks) const {
    return Gradients(rows_, blocks.outline.first_out, hidden_);
  }
  double Last(const OutlinedBlocks& blocks) const {
    return Forward(rows_, hidden_, blocks.outline.last_in);
  }
  double LastGradients(const OutlinedBlocks& blocks) const {
    return Gradients(rows_, hidden_, blocks.outline.last_in);
  }
  std::vector<OutlinedBlocks> OutlinedOf(const ChunkContents& chunk) const;
  // Parameters of these blocks.
  double ParametersOf(const std::vector<OutlinedBlocks>& blocks) const;
  double LargestParameter(const ChunkContents& chunk,
                          const std::vector<OutlinedBlocks>& blocks) const;
  double table() const { return vocab_ * hidden_; }

  const model::ModelConfig& model_;
  const v1::DeviceProfile& profile_;
  const v1::JobSpec& spec_;
  const Mesh mesh_;
  const double flops_;
  v1::LinkProfile inner_link_;  // the best link that a group within one island may have
  bool is_aligned_;             // stages begin at island boundaries
  int64_t tensor_span_, context_span_, shard_span_, runs_span_ = 0, replica_span_;
  double element_;  // bytes of an element of the compute dtype
  double held_;     // bytes of an element of a gathered matrix (mixed_precision.param)
  bool float8_;     // linear layers of blocks have FP8 operands, which are saved in FP8 too
  double reduced_;  // bytes of an element of a gradient that is sent
  double pipe_, tensor_, context_, expert_, shards_, replicas_;
  double rows_;            // rows of a microbatch on a rank
  double norm_rows_;       // those of rows_ that norms and residuals process on a rank
  double hidden_, vocab_;  // widths on a rank
  int zero_stage_ = 0;     // 2 where parameters are kept once gathered
  int run_ = 0;            // plan/validate/reshard.h
  bool rings_ = false;
  Recomputation recomputation_ = Recomputation::kNone;  // for whole chunks
  bool recomputes_ = false;                             // some layers, or all
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_CHUNK_BOUND_H_
