// Block E: pre-norm mixture of SwiGLU experts with a residual.
//
//   n = norm(x);  weights, slots, counts = top_k(router(n))
//   y = x + combine(all_to_all⁻¹(experts(all_to_all(permute(n)))), weights) [+ shared(n)]
//
// Shared experts are placed between the dispatch and the experts, so they compute while rows are in
// flight. The router is float32. Banks are Shard(0) over the expert axis; all other parameters
// treat that axis as a data axis. Over tensor there are two modes. In the first, each expert's
// weights are split (gate|up by rows, down by columns). With sequence parallelism each rank then
// routes its own rows, which are gathered after the dispatch and scattered before the combination,
//
//   experts' rows = gather_routed(all_to_all(…));  … = all_to_all⁻¹(scatter_routed(partial sums))
//
// and without it all ranks route the same rows. In the second mode, experts are spread over expert
// × tensor, and the all_to_all runs among all these ranks.
//
// With gather_dispatch the rows, weights and choices are all-gathered over the ranks that share the
// experts, each rank permutes the choices of its own experts, and sums are reduce-scattered:
//
//   y = x + reduce_scatter(combine(experts(permute(all_gather(n))), all_gather(weights)))
//
// Tensor names on disk are those of Qwen3-MoE and DeepSeek: mlp.gate.weight,
// mlp.experts.E.{gate,up,down}_proj.weight, mlp.shared_experts.{gate,up,down}_proj.weight; the
// load-balancing bias is mlp.gate.e_score_correction_bias.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/sample_schema.h"
#include "model/blocks/block_kind.h"
#include "model/blocks/parameters.h"

namespace troupe::model {
namespace {

// The distribution of experts over the mesh.
struct Spread {
  // The ranks over which whole experts are spread; tokens are dispatched within this group.
  CollectiveGroup group;
  bool over_tensor = false;  // `group` is expert × tensor
  int ranks = 1;             // in the group
  Range experts;             // on this rank
};

Spread SpreadOf(const ProgramBuilder& builder, int64_t experts, bool over_tensor) {
  Spread spread = {.group = GroupOf(Axis::kExpert), .over_tensor = over_tensor};
  if (over_tensor) spread.group.axes |= GroupOf(Axis::kTensor).axes;
  spread.ranks = GroupSize(builder.mesh(), spread.group);
  spread.experts = BalancedRange(experts, spread.ranks, IndexInGroup(builder.mesh(), spread.group));
  return spread;
}

// The matrices of this rank's experts stored one below the other, and for each expert all its
// `tensors`. Each whole matrix is [rows, columns]; the rank has `row_range` × `column_range` of it.
struct BankShape {
  std::vector<std::string> tensors;  // "gate_proj"
  int64_t rows = 0, columns = 0;
  Range row_range, column_range;
  std::string column_name;
};

ValueId AddBank(ProgramBuilder& builder, const std::string& name, const std::string& layer,
                const BankShape& shape, const Spread& spread, int64_t experts, AxisPlacement tensor,
                double init_std) {
  ParameterSpec spec;
  spec.name = name;
  spec.tensor = spread.over_tensor ? Shard(0) : tensor;
  spec.expert = Shard(0);
  spec.initial.std = init_std;
  const std::vector<int64_t> local = {shape.row_range.size(), shape.column_range.size()};
  int64_t rows = 0;
  for (int64_t expert = spread.experts.begin; expert < spread.experts.end; ++expert) {
    for (const std::string& tensor_name : shape.tensors) {
      spec.parts.push_back({fmt::format("{}mlp.experts.{}.{}.weight", layer, expert, tensor_name),
                            {shape.rows, shape.columns},
                            {shape.row_range.begin, shape.column_range.begin},
                            local,
                            rows});
      rows += local[0];
    }
  }
  const int64_t all_rows = shape.rows * static_cast<int64_t>(shape.tensors.size()) * experts;
  spec.dims = {{"experts", all_rows, rows}, {shape.column_name, shape.columns, local[1]}};
  spec.matrix_rows = local[0];
  return builder.Unsharded(builder.AddParameter(spec));
}

ValueId AddRouter(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                  const std::string& layer) {
  const int64_t experts = config.experts.num_experts, hidden = config.hidden_size;
  ParameterSpec spec;
  spec.name = name + "router";
  spec.dims = {{"experts", experts, experts}, {"hidden", hidden, hidden}};
  spec.matrix_rows = experts;
  spec.full_precision = true;
  spec.parts = {{layer + "mlp.gate.weight", {experts, hidden}, {0, 0}, {experts, hidden}, 0}};
  const int index = builder.AddParameter(spec);
  builder.UseForRows(index);
  return builder.Unsharded(index);
}

// The router's results for this rank's rows.
struct Routed {
  ValueId normed, weights, chosen, slots, counts;
  int64_t rows;   // on this rank
  int64_t bound;  // maximum of rows that its experts may receive
};

// The dispatched rows of this rank's experts, and the values needed to return their results.
struct Dispatched {
  ValueId rows, counts;
  // With gather_dispatch: slots and weights of the rows of all ranks.
  ValueId slots = kNoValue, weights = kNoValue;
};

RoutedRowsAttributes ExchangeOf(const RouterAttributes& router, const Spread& spread,
                                int64_t bound) {
  return {{spread.group, CollectivePurpose::kDispatch}, router.slots, bound};
}

Dispatched ExchangeDispatch(ProgramBuilder& builder, const std::string& name,
                            const RouterAttributes& router, const Spread& spread,
                            const Routed& routed) {
  const RoutedRowsAttributes exchange = ExchangeOf(router, spread, routed.bound);
  const ValueId received =
      builder.Emit(OpKind::kAllToAll, exchange, {routed.counts}, name + "counts.received");
  const ValueId permuted =
      builder.Emit(OpKind::kPermute, router, {routed.normed, routed.slots}, name + "permuted");
  return {builder.Emit(OpKind::kAllToAll, exchange, {permuted, routed.counts, received},
                       name + "dispatched"),
          received};
}

ValueId ExchangeCombine(ProgramBuilder& builder, const std::string& name,
                        const RouterAttributes& router, const Spread& spread, const Routed& routed,
                        const Dispatched& sent, ValueId made) {
  RoutedRowsAttributes inverse = ExchangeOf(router, spread, routed.bound);
  std::swap(inverse.rows_in, inverse.rows_out);
  const ValueId returned = builder.Emit(OpKind::kAllToAll, inverse,
                                        {made, sent.counts, routed.counts}, name + "returned");
  return builder.Emit(OpKind::kCombine, router, {returned, routed.slots, routed.weights},
                      name + "combined");
}

Dispatched GatherDispatch(ProgramBuilder& builder, const std::string& name, RouterAttributes router,
                          const Spread& spread, const Routed& routed) {
  const AllGatherAttributes gather = {{spread.group, CollectivePurpose::kDispatch}};
  AllGatherAttributes gather_choices = gather;
  gather_choices.replicated = true;
  const auto all = [&](ValueId of, const char* what) {
    return builder.Emit(OpKind::kAllGather, gather, {of}, name + what);
  };
  const auto all_choices = [&](ValueId of, const char* what) {
    return builder.Emit(OpKind::kAllGather, gather_choices, {of}, name + what);
  };
  const ValueId rows = all(routed.normed, "normed.gathered");
  const ValueId weights = all(routed.weights, "weights.gathered");
  const ValueId chosen = all_choices(routed.chosen, "choices.gathered");
  const ValueId slots = all_choices(routed.slots, "slots.gathered");
  router.slots = routed.bound;
  router.spread = spread.group;
  router.first_expert = spread.experts.begin;
  router.local_experts = spread.experts.size();
  const std::vector<ValueId> own = builder.EmitAll(OpKind::kRouterSlots, router, {chosen, slots},
                                                   {name + "slots.own", name + "counts.own"});
  return {builder.Emit(OpKind::kPermute, router, {rows, own[0]}, name + "dispatched"), own[1],
          own[0], weights};
}

ValueId ScatterCombine(ProgramBuilder& builder, const std::string& name,
                       const RouterAttributes& router, const Spread& spread, const Dispatched& sent,
                       ValueId made) {
  const ValueId partial = builder.Emit(OpKind::kCombine, router, {made, sent.slots, sent.weights},
                                       name + "combined.partial");
  return builder.Emit(OpKind::kReduceScatter,
                      ReduceScatterAttributes{{spread.group, CollectivePurpose::kDispatch}},
                      {partial}, name + "combined");
}

// The output of the shared experts, through which every token passes, for `normed`.
ValueId BuildSharedExperts(ProgramBuilder& builder, const ModelConfig& config,
                           const std::string& name, const std::string& layer, ValueId normed) {
  const int64_t hidden = config.hidden_size;
  const int64_t ffn = config.experts.moe_intermediate_size * config.experts.num_shared_experts;
  const std::string tensors = layer + "mlp.shared_experts.";
  const ValueId gate_up_proj = AddFusedColumns(
      builder, name + "shared.gate_up_proj", "gate_up", hidden,
      {{"gate", tensors + "gate_proj.weight", ffn}, {"up", tensors + "up_proj.weight", ffn}});
  const ValueId down_proj =
      AddRowParallel(builder, name + "shared.down_proj", tensors + "down_proj.weight", "ffn",
                     hidden, ffn, 1, ResidualInitStd(config));
  const ValueId copied = builder.CopyRows(normed, name + "shared.copied");
  const ValueId gate_up = builder.Emit(OpKind::kMatmul, NoAttributes(), {copied, gate_up_proj},
                                       name + "shared.gate_up");
  const ValueId activated =
      builder.Emit(OpKind::kSwiGlu, NoAttributes(), {gate_up}, name + "shared.activated");
  const ValueId partial = builder.Emit(OpKind::kMatmul, NoAttributes(), {activated, down_proj},
                                       name + "shared.projected.partial");
  return builder.ReduceRows(partial, name + "shared.projected");
}

// The maximum of rows that an expert accepts from `rows` tokens: ceil(rows·top_k/experts·factor); 0
// (no limit) if the factor is 0.
int64_t ExpertCapacity(const ExpertConfig& experts, int64_t rows) {
  if (experts.capacity_factor == 0) return 0;
  const double even = static_cast<double>(rows * experts.num_experts_per_tok) /
                      static_cast<double>(experts.num_experts);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(even * experts.capacity_factor)), 1,
                             rows);
}

// The parameters of a block.
struct ExpertParameters {
  ValueId norm, router_proj, gate_up_proj, down_proj;
};

ExpertParameters AddParameters(ProgramBuilder& builder, const ModelConfig& config,
                               const std::string& name, const std::string& layer,
                               const Spread& spread) {
  const ExpertConfig& e = config.experts;
  const int64_t hidden = config.hidden_size, ffn = e.moe_intermediate_size;
  const Range columns = spread.over_tensor ? Range{0, ffn} : builder.TensorRange(ffn);
  ExpertParameters added;
  added.norm = AddNorm(builder, config, name + "norm", layer + "post_attention_layernorm.weight");
  added.router_proj = AddRouter(builder, config, name, layer);
  added.gate_up_proj =
      AddBank(builder, name + "gate_up_proj", layer,
              {{"gate_proj", "up_proj"}, ffn, hidden, columns, {0, hidden}, "hidden"}, spread,
              e.num_experts, Shard(0, ShardHow::kSegments), config.initializer_range);
  added.down_proj = AddBank(builder, name + "down_proj", layer,
                            {{"down_proj"}, hidden, ffn, {0, hidden}, columns, "ffn"}, spread,
                            e.num_experts, Shard(1), ResidualInitStd(config));
  return added;
}

// The way in which this rank routes its rows, and the sizes of the buffers that hold routed rows.
struct Routing {
  RouterAttributes router;
  int64_t rows = 0;   // on this rank
  int64_t bound = 0;  // maximum of rows that its experts may receive
};

Routing RoutingOf(const ProgramBuilder& builder, const BuildOptions& options, const Spread& spread,
                  int64_t rows) {
  const ExpertConfig& e = options.model.experts;
  const int64_t tokens = options.sequence_length;
  const bool by_rows = builder.shards_rows_over_tensor();
  // The rows of the tensor rank that has the most, since buffers have the same size on all ranks.
  const int64_t most_rows =
      by_rows ? BalancedRange(builder.sequence_rows(), static_cast<int>(builder.tensor_degree()), 0)
                    .size()
              : rows;
  const int64_t local_experts = spread.experts.size();
  RouterAttributes router = {
      .score = e.score,
      .normalise = e.norm_topk_prob,
      .experts = e.num_experts,
      .top_k = e.num_experts_per_tok,
      .tokens = tokens,
      .local_tokens = tokens / builder.context_degree(),
      .first_row = by_rows ? builder.TensorRange(builder.sequence_rows()).begin : 0,
      .capacity = ExpertCapacity(e, rows),
      .slots = most_rows * e.num_experts_per_tok,
      .aux_loss_coef = e.aux_loss_coef,
      .z_loss_coef = e.z_loss_coef,
      .compute = builder.compute_dtype()};
  // A token's experts are distinct, so at most this many copies of its row are sent to one rank.
  int64_t bound = spread.ranks * most_rows * std::min(e.num_experts_per_tok, local_experts);
  if (router.capacity > 0) {
    const int64_t most = ExpertCapacity(e, most_rows);
    router.slots = std::min(router.slots, e.num_experts * most);
    bound = std::min(bound, spread.ranks * local_experts * most);
  }
  return {router, rows, bound};
}

// Routes the rows of `normed`, and adds the router's losses.
Routed Route(ProgramBuilder& builder, const ExpertConfig& e, const std::string& name,
             const std::string& layer, const Routing& routing, ValueId normed,
             ValueId router_proj) {
  const RouterAttributes& router = routing.router;
  const ValueId weights = builder.chunk().Input(channels::kWeights);
  const ValueId logits =
      builder.Emit(OpKind::kRouterLogits, router, {normed, router_proj}, name + "logits");
  std::vector<ValueId> choose_by = {logits};
  if (e.bias_update_rate > 0) {
    choose_by.push_back(builder.AddRouterBias(
        name + "router_bias", layer + "mlp.gate.e_score_correction_bias", e.num_experts));
  }
  const std::vector<ValueId> top_k =
      builder.EmitAll(OpKind::kRouterTopK, router, choose_by,
                      {name + "weights", name + "choices", name + "slots", name + "counts"});
  const Routed routed = {normed,   top_k[0],     top_k[1],     top_k[2],
                         top_k[3], routing.rows, routing.bound};
  const ValueId load =
      builder.Emit(OpKind::kRouterLoad, router, {routed.chosen, weights}, name + "load");
  AllReduceAttributes samples = {{GroupOf(Axis::kContext), CollectivePurpose::kDispatch}};
  if (builder.shards_rows_over_tensor()) samples.group.axes |= GroupOf(Axis::kTensor).axes;
  const ValueId whole_load =
      builder.Emit(OpKind::kAllReduce, samples, {load}, name + "load.samples");
  builder.AddRouterLoss(name + "router_totals", router, {logits, load, whole_load, routed.counts});
  return routed;
}

// The experts' outputs for the dispatched rows. If the tensor ranks split the experts' weights,
// they gather the rows that each has routed, and scatter the sums.
ValueId ApplyExperts(ProgramBuilder& builder, const ExpertConfig& e, const std::string& name,
                     const Spread& spread, const Routed& routed, const Dispatched& sent,
                     const ExpertParameters& parameters) {
  const bool splits = !spread.over_tensor, by_rows = builder.shards_rows_over_tensor();
  const CollectiveAttributes over_tensor = {GroupOf(Axis::kTensor), CollectivePurpose::kSequence};
  const RoutedRowsAttributes gather = {over_tensor, routed.bound,
                                       routed.bound * builder.tensor_degree(),
                                       builder.sequence_rows() * e.num_experts_per_tok};
  // The input rows of this rank's experts, or of its slices of their weights.
  ValueId owned = sent.rows, owned_counts = sent.counts;
  if (splits && by_rows) {
    AllGatherAttributes gather_counts = {over_tensor};
    gather_counts.replicated = true;
    owned_counts =
        builder.Emit(OpKind::kAllGather, gather_counts, {sent.counts}, name + "counts.gathered");
    owned =
        builder.Emit(OpKind::kGatherRouted, gather, {sent.rows, owned_counts}, name + "gathered");
  } else if (splits) {
    owned = builder.CopyRows(sent.rows, name + "copied");
  }
  const int64_t worked_rows = splits && by_rows ? builder.sequence_rows() : routed.rows;
  GroupedAttributes grouped = {.experts = e.num_experts,
                               .local_experts = spread.experts.size(),
                               .expected_rows = worked_rows * e.num_experts_per_tok,
                               .gate_up = true};
  const ValueId gate_up =
      builder.Emit(OpKind::kGroupedMatmul, grouped, {owned, parameters.gate_up_proj, owned_counts},
                   name + "gate_up");
  const ValueId activated =
      builder.Emit(OpKind::kSwiGlu, NoAttributes(), {gate_up, owned_counts}, name + "activated");
  grouped.gate_up = false;
  const ValueId made = builder.Emit(OpKind::kGroupedMatmul, grouped,
                                    {activated, parameters.down_proj, owned_counts}, name + "made");
  if (!splits) return made;
  if (!by_rows) return builder.AllReduce(made, ReduceKind::kSum, name + "made.sum");
  RoutedRowsAttributes scatter = gather;
  std::swap(scatter.rows_in, scatter.rows_out);
  return builder.Emit(OpKind::kScatterRouted, scatter, {made, owned_counts}, name + "made.sum");
}

// Also appends the router's totals to program().router_totals.
ValueId BuildExperts(ProgramBuilder& builder, const BuildOptions& options,
                     const BlockInputs& inputs) {
  const ModelConfig& config = options.model;
  const ExpertConfig& e = config.experts;
  const std::string name = fmt::format("block{}.experts.", inputs.block);
  const std::string layer = fmt::format("model.layers.{}.", inputs.layer);
  const Spread spread = SpreadOf(builder, e.num_experts, options.spread_experts_over_tensor);
  const ExpertParameters parameters = AddParameters(builder, config, name, layer, spread);
  const ValueId normed =
      builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                      {inputs.x, parameters.norm}, {name + "normed", name + "rstd"})[0];
  if (!builder.status().ok()) return kNoValue;

  const Routing routing =
      RoutingOf(builder, options, spread, builder.program().value(normed).dims[0].local);
  const RouterAttributes& router = routing.router;
  const Routed routed = Route(builder, e, name, layer, routing, normed, parameters.router_proj);
  const bool gathers = options.gather_dispatch && spread.ranks > 1;
  const Dispatched sent = gathers ? GatherDispatch(builder, name, router, spread, routed)
                                  : ExchangeDispatch(builder, name, router, spread, routed);
  // Computed while routed rows are in flight.
  const ValueId shared = e.num_shared_experts > 0
                             ? BuildSharedExperts(builder, config, name, layer, normed)
                             : kNoValue;
  const ValueId made = ApplyExperts(builder, e, name, spread, routed, sent, parameters);
  ValueId all = gathers ? ScatterCombine(builder, name, router, spread, sent, made)
                        : ExchangeCombine(builder, name, router, spread, routed, sent, made);
  if (shared != kNoValue) {
    all = builder.Emit(OpKind::kAdd, NoAttributes(), {all, shared}, name + "shared.sum");
  }
  const ValueId dropped = Drop(builder, inputs.dropout, fmt::format("block{}", inputs.block), all);
  return builder.Emit(OpKind::kAdd, NoAttributes(), {inputs.x, dropped}, name + "sum");
}

Status CheckExperts(const BuildOptions& options) {
  const int expert = options.mesh.degrees[Axis::kExpert];
  const int tensor = options.mesh.degrees[Axis::kTensor];
  const ExpertConfig& e = options.model.experts;
  if (e.num_experts < 1 || e.num_experts_per_tok < 1 || e.moe_intermediate_size < 1 ||
      e.num_shared_experts < 0) {
    return InvalidArgument(
        "num_experts {}, num_experts_per_tok {} and moe_intermediate_size {} must be positive and "
        "num_shared_experts {} not negative",
        e.num_experts, e.num_experts_per_tok, e.moe_intermediate_size, e.num_shared_experts);
  }
  if (e.num_experts_per_tok > e.num_experts) {
    return InvalidArgument("num_experts_per_tok {} is above num_experts {}", e.num_experts_per_tok,
                           e.num_experts);
  }
  if (e.num_experts % expert != 0) {
    return InvalidArgument("num_experts {} must be a multiple of expert_parallel_degree {}",
                           e.num_experts, expert);
  }
  if (options.spread_experts_over_tensor && e.num_experts % (int64_t{expert} * tensor) != 0) {
    return InvalidArgument(
        "num_experts {} must be a multiple of expert_parallel_degree {} × tensor_parallel_degree "
        "{}, over which experts are distributed",
        e.num_experts, expert, tensor);
  }
  if (!(e.bias_update_rate >= 0)) {
    return InvalidArgument("bias_update_rate {} is negative", e.bias_update_rate);
  }
  if (!(e.capacity_factor >= 0) || !(e.aux_loss_coef >= 0) || !(e.z_loss_coef >= 0)) {
    return InvalidArgument("capacity_factor {}, aux_loss_coef {} or z_loss_coef {} is negative",
                           e.capacity_factor, e.aux_loss_coef, e.z_loss_coef);
  }
  if (tensor > 1 && (expert > 1 || options.spread_experts_over_tensor) &&
      !options.sequence_parallel) {
    return InvalidArgument(
        "tensor_parallel_degree {} with expert_parallel_degree {} needs sequence_parallel: each "
        "rank routes its own rows",
        tensor, expert);
  }
  const int64_t rows =
      options.micro_batch_size * options.sequence_length / options.mesh.degrees[Axis::kContext];
  if (options.gather_dispatch && options.spread_experts_over_tensor && rows % tensor != 0) {
    return InvalidArgument(
        "the {} rows of a microbatch are not a multiple of tensor_parallel_degree {}: all_gather "
        "over expert × tensor needs equal parts",
        rows, tensor);
  }
  if (!options.spread_experts_over_tensor && e.moe_intermediate_size < tensor) {
    return InvalidArgument("moe_intermediate_size {} is below tensor_parallel_degree {}",
                           e.moe_intermediate_size, tensor);
  }
  return OkStatus();
}

int64_t ExpertsParameters(const ModelConfig& model) {
  const ExpertConfig& e = model.experts;
  return model.hidden_size *
         (3 * e.moe_intermediate_size * (e.num_experts + e.num_shared_experts) + e.num_experts + 1);
}

// Counts active parameters: the experts that process a token.
BlockFlops ExpertsFlops(const ModelConfig& model, double samples, double tokens) {
  const ExpertConfig& e = model.experts;
  return {2 * (samples * tokens) * static_cast<double>(model.hidden_size) * 3 *
          static_cast<double>(e.moe_intermediate_size) *
          static_cast<double>(e.num_experts_per_tok + e.num_shared_experts)};
}

constexpr std::string_view kChannels[] = {channels::kWeights};

}  // namespace

constinit const BlockKind kExpertsBlock = {.letter = 'E',
                                           .build = BuildExperts,
                                           .check = CheckExperts,
                                           .parameters = ExpertsParameters,
                                           .flops = ExpertsFlops,
                                           .channels = kChannels,
                                           .has_experts = true};

}  // namespace troupe::model
