#include "model/program/builder.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "model/program/shared_heads.h"
#include "model/program/weight_decay.h"

namespace troupe::model {
namespace {

// The slices of `parts` inside `rows` of the value.
std::vector<ParameterPart> PartsOfRows(const std::vector<ParameterPart>& parts, const Range& rows) {
  std::vector<ParameterPart> inside;
  for (ParameterPart part : parts) {
    const int64_t begin = std::max(part.row_begin, rows.begin);
    const int64_t end = std::min(part.row_begin + part.local_shape[0], rows.end);
    if (begin >= end) continue;
    part.global_offset[0] += begin - part.row_begin;
    part.local_shape[0] = end - begin;
    part.row_begin = begin - rows.begin;
    inside.push_back(std::move(part));
  }
  return inside;
}

// Whether the parameter is trained. All of its tensors are, or none is.
bool IsTrained(const ParameterSpec& spec, const TrainedParameters& trained) {
  return std::ranges::all_of(
      spec.parts, [&](const ParameterPart& part) { return trained.Includes(part.name); });
}

// Matmuls read the parameter in the compute dtype: all matrices except those in full precision.
bool HasComputeDType(const ParameterSpec& spec) {
  return spec.dims.size() >= 2 && !spec.full_precision;
}

// The groups over which the rows of a parameter are divided, in sequence.
std::vector<CollectiveGroup> ShardGroupsOf(const ParameterSpec& spec, int shard_run) {
  // A bank is divided over expert already, and each rank's experts are divided over data_shard.
  const CollectiveGroup group =
      spec.expert == Replicated() ? ShardGroup() : GroupOf(Axis::kDataShard);
  if (shard_run == 0) return {group};
  return {WithinRun(group, shard_run), AcrossRuns(GroupOf(Axis::kDataShard), shard_run)};
}

}  // namespace

CollectiveGroup DataGroup() {
  CollectiveGroup group;
  for (const Axis axis : kDataAxes) group.axes |= GroupOf(axis).axes;
  return group;
}

CollectiveGroup ShardGroup() {
  CollectiveGroup group;
  for (const Axis axis : kShardAxes) group.axes |= GroupOf(axis).axes;
  return group;
}

CollectiveGroup ReplicateGroup() {
  CollectiveGroup group = DataGroup();
  group.axes &= static_cast<uint8_t>(~ShardGroup().axes);
  return group;
}

CollectiveGroup SharingGroup(const Placement& placement) {
  CollectiveGroup group;
  for (const Axis axis : kDataAxes) {
    if (placement[axis] == Replicated() || placement[axis] == PartialSum())
      group.axes |= GroupOf(axis).axes;
  }
  return group;
}

Placement RowsPlacement() {
  Placement placement;
  for (const Axis axis : kDataAxes) placement[axis] = Shard(0);
  placement[Axis::kContext] = Shard(0, ShardHow::kHeadTail);
  return placement;
}

ValueId AppendValue(Program& program, std::string name, Role role, int chunk_index,
                    ValueType type) {
  Value value;
  value.id = static_cast<ValueId>(program.values.size());
  value.name = std::move(name);
  value.dtype = type.dtype;
  value.role = role;
  value.dims = std::move(type.dims);
  value.placement = type.placement;
  value.segments = std::move(type.segments);
  value.chunk = chunk_index;
  program.values.push_back(std::move(value));
  return program.values.back().id;
}

StatusOr<std::vector<ValueType>> InferTypes(const Program& program, OpKind kind,
                                            const Attributes& attributes,
                                            std::span<const ValueId> inputs) {
  std::vector<const Value*> values;
  values.reserve(inputs.size());
  for (const ValueId input : inputs) {
    if (input < 0 || input >= static_cast<ValueId>(program.values.size())) {
      return InvalidArgument("{}: input {} is not a value", Name(kind), input);
    }
    values.push_back(&program.values[input]);
  }
  if (!AreAttributesOf(kind, attributes)) {
    return Internal("{} has the attributes of another kind", Name(kind));
  }
  auto types = RulesOf(kind).infer(program.mesh, attributes, values);
  if (!types.ok()) return Annotate(types.status(), Name(kind));
  return types;
}

ProgramBuilder::ProgramBuilder(const MeshView& mesh, ParameterOptions options)
    : options_(std::move(options)) {
  program_.mesh = mesh;
}

void ProgramBuilder::BeginChunk(int chunk) {
  program_.chunks.push_back({.chunk = chunk});
  program_.ops.emplace_back(kNumPieces);
}

Range ProgramBuilder::TensorRange(int64_t extent) const {
  return BalancedRange(extent, mesh().degrees[Axis::kTensor], mesh().coordinates[Axis::kTensor]);
}

TensorRows ProgramBuilder::OwnRows() const {
  if (row_parts_ == 1) return {.first = TensorRange(sequence_rows_).begin};
  return TensorRows::OfParts(sequence_rows_, row_parts_, tensor_degree(),
                             mesh().coordinates[Axis::kTensor]);
}

void ProgramBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

std::vector<ParameterEntry::Shards> ProgramBuilder::ShardsOf(const ParameterSpec& spec) {
  std::vector<ParameterEntry::Shards> shards;
  int ranks = 1;
  int64_t row_elements = 1;
  for (size_t dim = 1; dim < spec.dims.size(); ++dim) row_elements *= spec.dims[dim].local;
  const int64_t alignment = program_.bucket.alignment;
  const int64_t unit = alignment / std::gcd(alignment, std::max<int64_t>(1, row_elements));
  for (const CollectiveGroup& group : ShardGroupsOf(spec, options_.shard_run)) {
    shards.push_back({group, RowCut{.unit = unit}});
    ranks *= GroupSize(mesh(), group);
  }
  if (!options_.whole_matrices || spec.matrix_rows == 0) return shards;
  if (spec.matrix_rows < spec.dims[0].local) {
    for (auto& [group, cut] : shards) cut.unit = spec.matrix_rows;
    return shards;
  }
  // The owner is the rank that has the fewest elements of such matrices so far: its index modulo
  // the first group's size is the index in that group, the quotient gives the indices in the
  // following groups.
  std::vector<int64_t>& load = elements_by_shard_[ranks];
  load.resize(static_cast<size_t>(ranks));
  const auto least = std::min_element(load.begin(), load.end());
  int64_t elements = 1;
  for (const Dim& dim : spec.dims) elements *= dim.local;
  *least += elements;
  auto owner = static_cast<int32_t>(least - load.begin());
  for (auto& [group, cut] : shards) {
    const int size = GroupSize(mesh(), group);
    cut = {.owner = owner % size};
    owner /= size;
  }
  return shards;
}

int ProgramBuilder::AddParameter(const ParameterSpec& spec) {
  const int index = static_cast<int>(program_.parameters.size());
  const int chunk = chunk_index();
  const ValueType whole = [&] {
    ValueType type = {DType::kFloat32, spec.dims, {}, spec.segments};
    type.placement[Axis::kTensor] = spec.tensor;
    type.placement[Axis::kExpert] = spec.expert;
    return type;
  }();
  ValueType stored = whole;
  Range rows = {0, whole.dims[0].local};
  ParameterEntry entry;
  std::vector<Range> cuts;
  if (options_.zero_stage > 0) {
    entry.shards = ShardsOf(spec);
    for (const auto& [group, cut] : entry.shards) {
      cuts.push_back(cut.Of(rows.size(), GroupSize(mesh(), group), IndexInGroup(mesh(), group)));
      rows = {rows.begin + cuts.back().begin, rows.begin + cuts.back().end};
    }
    stored.dims[0].local = rows.size();
    stored.segments.clear();
    for (const Axis axis : kShardAxes) stored.placement[axis] = Shard(0);
    if (options_.shard_run > 0) {
      stored.placement[Axis::kDataShard] =
          ShardInRuns(0, options_.shard_run, PlacementKind::kShard);
    }
  }
  const bool trained = IsTrained(spec, options_.trained);
  if (!trained) stored.dtype = HeldDType(spec);
  entry.value = AppendValue(program_, spec.name, Role::kParameter, chunk, stored);
  entry.compute_copy = entry.value;
  if (trained) AddComputeCopy(spec, stored, &entry);
  AddUnshard(spec, cuts, &entry);
  InitialValue initial = spec.initial;
  if (initial.kind == InitialValue::Kind::kNormal && initial.std == 0)
    initial.std = options_.initializer_range;
  AddState(program_, {StateKind::kWeight, entry.value, "", index, initial});
  if (trained) AddTrainedValues(spec, stored, &entry);
  entry.parts = PartsOfRows(spec.parts, rows);
  for (ParameterPart& part : entry.parts) {
    part.weight_decay = DecaysWeight(part.name, part.global_shape, options_.no_weight_decay);
  }
  entry.tied = spec.tied;
  program_.parameters.push_back(std::move(entry));
  return index;
}

DType ProgramBuilder::HeldDType(const ParameterSpec& spec) const {
  if (!HasComputeDType(spec)) return DType::kFloat32;
  // If nothing is gathered, matmuls read the copy directly.
  return options_.zero_stage == 0 && options_.compute_dtype == DType::kBFloat16
             ? DType::kBFloat16
             : options_.param_dtype;
}

void ProgramBuilder::AddComputeCopy(const ParameterSpec& spec, const ValueType& stored,
                                    ParameterEntry* entry) {
  const DType held = HeldDType(spec);
  if (held == DType::kFloat32) return;
  ValueType copy = stored;
  copy.dtype = held;
  entry->compute_copy = AppendValue(program_, fmt::format("{}.{}", spec.name, Name(held)),
                                    Role::kComputeCopy, chunk_index(), std::move(copy));
  program_.initialize.push_back(
      {.kind = OpKind::kCast, .inputs = {entry->value}, .outputs = {entry->compute_copy}});
}

void ProgramBuilder::AddTrainedValues(const ParameterSpec& spec, const ValueType& stored,
                                      ParameterEntry* entry) {
  const int chunk = chunk_index();
  const Value& used = program_.value(entry->unsharded);
  ValueType gradient = {DType::kFloat32, used.dims, GradientPlacement(used.placement),
                        used.segments};
  entry->gradient =
      AppendValue(program_, spec.name + ".gradient", Role::kGradient, chunk, std::move(gradient));
  const int index = static_cast<int>(program_.parameters.size());
  for (const std::string& state : options_.optimizer_states) {
    entry->optimizer_states.push_back(AppendValue(program_, fmt::format("{}.{}", spec.name, state),
                                                  Role::kOptimizerState, chunk, stored));
    AddState(program_, {StateKind::kOptimizer, entry->optimizer_states.back(),
                        fmt::format("{}.", state), index});
  }
}

void ProgramBuilder::AddUnshard(const ParameterSpec& spec, const std::vector<Range>& cuts,
                                ParameterEntry* entry) {
  const int chunk = chunk_index();
  std::vector<Op>& unshard = program_.ops[chunk][static_cast<int>(Piece::kUnshard)];
  CollectiveAttributes used_by = {SharingGroup(program_.value(entry->compute_copy).placement),
                                  CollectivePurpose::kUnshard};
  ValueId copy = entry->compute_copy;
  for (size_t level = cuts.size(); level-- > 0;) {
    AllGatherAttributes gather = {{entry->shards[level].group, CollectivePurpose::kUnshard}};
    gather.cut = entry->shards[level].cut;
    gather.extent = level == 0 ? spec.dims[0].local : cuts[level - 1].size();
    if (level == 0) gather.segments = spec.segments;
    auto gathered = InferTypes(program_, OpKind::kAllGather, gather, {&copy, 1});
    TROUPE_CHECK_OK(gathered.status());
    const ValueId all = AppendValue(program_, spec.name + (level == 0 ? ".gathered" : ".held"),
                                    Role::kComputeCopy, chunk, std::move((*gathered)[0]));
    if (entry->gathered == kNoValue) {
      entry->gathered = all;
      // This rank's block is stored at its place in the gathered value.
      Value& block = program_.values[copy];
      block.view_of = all;
      block.view_offset = cuts[level].begin * program_.value(all).row_elements();
    }
    unshard.push_back(
        {.kind = OpKind::kAllGather, .attributes = gather, .inputs = {copy}, .outputs = {all}});
    copy = all;
    used_by.group = ReplicateGroup();
  }
  if (HasComputeDType(spec) && program_.value(copy).dtype != options_.compute_dtype) {
    auto types = InferTypes(program_, OpKind::kCast, NoAttributes(), {&copy, 1});
    TROUPE_CHECK_OK(types.status());
    entry->converted = AppendValue(program_, spec.name + ".converted", Role::kComputeCopy, chunk,
                                   std::move((*types)[0]));
    unshard.push_back({.kind = OpKind::kCast, .inputs = {copy}, .outputs = {entry->converted}});
    copy = entry->converted;
  }
  const auto use = [&](const CollectiveAttributes& conversion, const char* suffix) {
    auto types = InferTypes(program_, OpKind::kCopy, conversion, {&copy, 1});
    TROUPE_CHECK_OK(types.status());
    const ValueId used = AppendValue(program_, spec.name + suffix, program_.values[copy].role,
                                     chunk, std::move((*types)[0]));
    program_.values[used].view_of = copy;
    unshard.push_back(
        {.kind = OpKind::kCopy, .attributes = conversion, .inputs = {copy}, .outputs = {used}});
    copy = used;
  };
  const bool is_shared = IsSharedHeads(spec.tensor);
  use(used_by, is_shared ? ".shared" : ".unsharded");
  if (is_shared) {
    use({WithinRun(GroupOf(Axis::kTensor), spec.tensor.run), CollectivePurpose::kUnshard},
        ".unsharded");
  }
  entry->unsharded = copy;
}

ValueId ProgramBuilder::AddValue(std::string name, DType dtype, Role role, std::vector<Dim> dims,
                                 const Placement& placement) {
  return AppendValue(program_, std::move(name), role, chunk_index(),
                     {dtype, std::move(dims), placement, {}});
}

ValueId ProgramBuilder::Rows(ValueId x, int64_t begin, int64_t end, std::string name) {
  if (!status_.ok()) return kNoValue;
  const Value whole = program_.value(x);
  const int64_t rows = whole.dims[0].local;
  TROUPE_CHECK(0 <= begin && begin < end && end <= rows, "rows [{}, {}) of {}", begin, end, rows);
  ValueType type = {whole.dtype, whole.dims, whole.placement, whole.segments};
  type.dims[0].local = end - begin;
  type.dims[0].global = (end - begin) * (whole.dims[0].global / rows);
  const ValueId view =
      AppendValue(program_, std::move(name), whole.role, chunk_index(), std::move(type));
  program_.values[view].view_of = x;
  program_.values[view].view_offset = begin * (whole.elements() / rows);
  return view;
}

std::vector<ValueId> ProgramBuilder::EmitAll(OpKind kind, Attributes attributes,
                                             std::vector<ValueId> inputs,
                                             const std::vector<std::string>& names) {
  return EmitNamed(kind, std::move(attributes), std::move(inputs), names);
}

std::vector<ValueId> ProgramBuilder::EmitNamed(OpKind kind, Attributes attributes,
                                               std::vector<ValueId> inputs,
                                               std::span<const std::string> names) {
  if (!status_.ok()) return std::vector<ValueId>(names.size(), kNoValue);
  auto types = InferTypes(program_, kind, attributes, inputs);
  if (!types.ok()) {
    Fail(Annotate(types.status(), names[0]));
    return std::vector<ValueId>(names.size(), kNoValue);
  }
  TROUPE_CHECK(types->size() == names.size(), "{} has {} outputs", Name(kind), types->size());
  Op op = {.kind = kind,
           .attributes = std::move(attributes),
           .inputs = std::move(inputs),
           .row_chunk = row_chunk_,
           .layer = layer_};
  op.outputs.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    op.outputs.push_back(
        AppendValue(program_, names[i], Role::kActivation, chunk_index(), std::move((*types)[i])));
  }
  std::vector<ValueId> outputs = op.outputs;
  program_.ops.back()[static_cast<int>(Piece::kForward)].push_back(std::move(op));
  return outputs;
}

ValueId ProgramBuilder::Emit(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                             const std::string& name) {
  return EmitNamed(kind, std::move(attributes), std::move(inputs), {&name, 1})[0];
}

void ProgramBuilder::EmitInto(ValueId output, OpKind kind, Attributes attributes,
                              std::vector<ValueId> inputs) {
  if (!status_.ok()) return;
  program_.ops.back()[static_cast<int>(Piece::kForward)].push_back(
      {.kind = kind,
       .attributes = std::move(attributes),
       .inputs = std::move(inputs),
       .outputs = {output},
       .row_chunk = row_chunk_,
       .layer = layer_});
}

ValueId ProgramBuilder::AddRouterBias(const std::string& name, const std::string& tensor_name,
                                      int64_t experts) {
  const ValueId bias = AppendValue(program_, name, Role::kParameter, chunk_index(),
                                   {DType::kFloat32, {{"experts", experts, experts}}, {}, {}});
  program_.router_biases.push_back(bias);
  AddState(program_, {StateKind::kRouterBias, bias, tensor_name});
  return bias;
}

void ProgramBuilder::AddRouterLoss(const std::string& name, const RouterAttributes& router,
                                   std::vector<ValueId> inputs) {
  if (!status_.ok()) return;
  auto types = InferTypes(program_, OpKind::kRouterLoss, router, inputs);
  if (!types.ok()) return Fail(Annotate(types.status(), name));
  const ValueId totals = AppendValue(program_, name, Role::kInput, -1, std::move((*types)[0]));
  program_.router_totals.push_back(totals);
  program_.ops.back()[static_cast<int>(Piece::kForward)].push_back({.kind = OpKind::kRouterLoss,
                                                                    .attributes = router,
                                                                    .inputs = std::move(inputs),
                                                                    .outputs = {totals},
                                                                    .first_writer = true,
                                                                    .gradient_in_forward = true,
                                                                    .layer = layer_});
}

ValueId ProgramBuilder::CopyRows(ValueId x, const std::string& name) {
  if (!shards_rows_over_tensor()) {
    return Emit(OpKind::kCopy,
                CollectiveAttributes{GroupOf(Axis::kTensor), CollectivePurpose::kTensor}, {x},
                name);
  }
  AllGatherAttributes gather = {{GroupOf(Axis::kTensor), CollectivePurpose::kSequence}};
  gather.extent = sequence_rows_;
  gather.row_parts = row_parts_;
  return Emit(OpKind::kAllGather, gather, {x}, name);
}

ValueId ProgramBuilder::ReduceRows(ValueId x, const std::string& name) {
  if (!shards_rows_over_tensor()) return AllReduce(x, ReduceKind::kSum, name);
  ReduceScatterAttributes scatter = {{GroupOf(Axis::kTensor), CollectivePurpose::kSequence}};
  scatter.row_parts = row_parts_;
  return Emit(OpKind::kReduceScatter, scatter, {x}, name);
}

void ProgramBuilder::UseForRows(int index) {
  if (!shards_rows_over_tensor()) return;
  const ParameterEntry& entry = program_.parameters[index];
  Value& unsharded = program_.values[entry.unsharded];
  for (Op& op : program_.ops[unsharded.chunk][static_cast<int>(Piece::kUnshard)]) {
    if (op.outputs[0] != entry.unsharded) continue;
    auto& attributes = std::get<CollectiveAttributes>(op.attributes);
    attributes.group.axes |= GroupOf(Axis::kTensor).axes;
    const auto types = InferTypes(program_, op.kind, op.attributes, op.inputs);
    TROUPE_CHECK_OK(types.status());
    unsharded.placement = (*types)[0].placement;
  }
  if (entry.trained())
    program_.values[entry.gradient].placement = GradientPlacement(unsharded.placement);
}

ValueId ProgramBuilder::AllReduce(ValueId x, ReduceKind reduce, const std::string& name) {
  return Emit(OpKind::kAllReduce,
              AllReduceAttributes{{GroupOf(Axis::kTensor), CollectivePurpose::kTensor}, reduce},
              {x}, name);
}

}  // namespace troupe::model
