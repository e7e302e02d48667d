#include "model/blocks/experts.h"

#include <algorithm>
#include <cmath>

#include "model/blocks/parameters.h"

namespace troupe::model {
namespace {

// The experts' matrices of this rank one below the other. `parts` of each are one below the other
// too, [rows, columns] each.
struct BankPart {
  std::string name;  // "gate_proj"
  int64_t rows = 0;
};

ValueId AddBank(ProgramBuilder& builder, const std::string& name, const std::string& layer,
                const std::vector<BankPart>& parts, const Dim& columns, int64_t experts,
                double init_std) {
  const Range mine = BalancedRange(experts, builder.mesh().degrees[Axis::kExpert],
                                   builder.mesh().coordinates[Axis::kExpert]);
  ParameterSpec spec;
  spec.name = name;
  spec.expert = Shard(0);
  spec.init_std = init_std;
  int64_t rows = 0;
  for (int64_t expert = mine.begin; expert < mine.end; ++expert) {
    for (const BankPart& part : parts) {
      spec.parts.push_back({fmt::format("{}mlp.experts.{}.{}.weight", layer, expert, part.name),
                            {part.rows, columns.local},
                            {0, 0},
                            {part.rows, columns.local},
                            rows});
      rows += part.rows;
    }
  }
  spec.dims = {{"experts", rows / mine.size() * experts, rows}, columns};
  return builder.Unsharded(builder.AddParameter(spec));
}

ValueId AddRouter(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                  const std::string& layer) {
  const int64_t experts = config.experts.num_experts, hidden = config.hidden_size;
  ParameterSpec spec;
  spec.name = name + "router";
  spec.dims = {{"experts", experts, experts}, {"hidden", hidden, hidden}};
  spec.full_precision = true;
  spec.parts = {
      {layer + "mlp.gate.weight", {experts, hidden}, {0, 0}, {experts, hidden}, 0}};
  return builder.Unsharded(builder.AddParameter(spec));
}

}  // namespace

int64_t ExpertCapacity(const ExpertConfig& experts, int64_t rows) {
  if (experts.capacity_factor == 0) return 0;
  const double even = static_cast<double>(rows * experts.num_experts_per_tok) /
                      static_cast<double>(experts.num_experts);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(even * experts.capacity_factor)), 1,
                             rows);
}

ValueId BuildExperts(ProgramBuilder& builder, const ModelConfig& config, int block, int64_t tokens,
                     ValueId x, ValueId weights) {
  const std::string name = fmt::format("block{}.experts.", block);
  const std::string layer = fmt::format("model.layers.{}.", LayerOfBlock(config.blocks, block));
  const ExpertConfig& e = config.experts;
  const int64_t hidden = config.hidden_size, ffn = e.moe_intermediate_size;
  const int64_t degree = builder.mesh().degrees[Axis::kExpert];
  const Dim hidden_dim = {"hidden", hidden, hidden};

  const ValueId norm =
      AddNorm(builder, config, name + "norm", layer + "post_attention_layernorm.weight");
  const ValueId router_proj = AddRouter(builder, config, name, layer);
  const ValueId gate_up_proj =
      AddBank(builder, name + "gate_up_proj", layer, {{"gate_proj", ffn}, {"up_proj", ffn}},
              hidden_dim, e.num_experts, kInitStd);
  const ValueId down_proj = AddBank(builder, name + "down_proj", layer, {{"down_proj", hidden}},
                                    {"ffn", ffn, ffn}, e.num_experts, ResidualInitStd(config));

  const ValueId normed = builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                                         {x, norm}, {name + "normed", name + "rstd"})[0];
  if (!builder.status().ok()) return kNoValue;

  const int64_t rows = builder.program().value(normed).dims[0].local;
  RouterAttributes router = {.score = e.score,
                             .normalise = e.norm_topk_prob,
                             .experts = e.num_experts,
                             .top_k = e.num_experts_per_tok,
                             .tokens = tokens,
                             .capacity = ExpertCapacity(e, rows),
                             .slots = rows * e.num_experts_per_tok,
                             .aux_loss_coef = e.aux_loss_coef,
                             .z_loss_coef = e.z_loss_coef,
                             .compute = builder.compute_dtype()};
  const int64_t local_experts = e.num_experts / degree;
  // A token's choices are distinct, so that at most this many of them go to one rank.
  int64_t bound = degree * rows * std::min(e.num_experts_per_tok, local_experts);
  if (router.capacity > 0) {
    router.slots = std::min(router.slots, e.num_experts * router.capacity);
    bound = std::min(bound, degree * local_experts * router.capacity);
  }
  const ValueId logits =
      builder.Emit(OpKind::kRouterLogits, router, {normed, router_proj}, name + "logits");
  std::vector<ValueId> choose_by = {logits};
  if (e.bias_update_rate > 0) {
    choose_by.push_back(builder.AddRouterBias(
        name + "router_bias", layer + "mlp.gate.e_score_correction_bias", e.num_experts));
  }
  const std::vector<ValueId> choice =
      builder.EmitAll(OpKind::kRouterTopK, router, choose_by,
                      {name + "weights", name + "choices", name + "slots", name + "counts",
                       name + "routed"});
  const ValueId choice_weights = choice[0], slots = choice[2], counts = choice[3];
  builder.AddRouterLoss(name + "router_totals", router, {logits, choice[4], counts, weights});

  const CollectiveAttributes exchange = {.group = GroupOf(Axis::kExpert),
                                         .purpose = CollectivePurpose::kDispatch,
                                         .rows_in = router.slots,
                                         .rows_out = bound};
  CollectiveAttributes inverse = exchange;
  std::swap(inverse.rows_in, inverse.rows_out);
  const ValueId received =
      builder.Emit(OpKind::kAllToAll, exchange, {counts}, name + "counts.received");
  const ValueId permuted =
      builder.Emit(OpKind::kPermute, router, {normed, slots}, name + "permuted");
  const ValueId dispatched = builder.Emit(OpKind::kAllToAll, exchange,
                                          {permuted, counts, received}, name + "dispatched");
  GroupedAttributes grouped = {.experts = e.num_experts,
                               .local_experts = local_experts,
                               .expected_rows = rows * e.num_experts_per_tok,
                               .gate_up = true};
  const ValueId gate_up = builder.Emit(OpKind::kGroupedMatmul, grouped,
                                       {dispatched, gate_up_proj, received}, name + "gate_up");
  const ValueId activated =
      builder.Emit(OpKind::kSwiGlu, NoAttributes(), {gate_up, received}, name + "activated");
  grouped.gate_up = false;
  const ValueId made = builder.Emit(OpKind::kGroupedMatmul, grouped,
                                    {activated, down_proj, received}, name + "made");
  const ValueId returned = builder.Emit(OpKind::kAllToAll, inverse, {made, received, counts},
                                        name + "returned");
  const ValueId combined = builder.Emit(OpKind::kCombine, router, {returned, slots, choice_weights},
                                        name + "combined");
  const ValueId sum = builder.Emit(OpKind::kAdd, NoAttributes(), {x, combined}, name + "sum");
  if (e.num_shared_experts == 0) return sum;

  const int64_t shared = ffn * e.num_shared_experts;
  const std::string shared_layer = layer + "mlp.shared_experts.";
  const ValueId shared_gate_up_proj =
      AddFusedColumns(builder, name + "shared.gate_up_proj", "gate_up", hidden,
                      {{"gate", shared_layer + "gate_proj.weight", shared},
                       {"up", shared_layer + "up_proj.weight", shared}});
  const ValueId shared_down_proj =
      AddRowParallel(builder, name + "shared.down_proj", shared_layer + "down_proj.weight", "ffn",
                     hidden, shared, 1, ResidualInitStd(config));
  const ValueId copied = builder.CopyRows(normed, name + "shared.copied");
  const ValueId shared_gate_up = builder.Emit(OpKind::kMatmul, NoAttributes(),
                                              {copied, shared_gate_up_proj}, name + "shared.gate_up");
  const ValueId shared_activated =
      builder.Emit(OpKind::kSwiGlu, NoAttributes(), {shared_gate_up}, name + "shared.activated");
  const ValueId partial =
      builder.Emit(OpKind::kMatmul, NoAttributes(), {shared_activated, shared_down_proj},
                   name + "shared.projected.partial");
  const ValueId projected =
      builder.AllReduce(partial, ReduceKind::kSum, name + "shared.projected");
  return builder.Emit(OpKind::kAdd, NoAttributes(), {sum, projected}, name + "shared.sum");
}

}  // namespace troupe::model
