// Builds a stage program operation by operation. The rules give the types of outputs, so a block
// that omits a conversion does not build.
//
// Errors are sticky: after the first failure every call returns kNoValue, and status() returns the
// failure. Not thread-safe.
#ifndef TROUPE_MODEL_PROGRAM_BUILDER_H_
#define TROUPE_MODEL_PROGRAM_BUILDER_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/program/op_rules.h"
#include "model/program/program.h"
#include "model/program/trained_parameters.h"

namespace troupe::model {

// The axes along which rows of activations are sharded; dense parameters are Replicated on them and
// their gradients are reduced over them.
inline constexpr Axis kDataAxes[] = {Axis::kDataReplicate, Axis::kDataShard, Axis::kContext,
                                     Axis::kExpert};
CollectiveGroup DataGroup();
// The data axes along which a value of this placement is Replicated (a parameter: the ranks that
// share it) or Partial(sum) (its gradient: the ranks over which it is summed).
CollectiveGroup SharingGroup(const Placement& placement);

// The data axes over which the optimizer state (and, by stage, gradients and parameters) of dense
// parameters may be sharded; ReplicateGroup has the other data axes.
inline constexpr Axis kShardAxes[] = {Axis::kDataShard, Axis::kExpert};
CollectiveGroup ShardGroup();
CollectiveGroup ReplicateGroup();

// Rows are sharded over the data axes (over context each sample's tokens) and Replicated on all
// other axes.
Placement RowsPlacement();

struct ParameterSpec {
  std::string name;  // name of the value: "block3.attention.qkv_proj"
  std::vector<Dim> dims;
  std::vector<Segment> segments;  // along dim 0
  AxisPlacement tensor;           // on the tensor axis
  AxisPlacement expert;           // on the expert axis: Shard(0) for a bank of experts
  // The rows of one of its matrices, which stay together if whole_matrices is set; 0: rows may be
  // divided anywhere.
  int64_t matrix_rows = 0;
  bool full_precision = false;  // kernels read the float32 master for every compute dtype
  std::vector<ParameterPart> parts;
  // A standard deviation of 0 stands for that of the options.
  InitialValue initial = {InitialValue::Kind::kNormal};
  bool tied = false;
};

// The storage of parameters; see model/blocks/build_options.h.
struct ParameterOptions {
  DType compute_dtype = DType::kFloat32;  // matrices as matmul operands, and activations
  DType param_dtype = DType::kFloat32;    // matrices as they are gathered
  int zero_stage = 0;
  int shard_run = 0;
  bool whole_matrices = false;
  std::vector<std::string> no_weight_decay;  // model/program/weight_decay.h
  // The names of what the optimizer keeps of each parameter (OptimizerKind::states).
  std::vector<std::string> optimizer_states;
  double initializer_range = 0.02;  // the standard deviation of initial weights
  TrainedParameters trained;
};

class ProgramBuilder {
 public:
  // Blocks of sharded parameters begin at multiples of the bucket's alignment within them.
  void set_bucket(const BucketLayout& bucket) { program_.bucket = bucket; }

  // `mesh`: the degrees and this rank's coordinates.
  ProgramBuilder(const MeshView& mesh, ParameterOptions options);

  // Begins a chunk; chunks come in order and `chunk` is the global number. Operations go to the
  // chunk begun last.
  void BeginChunk(int chunk);

  // Adds a parameter to this chunk with its copy, gradient, optimizer states and Unshard
  // operations; a frozen one without gradient and states. `spec` describes it whole within this
  // rank's tensor slice; if parameters are sharded, the rank stores its block of the slice's rows,
  // ignoring segments. Returns the index in program().parameters.
  int AddParameter(const ParameterSpec& spec);
  // The value of parameter `index` that F, I and W read.
  ValueId Unsharded(int index) const { return program_.parameters[index].unsharded; }

  // Adds a value that the executor or another chunk writes, or that no operation of this builder
  // computes.
  ValueId AddValue(std::string name, DType dtype, Role role, std::vector<Dim> dims,
                   const Placement& placement);
  // A view of rows [begin, end) of `x`.
  ValueId Rows(ValueId x, int64_t begin, int64_t end, std::string name);

  // Appends an operation to F of the current chunk. `names` are those of the outputs.
  std::vector<ValueId> EmitAll(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                               const std::vector<std::string>& names);
  // Like EmitAll, for one output.
  ValueId Emit(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
               const std::string& name);
  // Appends to F an operation that accumulates into `output`.
  void EmitInto(ValueId output, OpKind kind, Attributes attributes, std::vector<ValueId> inputs);

  // Adds the bias of a router with `experts` experts, stored in checkpoints as `tensor_name`.
  ValueId AddRouterBias(const std::string& name, const std::string& tensor_name, int64_t experts);
  // Appends kRouterLoss, which an evaluation skips, and adds a new value to router_totals, into
  // which it accumulates.
  void AddRouterLoss(const std::string& name, const RouterAttributes& router,
                     std::vector<ValueId> inputs);

  // Conversions on the tensor axis.
  ValueId AllReduce(ValueId x, ReduceKind reduce, const std::string& name);

  // Enables sequence parallelism: between matmuls the `rows` rows of activations on this rank's
  // data ranks are Shard(0) over tensor instead of Replicated; with several `parts` each of the
  // equal parts is sharded separately.
  void ShardRowsOverTensor(int64_t rows, int parts) {
    sequence_rows_ = rows;
    row_parts_ = parts;
  }
  bool shards_rows_over_tensor() const { return sequence_rows_ > 0; }
  // The number of sharded rows; 0 without sequence parallelism.
  int64_t sequence_rows() const { return sequence_rows_; }
  // The placement of these rows on tensor (RowsOverTensor) and the rows of this rank (OwnRows).
  AxisPlacement RowsOverTensor() const { return Shard(0, HowOfParts(row_parts_)); }
  TensorRows OwnRows() const;
  // Converts activations from the layout between matmuls to Copied, so that each rank can use them
  // for its own part of a matmul: a copy, or an all-gather of the rows.
  ValueId CopyRows(ValueId x, const std::string& name);
  // Converts the Partial(sum) output of such a matmul to the layout between matmuls: an all-reduce,
  // or a reduce-scatter if rows are sharded.
  ValueId ReduceRows(ValueId x, const std::string& name);
  // Declares that parameter `index`, Replicated over tensor, is applied to rows: if rows are
  // sharded over tensor, it becomes Copied and its gradient Partial(sum). REQUIRES: nothing has
  // used it yet.
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
  // This rank's range of an extent that is divided over the tensor axis.
  Range TensorRange(int64_t extent) const;
  // Index of the current chunk in program().chunks.
  int chunk_index() const { return static_cast<int>(program_.chunks.size()) - 1; }
  ChunkInterface& chunk() { return program_.chunks.back(); }

 private:
  std::vector<ValueId> EmitNamed(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                                 std::span<const std::string> names);
  // The sharding of a parameter's rows; a whole matrix is assigned to the rank with the fewest
  // elements.
  std::vector<ParameterEntry::Shards> ShardsOf(const ParameterSpec& spec);
  // The dtype in which this rank keeps the values that are gathered and read.
  DType HeldDType(const ParameterSpec& spec) const;
  // Appends the gradient and the optimizer's states of `entry`, the next of the parameters.
  void AddTrainedValues(const ParameterSpec& spec, const ValueType& stored, ParameterEntry* entry);
  // Appends the compute copy of `entry`, if its dtype differs from the master's.
  void AddComputeCopy(const ParameterSpec& spec, const ValueType& stored, ParameterEntry* entry);
  // Appends Unshard of `entry`: gathers its compute copy if it is sharded and converts it if
  // matmuls read another dtype. `cuts`: for each of its shard groups, this rank's range of the rows
  // that the group divides.
  void AddUnshard(const ParameterSpec& spec, const std::vector<Range>& cuts, ParameterEntry* entry);

  Program program_;
  const ParameterOptions options_;
  // For whole matrices, by the number of ranks that shard them: the elements assigned to each rank
  // so far.
  std::map<int, std::vector<int64_t>> elements_by_shard_;
  int64_t sequence_rows_ = 0;  // 0: no sequence parallelism
  int row_parts_ = 1;
  int16_t row_chunk_ = -1;
  int16_t layer_ = -1;
  Status status_;
};

// Appends a value to `program` and returns its id.
ValueId AppendValue(Program& program, std::string name, Role role, int chunk_index, ValueType type);

// The types of an operation's outputs according to the rules; errors name the operation.
StatusOr<std::vector<ValueType>> InferTypes(const Program& program, OpKind kind,
                                            const Attributes& attributes,
                                            std::span<const ValueId> inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_BUILDER_H_
