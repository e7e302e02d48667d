#include "model/build.h"

#include <algorithm>

#include "base/check.h"
#include "base/sample_schema.h"
#include "model/blocks/block_kind.h"
#include "model/blocks/embedding.h"
#include "model/blocks/head.h"
#include "model/blocks/parameters.h"
#include "model/blocks/pattern.h"
#include "model/check_options.h"
#include "model/passes/passes.h"
#include "model/program/builder.h"
#include "model/program/channels.h"
#include "model/program/control_word.h"
#include "model/program/derivative.h"
#include "model/program/op_rules.h"
#include "model/program/shared_heads.h"
#include "model/program/verifier.h"
#include "model/program/verify_update.h"

namespace troupe::model {
namespace {

// The name of the router's weight, which is next to its bias: "….mlp.gate.weight".
std::string RouterOfBias(const std::string& bias) {
  return bias.substr(0, bias.rfind('.')) + ".weight";
}

class StageBuilder {
 public:
  explicit StageBuilder(const BuildOptions& options)
      : options_(options),
        model_(options.model),
        builder_(options.mesh,
                 {.compute_dtype = options.compute_dtype,
                  .param_dtype = options.param_dtype.value_or(options.compute_dtype),
                  .zero_stage = options.zero_stage,
                  .shard_run = options.shard_run,
                  .whole_matrices = options.whole_matrices,
                  .no_weight_decay = options.no_weight_decay,
                  .optimizer_states = options.optimizer.kind->states(options.optimizer),
                  .initializer_range = options.model.initializer_range,
                  .trained = options.trained}) {
    const int64_t rows =
        options.micro_batch_size * options.sequence_length / options.mesh.degrees[Axis::kContext];
    int64_t data_ranks = 1;  // including context ranks
    for (const Axis axis : kDataAxes) data_ranks *= options.mesh.degrees[axis];
    rows_ = {"rows", rows * data_ranks, rows};
    builder_.set_bucket(options.bucket_layout);
    if (options.sequence_parallel) builder_.ShardRowsOverTensor(rows, options.tensor_parts);
    for (const ChunkSpec& chunk : options.chunks) {
      has_embedding_ |= chunk.has_embedding;
      has_head_ |= chunk.has_head;
    }
  }

  StatusOr<Program> Build() {
    Program& program = builder_.program();
    program.interleaves_pairs = options_.interleaves_pairs;
    for (const ChunkSpec& chunk : options_.chunks) BuildForward(chunk);
    TROUPE_RETURN_IF_ERROR(builder_.status());
    for (size_t c = 0; c < options_.chunks.size(); ++c) {
      const bool of_input = options_.trained.TrainsBefore(options_.chunks[c].first_block);
      TROUPE_RETURN_IF_ERROR(Differentiate(program, static_cast<int>(c), of_input));
    }
    HoistHead(program);
    if (options_.float8 != Float8Recipe::kNone) {
      TROUPE_RETURN_IF_ERROR(QuantizeMatmuls(program, options_.float8, options_.zero_stage));
      QuantizeAtSource(program);
    }
    Recompute(program, options_.recomputation);
    if (options_.fuse) Fuse(program);
    TROUPE_RETURN_IF_ERROR(ShardParameters(program, options_.zero_stage, options_.bucket_elements,
                                           options_.reduce_dtype));
    MarkFirstWriters(program);
    ShareStorage(program);
    if (options_.tensor_parts > 1) CutTensorTransfers(program, options_.tensor_parts);
    for (int c = 0; c <= builder_.chunk_index(); ++c) TROUPE_RETURN_IF_ERROR(BuildReduce(c));
    if (options_.overlap) {
      Overlap(program);
      OverlapEnds(program);
    }
    if (options_.runs) SplitBackward(program);
    MarkSaved(program);
    TROUPE_RETURN_IF_ERROR(BuildUpdate());
    if (options_.runs) TROUPE_RETURN_IF_ERROR(VerifyProgram(program));
    TROUPE_RETURN_IF_ERROR(CheckChannels(program, schema_));
    return std::move(program);
  }

 private:
  void BuildForward(const ChunkSpec& spec) {
    builder_.BeginChunk(spec.chunk);
    std::vector<Dim> activation = {rows_, {"hidden", model_.hidden_size, model_.hidden_size}};
    Placement boundary = RowsPlacement();
    if (options_.sequence_parallel) {
      activation[0].local = builder_.TensorRange(rows_.local).size();
      boundary[Axis::kTensor] = builder_.RowsOverTensor();
    }
    ChunkInterface& chunk = builder_.chunk();
    (void)ReadChannel(channels::kPositions);
    if (options_.document_mask) (void)ReadChannel(channels::kDocuments);
    const DropoutPolicy dropout = {model_.hidden_dropout, options_.seed, options_.sequence_length};
    if (dropout.probability > 0 && (spec.has_embedding || spec.block_count > 0)) {
      (void)ReadChannel(channels::kSlots);
    }
    ValueId x;
    if (spec.has_embedding) {
      const ValueId tokens = ReadChannel(channels::kTokens);
      table_ = AddVocabularyTable(builder_, model_, "embedding.table", "model.embed_tokens.weight",
                                  model_.tie_word_embeddings && !has_head_);
      x = BuildEmbedding(builder_, model_, tokens, builder_.Unsharded(table_), dropout);
    } else {
      x = chunk.input =
          builder_.AddValue("input", options_.compute_dtype, Role::kBoundary, activation, boundary);
    }
    for (int block = spec.first_block; block < spec.first_block + spec.block_count; ++block) {
      const int layer = LayerOfBlock(model_.blocks, block);
      builder_.SetLayer(layer);
      const BlockKind& kind = BlockKindOf(model_.blocks[block]);
      for (const std::string_view channel : kind.channels) (void)ReadChannel(channel);
      x = kind.build(builder_, options_, {block, layer, x, dropout});
    }
    builder_.SetLayer(-1);
    if (!spec.has_head) {
      chunk.output = x;
      if (options_.trained.TrainsBefore(spec.first_block + spec.block_count)) {
        chunk.output_gradient =
            builder_.AddValue("output_gradient", options_.compute_dtype, Role::kBoundary,
                              activation, GradientPlacement(boundary));
      }
      return;
    }
    const ValueId targets = ReadChannel(channels::kTargets);
    const ValueId weights = ReadChannel(channels::kWeights);
    const ValueId norm = AddNorm(builder_, model_, "head.norm", "model.norm.weight");
    const bool shared = model_.tie_word_embeddings && has_embedding_;
    const int table =
        shared ? table_
               : AddVocabularyTable(
                     builder_, model_, "head.table",
                     model_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight",
                     model_.tie_word_embeddings);
    Placement partial;
    for (const Axis axis : kDataAxes) partial[axis] = PartialSum();
    Program& program = builder_.program();
    program.loss_totals = AppendValue(program, "loss_totals", Role::kInput, -1,
                                      {DType::kFloat64, {{"totals", 2, 2}}, partial, {}});
    BuildHead(builder_, model_,
              {x, builder_.Unsharded(table), norm, targets, weights, program.loss_totals,
               options_.z_loss_coef, options_.head_rows});
  }

  // The value of a channel that the current chunk reads, in the schema's form; created at the first
  // request. Identical on all tensor ranks; identical on all context ranks unless it holds the
  // rank's own tokens.
  ValueId ReadChannel(std::string_view name) {
    ChunkInterface& chunk = builder_.chunk();
    if (const ValueId there = chunk.Input(name); there != kNoValue) return there;
    const Channel* const channel = schema_.Find(name);
    TROUPE_CHECK(channel != nullptr, "no channel is named {}", name);
    const ChannelForm& form = channel->form;
    const int64_t context = options_.mesh.degrees[Axis::kContext];
    Dim first = rows_;
    Placement placement = RowsPlacement();
    if (form.extent == ChannelExtent::kSample) {
      first = {"samples", rows_.global / options_.sequence_length, options_.micro_batch_size};
      placement[Axis::kContext] = Replicated();
    } else if (channel->whole_samples && context > 1) {
      first.local *= context;
      placement[Axis::kContext] = Replicated();
    }
    std::vector<Dim> dims = {first};
    if (form.lanes > 1) dims.push_back({"lanes", form.lanes, form.lanes});
    const DType dtype = form.type == ChannelType::kInt32 ? DType::kInt32 : DType::kFloat32;
    const ValueId value = builder_.AddValue(form.name, dtype, Role::kInput, dims, placement);
    chunk.channels.push_back({form.name, value});
    return value;
  }

  // The view of a gradient after an all-reduce.
  ValueId ReducedView(ValueId gradient, const char* suffix,
                      const CollectiveAttributes& attributes) {
    Program& program = builder_.program();
    const Value& value = program.value(gradient);
    ValueType type = {value.dtype, value.dims, value.placement, value.segments};
    for (int a = 0; a < kNumAxes; ++a) {
      if (attributes.group.axes & (1u << a)) type.placement.axes[a] = Replicated();
    }
    const ValueId view =
        AppendValue(program, value.name + suffix, Role::kGradient, value.chunk, std::move(type));
    program.values[view].view_of = gradient;
    return view;
  }

  // The view of this rank's block of a gradient after its reduce-scatter, at its place in the whole
  // gradient.
  StatusOr<ValueId> ScatteredView(const ParameterEntry& entry,
                                  const ReduceScatterAttributes& attributes) {
    Program& program = builder_.program();
    TROUPE_ASSIGN_OR_RETURN(
        std::vector<ValueType> types,
        InferTypes(program, OpKind::kReduceScatter, attributes, {&entry.gradient, 1}));
    const ValueId view =
        AppendValue(program, program.value(entry.gradient).name + ".scattered", Role::kGradient,
                    program.value(entry.gradient).chunk, std::move(types[0]));
    const Value& whole = program.value(entry.gradient);
    const Range rows =
        attributes.cut.Of(whole.dims[0].local, GroupSize(program.mesh, attributes.group),
                          IndexInGroup(program.mesh, attributes.group));
    program.values[view].view_of = entry.gradient;
    program.values[view].view_offset = rows.begin * whole.row_elements();
    return view;
  }

  using Parameters = std::vector<ParameterEntry*>;

  // The ranks over which a parameter's gradient is summed in Reduce: those that hold the same
  // values, or the replicas of a sharded optimizer's blocks.
  CollectiveGroup ReduceGroup(const ParameterEntry& entry) {
    return options_.zero_stage > 0
               ? ReplicateGroup()
               : SharingGroup(builder_.program().value(entry.gradient).placement);
  }

  // Reduces buckets from the chunk's last parameter to its first, the order in which backward
  // finishes them. If the optimizer is sharded, each rank keeps its block of the sum (from ZeRO-2
  // on after each microbatch), and blocks are summed over replicas. Tied gradients are then summed
  // over their owners.
  Status BuildReduce(int chunk_index) {
    const Program& program = builder_.program();
    Parameters parameters;
    for (ParameterEntry& entry : builder_.program().parameters) {
      if (entry.trained() && program.value(entry.value).chunk == chunk_index)
        parameters.push_back(&entry);
    }
    std::vector<Op>& reduce = builder_.program().ops[chunk_index][static_cast<int>(Piece::kReduce)];
    for (auto end = parameters.end(); end != parameters.begin();) {
      const CollectiveGroup group = ReduceGroup(**(end - 1));
      auto begin = end;
      int64_t elements = 0;
      while (begin != parameters.begin() && ReduceGroup(**(begin - 1)) == group &&
             (begin == end || elements + program.value((*(begin - 1))->gradient).elements() <=
                                  options_.bucket_elements)) {
        elements += program.value((*--begin)->gradient).elements();
      }
      TROUPE_RETURN_IF_ERROR(ReduceBucket(begin, end, group, &reduce));
      end = begin;
    }
    SumOverTensor(parameters, &reduce);
    TROUPE_RETURN_IF_ERROR(SumSharedHeads(parameters, &reduce));
    SumOverOwners(parameters, &reduce);
    return OkStatus();
  }

  // Sums the gradients of [begin, end) over `group` with one operation, after the reduce-scatters
  // of ZeRO-1.
  Status ReduceBucket(Parameters::iterator begin, Parameters::iterator end,
                      const CollectiveGroup& group, std::vector<Op>* reduce) {
    AllReduceAttributes attributes = {{group, CollectivePurpose::kGradient}};
    attributes.wire = options_.reduce_dtype;
    Op op = {.kind = OpKind::kAllReduce};
    for (auto entry = begin; entry != end; ++entry) {
      ValueId sum = (*entry)->gradient;
      if (options_.zero_stage == 1) {
        const auto& [shard_group, cut] = (*entry)->shards[0];
        const ReduceScatterAttributes scatter = {
            {shard_group, CollectivePurpose::kGradient}, cut, 1, options_.reduce_dtype};
        TROUPE_ASSIGN_OR_RETURN(sum, ScatteredView(**entry, scatter));
        reduce->push_back({.kind = OpKind::kReduceScatter,
                           .attributes = scatter,
                           .inputs = {(*entry)->gradient},
                           .outputs = {sum}});
      }
      (*entry)->reduced_gradient = ReducedView(sum, ".reduced", attributes);
      op.inputs.push_back(sum);
      op.outputs.push_back((*entry)->reduced_gradient);
    }
    // Scattered views are inside of gradients and have no padding after them. The sum of a single
    // rank has none either.
    if (options_.zero_stage != 1 && GroupSize(builder_.program().mesh, group) > 1) {
      attributes.of_bucket = true;
      (*begin)->begins_bucket = true;
      (*(end - 1))->ends_bucket = true;
    }
    op.attributes = attributes;
    reduce->push_back(std::move(op));
    return OkStatus();
  }

  // Appends an all-reduce of the entry's reduced gradient, which becomes its result.
  void SumAgain(ParameterEntry* entry, const char* suffix, const AllReduceAttributes& attributes,
                std::vector<Op>* reduce) {
    const ValueId sum = ReducedView(entry->reduced_gradient, suffix, attributes);
    reduce->push_back({.kind = OpKind::kAllReduce,
                       .attributes = attributes,
                       .inputs = {entry->reduced_gradient},
                       .outputs = {sum}});
    entry->reduced_gradient = sum;
  }

  // Sums the gradients of parameters that each tensor rank has used for its own rows only.
  void SumOverTensor(const Parameters& parameters, std::vector<Op>* reduce) {
    const AllReduceAttributes tensor = {{GroupOf(Axis::kTensor), CollectivePurpose::kSequence}};
    for (ParameterEntry* entry : parameters) {
      const Value& gradient = builder_.program().value(entry->reduced_gradient);
      if (gradient.placement[Axis::kTensor] != PartialSum()) continue;
      SumAgain(entry, ".tensor", tensor, reduce);
    }
  }

  void SumOverOwners(const Parameters& parameters, std::vector<Op>* reduce) {
    AllReduceAttributes owners = {{{CollectiveGroup::Kind::kOwners}, CollectivePurpose::kGradient}};
    owners.wire = options_.reduce_dtype;
    for (ParameterEntry* entry : parameters) {
      if (entry->tied) SumAgain(entry, ".owners", owners, reduce);
    }
  }

  // Sums gradients of shared heads: each rank of a run of tensor has used them for its own queries
  // only.
  Status SumSharedHeads(const Parameters& parameters, std::vector<Op>* reduce) {
    Program& program = builder_.program();
    for (ParameterEntry* entry : parameters) {
      const AxisPlacement stored = program.value(entry->value).placement[Axis::kTensor];
      if (!IsSharedHeads(stored)) continue;
      const AllReduceAttributes within = {
          {WithinRun(GroupOf(Axis::kTensor), stored.run), CollectivePurpose::kTensor}};
      TROUPE_ASSIGN_OR_RETURN(
          std::vector<ValueType> types,
          InferTypes(program, OpKind::kAllReduce, within, {&entry->reduced_gradient, 1}));
      const Value partial = program.value(entry->reduced_gradient);
      const ValueId sum = AppendValue(program, partial.name + ".heads", Role::kGradient,
                                      partial.chunk, std::move(types[0]));
      program.values[sum].view_of = partial.id;
      reduce->push_back({.kind = OpKind::kAllReduce,
                         .attributes = within,
                         .inputs = {partial.id},
                         .outputs = {sum}});
      entry->reduced_gradient = sum;
    }
    return OkStatus();
  }

  Status BuildUpdate() {
    Program& program = builder_.program();
    Placement partial;
    for (int a = 1; a < kNumAxes; ++a) partial.axes[a] = PartialSum();
    const auto scalar = [&](const char* name, DType dtype, int64_t count,
                            const Placement& placement) {
      return AppendValue(program, name, Role::kInput, -1,
                         {dtype, {{"lanes", count, count}}, placement, {}});
    };
    program.control_word = scalar("control_word", DType::kFloat64, kControlLanes, partial);
    program.learning_rate = scalar("learning_rate", DType::kFloat32, 1, {});
    program.applied_steps = scalar("applied_steps", DType::kFloat32, 1, {});
    AddState(program, {StateKind::kAppliedSteps, program.applied_steps, kAppliedStepsTensor});
    const ValueId reduced = scalar("control_word.reduced", DType::kFloat64, kControlLanes, {});
    program.values[reduced].view_of = program.control_word;
    const ControlAttributes rank = {RankNumber(program.mesh)};
    const PerAxis& at = program.mesh.coordinates;
    // The totals are identical on all tensor ranks, so only rank 0 of tensor counts them.
    if (program.loss_totals != kNoValue && at[Axis::kTensor] == 0) {
      program.update.push_back({.kind = OpKind::kControlTotals,
                                .attributes = rank,
                                .inputs = {program.control_word, program.loss_totals},
                                .outputs = {program.control_word}});
    }
    Op routed = {.kind = OpKind::kControlRouted,
                 .inputs = {program.control_word},
                 .outputs = {program.control_word}};
    for (const ValueId totals : program.router_totals) {
      // As above: count only once if all tensor ranks have the same rows.
      const bool counted_once = program.value(totals).placement[Axis::kTensor] == Replicated();
      if (!counted_once || at[Axis::kTensor] == 0) routed.inputs.push_back(totals);
    }
    if (routed.inputs.size() > 1) program.update.push_back(std::move(routed));
    Op squares = {.kind = OpKind::kSumOfSquares,
                  .attributes = rank,
                  .inputs = {program.control_word},
                  .outputs = {program.control_word}};
    const OptimizerKind& kind = *options_.optimizer.kind;
    Op optimizer = {.kind = kind.op,
                    .attributes = kind.attributes(options_.optimizer),
                    .inputs = {reduced, program.learning_rate, program.applied_steps}};
    for (ParameterEntry& entry : program.parameters) {
      entry.counted_in_norm = CountedInNorm(program, entry);
      if (!entry.trained()) continue;
      if (entry.counted_in_norm) squares.inputs.push_back(entry.reduced_gradient);
      AppendOperands(entry, &optimizer);
    }
    program.update.push_back(std::move(squares));
    program.update.push_back({.kind = OpKind::kControlReduce,
                              .attributes = CollectiveAttributes{{CollectiveGroup::Kind::kAll},
                                                                 CollectivePurpose::kControl},
                              .inputs = {program.control_word},
                              .outputs = {reduced}});
    if (options_.halts) {
      program.halted = scalar("halted", DType::kFloat64, 1, {});
      program.update.push_back({.kind = OpKind::kControlHalt, .inputs = {reduced, program.halted}});
    }
    program.update.push_back(
        {.kind = OpKind::kCountStep, .inputs = {reduced, program.applied_steps}});
    program.update.push_back(std::move(optimizer));
    BuildRouterUpdate(reduced);
    BuildAmaxUpdate(reduced);
    return OkStatus();
  }

  // Reduces the routers' totals over all ranks that share them, and updates the biases from them.
  void BuildRouterUpdate(ValueId control) {
    Program& program = builder_.program();
    if (program.router_totals.empty()) return;
    AllReduceAttributes attributes = {{DataGroup(), CollectivePurpose::kControl}};
    // Include the tensor axis if each tensor rank has routed its own rows.
    if (options_.sequence_parallel) attributes.group.axes |= GroupOf(Axis::kTensor).axes;
    Op reduce = {.kind = OpKind::kAllReduce, .attributes = attributes};
    for (const ValueId totals : program.router_totals) {
      const ValueId view = ReducedView(totals, ".reduced", attributes);
      program.values[view].role = Role::kInput;
      reduce.inputs.push_back(totals);
      reduce.outputs.push_back(view);
    }
    const std::vector<ValueId> reduced = reduce.outputs;
    program.update.push_back(std::move(reduce));
    for (size_t i = 0; i < program.router_biases.size(); ++i) {
      const auto state = std::ranges::find(program.states, program.router_biases[i], &State::value);
      // The bias of a router that is frozen stays as it is.
      if (!options_.trained.Includes(RouterOfBias(state->name))) continue;
      program.update.push_back({.kind = OpKind::kRouterBias,
                                .attributes = RouterBiasAttributes{model_.experts.bias_update_rate},
                                .inputs = {control, reduced[i], program.router_biases[i]}});
    }
  }

  // Reduces the step's amax values over all ranks of the stage, so that all use the same scales in
  // the next step.
  void BuildAmaxUpdate(ValueId control) {
    Program& program = builder_.program();
    if (program.amax_histories.empty()) return;
    AllReduceAttributes attributes = {{{}, CollectivePurpose::kControl}, ReduceKind::kMax};
    for (int a = 1; a < kNumAxes; ++a) attributes.group.axes |= GroupOf(static_cast<Axis>(a)).axes;
    Op reduce = {.kind = OpKind::kAllReduce, .attributes = attributes};
    Op move = {.kind = OpKind::kAmaxHistory, .inputs = {control}};
    for (const AmaxHistory& entry : program.amax_histories) {
      const ValueId view = ReducedView(entry.amax, ".reduced", attributes);
      program.values[view].role = Role::kState;
      reduce.inputs.push_back(entry.amax);
      reduce.outputs.push_back(view);
      move.inputs.push_back(view);
    }
    for (const AmaxHistory& entry : program.amax_histories) move.inputs.push_back(entry.history);
    program.update.push_back(std::move(reduce));
    program.update.push_back(std::move(move));
  }

  const BuildOptions& options_;
  const ModelConfig& model_;
  const SampleSchema schema_ = CurrentSampleSchema();
  ProgramBuilder builder_;
  Dim rows_;
  bool has_embedding_ = false, has_head_ = false;
  int table_ = -1;  // parameter index of the embedding
};

}  // namespace

StatusOr<Program> BuildProgram(const BuildOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckOptions(options));
  return StageBuilder(options).Build();
}

}  // namespace troupe::model
