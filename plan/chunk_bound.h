// What a chunk of a layout needs at least, from the sizes of the model alone: every term is of an
// operation, a transfer or a value that its program cannot do without, at the cost that the planner
// gives it (plan/step_time.h). What is not certain (dropout, the collectives of experts) counts as
// nothing. Pure.
#ifndef TROUPE_PLAN_CHUNK_BOUND_H_
#define TROUPE_PLAN_CHUNK_BOUND_H_

#include <cstdint>

#include "model/config.h"
#include "plan/mesh.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct ChunkContents {
  int attention = 0;        // blocks A
  int inner_attention = 0;  // of these, whose layer goes on in the chunk
  int mlp = 0;              // blocks D
  int experts = 0;          // blocks E
  bool has_embedding = false;
  bool has_head = false;
  bool owns_head = false;  // its matrix is not the embedding's of the same rank
};

// Of blocks [first_block, end_block) of `model`, of which the first has the embedding and the last
// the head.
ChunkContents ContentsOf(const model::ModelConfig& model, int first_block, int end_block);

struct ChunkSeconds {
  double forward = 0;   // of a microbatch, without what is sent to the next stage
  double backward = 0;  // likewise: I and W together, run as B or apart
  double once = 0;      // a step, beside the microbatches: gathers and sums at its ends, update
};

struct ChunkBytes {
  int64_t state = 0;      // parameters, copies, gradients, moments
  int64_t saved = 0;      // of each microbatch that is alive
  int64_t temporary = 0;  // chunks of a rank share the room
};

class ChunkBound {
 public:
  // `flops`: what products attain in a second. Keeps references to all but it. REQUIRES: `spec` is
  // a valid one of `model`, its defaults are filled in.
  ChunkBound(const model::ModelConfig& model, const v1::DeviceProfile& profile, double flops,
             const v1::JobSpec& spec);

  ChunkSeconds Seconds(const ChunkContents& chunk) const;
  ChunkBytes Bytes(const ChunkContents& chunk) const;
  // What it takes to hand a microbatch on to a neighbouring stage.
  double TransferSeconds() const;

 private:
  enum class Recomputation { kNone, kSelective, kFull };

  // Seconds in which the device computes; of which its links are busy, those within an island and
  // those across; `waits`: of the links', while it does not compute for certain.
  struct Work {
    double compute = 0;
    double within = 0;
    double across = 0;
    double waits = 0;
  };
  double Total(const Work& work) const;
  // Has the links busy of a group of ranks whose last is `span` after its first.
  void Send(int64_t span, double seconds, Work* work) const;

  // An operation over so many elements of the compute dtype; the product of [m,k] by [k,n]; the
  // ways of m rows of a product and its two gradients.
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
  double Attention(double passes) const;  // scores and values of all keys; of one forward 1

  // Half an all-reduce of a microbatch's rows over tensor, and a whole one.
  double HalfSum() const;
  double WholeSum() const;
  // Of one element of each parameter, in a ring of the shards (of those of one run, where they are
  // cut into runs), of what takes so many bytes; and of what such a run leaves, across runs.
  double RingOfShards(double parameters, double tensors, double bytes) const;
  double RingAcrossRuns(double parameters, double tensors, double bytes) const;
  // Of gradients over the ranks with the same blocks of parameters.
  double SumOverReplicas(double parameters) const;

  const v1::LinkProfile& LinkOver(int64_t span) const;

  double ParametersOf(const ChunkContents& chunk) const;  // dense ones of blocks, after tensor
  double LargestParameter(const ChunkContents& chunk) const;
  double table() const { return vocab_ * hidden_; }

  const model::ModelConfig& model_;
  const v1::DeviceProfile& profile_;
  const v1::JobSpec& spec_;
  const Mesh mesh_;
  const double flops_;
  v1::LinkProfile inner_link_;  // of a group that may lie in one island
  bool is_aligned_;             // stages begin with islands
  int64_t tensor_span_, context_span_, shard_span_, runs_span_ = 0, replica_span_;
  double element_;  // bytes
  double held_;     // bytes of an element of a matrix as it is gathered (mixed_precision.param)
  bool float8_;     // linear layers of blocks: factors, and what of them is saved, in 8 bits
  double reduced_;  // bytes of an element of a gradient that is sent
  double pipe_, tensor_, context_, expert_, shards_, replicas_;
  double rows_;       // of a microbatch on a rank
  double norm_rows_;  // of these, where norms and residuals are
  double hidden_, queries_, keys_, ffn_,
      vocab_;           // widths on a rank: of `keys_` half a key-value pair
  int zero_stage_ = 0;  // 2 where parameters are kept once gathered
  int run_ = 0;         // plan/reshard.h
  bool rings_ = false;
  Recomputation recomputation_ = Recomputation::kNone;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_CHUNK_BOUND_H_
