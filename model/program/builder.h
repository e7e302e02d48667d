// Builds a stage program operation by operation: types of outputs come from the rules, so that a
// block that forgets a conversion does not build.
//
// Errors stick: after the first failure every call returns kNoValue and status() tells what failed.
// Not thread-safe.
#ifndef TROUPE_MODEL_PROGRAM_BUILDER_H_
#define TROUPE_MODEL_PROGRAM_BUILDER_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/ops/rules.h"
#include "model/program/program.h"

namespace troupe::model {

// The axes along which rows of activations are sharded; dense parameters are Replicated on them and
// their gradients reduce over them.
inline constexpr Axis kDataAxes[] = {Axis::kDataReplicate, Axis::kDataShard, Axis::kContext,
                                     Axis::kExpert};
CollectiveGroup DataGroup();
// Those of them along which a value of this placement is Replicated (a parameter: the ranks that
// share it) or Partial(sum) (its gradient: the ranks that it is summed over).
CollectiveGroup SharingGroup(const Placement& placement);

// Of these, the axes over which the optimizer (and by stage gradients and parameters) of dense
// parameters may be sharded, and the rest.
inline constexpr Axis kShardAxes[] = {Axis::kDataShard, Axis::kExpert};
CollectiveGroup ShardGroup();
CollectiveGroup ReplicateGroup();

// Rows sharded over the data axes (over context each sample's tokens), the rest Replicated.
Placement RowsPlacement();

struct ParameterSpec {
  std::string name;  // of the value: "block3.attention.qkv_proj"
  std::vector<Dim> dims;
  std::vector<Segment> segments;  // along dim 0
  AxisPlacement tensor;           // on the tensor axis
  AxisPlacement expert;           // on the expert axis: Shard(0) of a bank of experts
  // Rows of one matrix of it, which stay together where whole matrices are asked for; 0: they do not.
  int64_t matrix_rows = 0;
  bool full_precision = false;    // kernels read the float32 master whatever the compute dtype
  std::vector<ParameterPart> parts;
  ParameterEntry::Init init = ParameterEntry::Init::kNormal;
  double init_std = 0.02;
  bool tied = false;
};

// How parameters are held, of model/build.h.
struct ParameterOptions {
  DType compute_dtype = DType::kFloat32;  // of matrices as products read them, and of activations
  DType param_dtype = DType::kFloat32;    // of matrices as they are gathered
  int zero_stage = 0;
  int shard_run = 0;
  bool whole_matrices = false;
  std::vector<std::string> no_weight_decay;  // model/program/weight_decay.h
};

class ProgramBuilder {
 public:
  // Blocks of sharded parameters begin at multiples of the bucket's alignment within them.
  void set_bucket(const BucketLayout& bucket) { program_.bucket = bucket; }

  // `mesh`: this rank's place.
  ProgramBuilder(const MeshView& mesh, ParameterOptions options);

  // Chunks in order; `chunk` is the global number. Operations go to the chunk begun last.
  void BeginChunk(int chunk);

  // A parameter of this chunk, given whole within this rank's tensor slice; where parameters are
  // sharded the rank keeps its block of the slice's rows (segments not regarded). With copy, gradient
  // and optimizer states, and its Unshard. Returns the index in program().parameters.
  int AddParameter(const ParameterSpec& spec);
  // What F, I and W read of parameter `index`.
  ValueId Unsharded(int index) const { return program_.parameters[index].unsharded; }

  // A value that the executor or another chunk writes, or that no operation of this builder makes.
  ValueId AddValue(std::string name, DType dtype, Role role, std::vector<Dim> dims,
                   const Placement& placement);
  // Rows [begin, end) of `x`, in place.
  ValueId Rows(ValueId x, int64_t begin, int64_t end, std::string name);

  // Appends to F of the present chunk. Names are of the outputs.
  std::vector<ValueId> EmitAll(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                               const std::vector<std::string>& names);
  // As EmitAll with one output.
  ValueId Emit(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
               const std::string& name);
  // Appends to F an operation that accumulates into `output`.
  void EmitInto(ValueId output, OpKind kind, Attributes attributes, std::vector<ValueId> inputs);

  // The bias of a router of `experts`, kept as `tensor_name`.
  ValueId AddRouterBias(const std::string& name, const std::string& tensor_name, int64_t experts);
  // Appends kRouterLoss, which an evaluation skips, and a new value of router_totals that it
  // accumulates in.
  void AddRouterLoss(const std::string& name, const RouterAttributes& router,
                     std::vector<ValueId> inputs);

  // Conversions on the tensor axis.
  ValueId AllReduce(ValueId x, ReduceKind reduce, const std::string& name);

  // Sequence parallelism: between products the `rows` rows of activations on this rank's data ranks
  // are Shard(0) over tensor instead of Replicated; every one of `parts` equal parts of them by itself where
  // there are several.
  void ShardRowsOverTensor(int64_t rows, int parts) {
    sequence_rows_ = rows;
    row_parts_ = parts;
  }
  bool shards_rows_over_tensor() const { return sequence_rows_ > 0; }
  // Those rows; 0 without sequence parallelism.
  int64_t sequence_rows() const { return sequence_rows_; }
  // How they are cut, and which of them this rank has.
  AxisPlacement RowsOverTensor() const { return Shard(0, HowOfParts(row_parts_)); }
  TensorRows OwnRows() const;
  // Activations as between products → Copied, each rank's for its own part of a product: a copy, or
  // all rows gathered.
  ValueId CopyRows(ValueId x, const std::string& name);
  // What such a product made, Partial(sum) → as between products: summed, each rank left with its
  // own rows where they are sharded.
  ValueId ReduceRows(ValueId x, const std::string& name);
  // Parameter `index`, Replicated over tensor, is used for rows: where these are sharded it becomes
  // Copied, and its gradient Partial(sum). REQUIRES: nothing has used it yet.
  void UseForRows(int index);

  // Operations emitted from now on belong to this row chunk of the head; -1: none.
  void SetRowChunk(int row_chunk) { row_chunk_ = static_cast<int16_t>(row_chunk); }

  // Operations emitted from now on belong to this layer; -1: none.
  void SetLayer(int layer) { layer_ = static_cast<int16_t>(layer); }

  void Fail(Status status);
  const Status& status() const { return status_; }
  Program& program() { return program_; }
  DType compute_dtype() const { return options_.compute_dtype; }
  const MeshView& mesh() const { return program_.mesh; }
  int64_t context_degree() const { return mesh().degrees[Axis::kContext]; }
  int64_t tensor_degree() const { return mesh().degrees[Axis::kTensor]; }
  // This rank's part of an extent over the tensor axis.
  Range TensorRange(int64_t extent) const;
  // Index of the present chunk in program().chunks.
  int chunk_index() const { return static_cast<int>(program_.chunks.size()) - 1; }
  ChunkInterface& chunk() { return program_.chunks.back(); }

 private:
  // How the rows of a parameter are sharded; a whole matrix goes to the rank that has least of them.
  std::vector<ParameterEntry::Shards> ShardsOf(const ParameterSpec& spec);
  // Appends the compute copy of `entry`, where it has another dtype than the master.
  void AddComputeCopy(const ParameterSpec& spec, const ValueType& stored, ParameterEntry* entry);
  // Unshard of `entry`: its compute copy, gathered where it is sharded and converted where products read another
  // dtype, as every data rank uses it for its own rows. `cuts`: of each of its shard groups this rank's rows of what that one cuts.
  void AddUnshard(const ParameterSpec& spec, const std::vector<Range>& cuts, ParameterEntry* entry);

  Program program_;
  const ParameterOptions options_;
  // Of whole matrices, by the number of ranks that shard them: elements that each has so far.
  std::map<int, std::vector<int64_t>> elements_by_shard_;
  int64_t sequence_rows_ = 0;  // 0: without sequence parallelism
  int row_parts_ = 1;
  int16_t row_chunk_ = -1;
  int16_t layer_ = -1;
  Status status_;
};

// Appends a value to `program` and returns its id.
ValueId AppendValue(Program& program, std::string name, Role role, int chunk_index, ValueType type);

// Types of the outputs of an operation by the rules; errors name the operation.
StatusOr<std::vector<ValueType>> InferTypes(const Program& program, OpKind kind,
                                            const Attributes& attributes,
                                            std::span<const ValueId> inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_BUILDER_H_
