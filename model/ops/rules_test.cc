// Compares placement rules with brute force: tries every combination of input placements over two
// ranks on small dense tensors. If a rule accepts a combination, the local results, combined
// according to the output's placement, must equal the dense result.
#include "model/program/op_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>

#include "model/program/control_word.h"

namespace troupe::model {
namespace {

constexpr int kRanks = 2;

struct Tensor {
  int64_t rows = 0, columns = 0;
  std::vector<double> data;
  double& at(int64_t r, int64_t c) { return data[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return data[static_cast<size_t>(r * columns + c)]; }
};

Tensor Zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
}

Tensor Numbers(int64_t rows, int64_t columns, int seed) {
  Tensor tensor = Zeros(rows, columns);
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = static_cast<double>((i * 7 + seed * 13) % 11) - 5;
  return tensor;
}

// The slice of `tensor` on rank `rank`.
Tensor Local(const Tensor& tensor, const AxisPlacement& placement, int rank) {
  if (placement.kind != PlacementKind::kShard) return tensor;
  const Range range =
      BalancedRange(placement.dim == 0 ? tensor.rows : tensor.columns, kRanks, rank);
  Tensor local =
      placement.dim == 0 ? Zeros(range.size(), tensor.columns) : Zeros(tensor.rows, range.size());
  for (int64_t r = 0; r < local.rows; ++r) {
    for (int64_t c = 0; c < local.columns; ++c) {
      local.at(r, c) =
          placement.dim == 0 ? tensor.at(range.begin + r, c) : tensor.at(r, range.begin + c);
    }
  }
  return local;
}

struct Case {
  OpKind kind;
  Attributes attributes;
  std::vector<Tensor> inputs;
  std::vector<DType> dtypes;
  std::vector<int> dims;
  // Computes the local result of `rank`; -1 computes the dense result.
  std::function<Tensor(const std::vector<Tensor>&, int rank)> compute;
  // The accepted combinations and their output placements, as text.
  std::set<std::string> accepted;
};

Value MakeValue(const Tensor& dense, const Tensor& local, DType dtype, int dims,
                AxisPlacement placement, const std::string& name) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.dims = {{"rows", dense.rows, local.rows}};
  if (dims == 2) value.dims.push_back({"columns", dense.columns, local.columns});
  value.placement[Axis::kTensor] = placement;
  return value;
}

void Check(const Case& test) {
  const Tensor dense = test.compute(test.inputs, -1);
  std::vector<std::vector<AxisPlacement>> choices;
  for (const int dims : test.dims) {
    choices.push_back({Replicated(), Copied(), PartialSum(), Shard(0)});
    if (dims == 2) choices.back().push_back(Shard(1));
  }
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = kRanks;
  std::set<std::string> accepted;
  std::vector<size_t> choice(choices.size(), 0);
  while (true) {
    std::string text;
    std::vector<Tensor> locals[kRanks];
    std::vector<Value> values[kRanks];
    for (size_t i = 0; i < choices.size(); ++i) {
      text += ToText(choices[i][choice[i]]) + " ";
      for (int rank = 0; rank < kRanks; ++rank) {
        Tensor local = Local(test.inputs[i], choices[i][choice[i]], rank);
        // The summands of a Partial value differ and add up to it.
        if (choices[i][choice[i]] == PartialSum()) {
          for (double& x : local.data) x = rank == 0 ? x + 3 : -3;
        }
        values[rank].push_back(MakeValue(test.inputs[i], local, test.dtypes[i], test.dims[i],
                                         choices[i][choice[i]], fmt::format("input{}", i)));
        locals[rank].push_back(std::move(local));
      }
    }
    std::optional<AxisPlacement> output;
    std::vector<Tensor> results;
    for (int rank = 0; rank < kRanks; ++rank) {
      mesh.coordinates[Axis::kTensor] = rank;
      std::vector<const Value*> inputs;
      for (const Value& value : values[rank]) inputs.push_back(&value);
      const auto types = RulesOf(test.kind).infer(mesh, test.attributes, inputs);
      if (!types.ok()) {
        ASSERT_FALSE(output.has_value()) << text << types.status();
        break;
      }
      output = (*types)[0].placement[Axis::kTensor];
      results.push_back(test.compute(locals[rank], rank));
      EXPECT_EQ((*types)[0].dims[0].local, results.back().rows) << text;
      EXPECT_EQ((*types)[0].dims[0].global, dense.rows) << text;
      EXPECT_EQ((*types)[0].dims[1].local, results.back().columns) << text;
    }
    if (output.has_value()) {
      accepted.insert(text + "-> " + ToText(*output));
      for (int rank = 0; rank < kRanks; ++rank) {
        if (*output == PartialSum()) {
          for (size_t i = 0; i < dense.data.size(); ++i) {
            EXPECT_EQ(results[0].data[i] + results[1].data[i], dense.data[i]) << text << i;
          }
        } else {
          EXPECT_EQ(results[rank].data, Local(dense, *output, rank).data)
              << text << "rank " << rank;
        }
      }
    }
    size_t i = 0;
    while (i < choice.size() && ++choice[i] == choices[i].size()) choice[i++] = 0;
    if (i == choice.size()) break;
  }
  EXPECT_EQ(accepted, test.accepted);
}

// y[r,n] = Σ_k x[r,k] w[n,k] and its two gradients, by index.
Tensor Matmul(const Tensor& x, const Tensor& w) {
  Tensor y = Zeros(x.rows, w.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t n = 0; n < w.rows; ++n) {
      for (int64_t k = 0; k < x.columns; ++k) y.at(r, n) += x.at(r, k) * w.at(n, k);
    }
  }
  return y;
}

Tensor Transpose(const Tensor& x) {
  Tensor y = Zeros(x.columns, x.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) y.at(c, r) = x.at(r, c);
  }
  return y;
}

constexpr DType kF = DType::kFloat32;

TEST(PlacementRuleTest, OfMatmulMatchesBruteForce) {
  Check({.kind = OpKind::kMatmul,
         .inputs = {Numbers(5, 3, 1), Numbers(7, 3, 2)},
         .dtypes = {kF, kF},
         .dims = {2, 2},
         .compute = [](const std::vector<Tensor>& in, int) { return Matmul(in[0], in[1]); },
         .accepted = {"R R -> R", "S(0) C -> S(0)", "C S(0) -> S(1)", "S(1) S(1) -> P(sum)"}});
}

TEST(PlacementRuleTest, OfMatmulGradInputMatchesBruteForce) {
  Check({.kind = OpKind::kMatmulGradInput,
         .inputs = {Numbers(5, 7, 1), Numbers(7, 3, 2)},
         .dtypes = {kF, kF},
         .dims = {2, 2},
         .compute = [](const std::vector<Tensor>& in,
                       int) { return Matmul(in[0], Transpose(in[1])); },
         .accepted = {"R R -> R", "S(0) C -> S(0)", "C S(1) -> S(1)", "S(1) S(0) -> P(sum)"}});
}

TEST(PlacementRuleTest, OfMatmulGradWeightMatchesBruteForce) {
  Check({.kind = OpKind::kMatmulGradWeight,
         .inputs = {Numbers(5, 7, 1), Numbers(5, 3, 2)},
         .dtypes = {kF, kF},
         .dims = {2, 2},
         .compute = [](const std::vector<Tensor>& in,
                       int) { return Matmul(Transpose(in[0]), Transpose(in[1])); },
         .accepted = {"R R -> R", "S(1) C -> S(0)", "C S(1) -> S(1)", "S(0) S(0) -> P(sum)"}});
}

TEST(PlacementRuleTest, OfAddMatchesBruteForce) {
  Check({.kind = OpKind::kAdd,
         .inputs = {Numbers(5, 3, 1), Numbers(5, 3, 2)},
         .dtypes = {kF, kF},
         .dims = {2, 2},
         .compute =
             [](const std::vector<Tensor>& in, int) {
               Tensor y = in[0];
               for (size_t i = 0; i < y.data.size(); ++i) y.data[i] += in[1].data[i];
               return y;
             },
         .accepted = {"R R -> R", "C C -> C", "P(sum) P(sum) -> P(sum)", "S(0) S(0) -> S(0)",
                      "S(1) S(1) -> S(1)"}});
}

Tensor TokenColumn() { return {5, 1, {0, 6, 2, 6, 3}}; }

TEST(PlacementRuleTest, OfEmbeddingMatchesBruteForce) {
  Check({.kind = OpKind::kEmbedding,
         .attributes = VocabAttributes(),
         .inputs = {TokenColumn(), Numbers(7, 3, 2)},
         .dtypes = {DType::kInt32, kF},
         .dims = {1, 2},
         .compute =
             [](const std::vector<Tensor>& in, int rank) {
               // A table with fewer rows is this rank's slice.
               const int64_t offset = in[1].rows < 7 ? BalancedRange(7, kRanks, rank).begin : 0;
               Tensor y = Zeros(in[0].rows, in[1].columns);
               for (int64_t r = 0; r < y.rows; ++r) {
                 const int64_t row = static_cast<int64_t>(in[0].at(r, 0)) - offset;
                 if (row < 0 || row >= in[1].rows) continue;
                 for (int64_t c = 0; c < y.columns; ++c) y.at(r, c) = in[1].at(row, c);
               }
               return y;
             },
         .accepted = {"R R -> R", "S(0) C -> S(0)", "R S(0) -> P(sum)", "C S(0) -> P(sum)"}});
}

TEST(PlacementRuleTest, OfSwiGluKeepsColumnsAndRefusesPartial) {
  MeshView mesh;
  Value gu;
  gu.name = "gu";
  gu.dims = {{"rows", 4, 4}, {"gate_up", 20, 10}};
  gu.segments = {{"gate", 10, 5}, {"up", 10, 5}};
  gu.placement[Axis::kTensor] = Shard(1, ShardHow::kSegments);
  const std::vector<const Value*> inputs = {&gu};
  const auto types = RulesOf(OpKind::kSwiGlu).infer(mesh, NoAttributes(), inputs);
  ASSERT_TRUE(types.ok());
  EXPECT_EQ((*types)[0].placement[Axis::kTensor], Shard(1));
  EXPECT_EQ((*types)[0].dims[1].local, 5);
  gu.placement[Axis::kTensor] = Shard(1);  // gate of one rank next to up of another
  EXPECT_FALSE(RulesOf(OpKind::kSwiGlu).infer(mesh, NoAttributes(), inputs).ok());
  gu.placement[Axis::kTensor] = PartialSum();
  EXPECT_FALSE(RulesOf(OpKind::kSwiGlu).infer(mesh, NoAttributes(), inputs).ok());
}

TEST(PlacementRuleTest, OfANormRefusesPartialAndSlicesOfARow) {
  MeshView mesh;
  Value x, w;
  x.name = "x";
  x.dims = {{"rows", 4, 4}, {"hidden", 8, 8}};
  w.name = "w";
  w.dims = {{"hidden", 8, 8}};
  const std::vector<const Value*> inputs = {&x, &w};
  const auto infer = [&] {
    return RulesOf(OpKind::kRmsNorm).infer(mesh, NormAttributes{1e-5}, inputs);
  };
  EXPECT_TRUE(infer().ok());
  for (const AxisPlacement& placement : {PartialSum(), PartialMax(), Shard(1), Copied()}) {
    x.placement[Axis::kTensor] = placement;
    EXPECT_FALSE(infer().ok()) << ToText(placement);
  }
  x.placement[Axis::kTensor] = Shard(0);
  EXPECT_FALSE(infer().ok());  // w must be Copied: its gradient is a sum over rows
  w.placement[Axis::kTensor] = Copied();
  EXPECT_TRUE(infer().ok());
}

TEST(PlacementRuleTest, OfSoftmaxStatisticsWithTheGradientDemandsAWholeVocabulary) {
  MeshView mesh;
  Value logits, targets, weights;
  logits.name = "logits";
  logits.dims = {{"rows", 4, 4}, {"vocab", 9, 9}};
  logits.placement[Axis::kDataShard] = Shard(0);
  logits.placement[Axis::kTensor] = Shard(1);
  targets.dtype = DType::kInt32;
  targets.dims = weights.dims = {{"rows", 4, 4}};
  targets.placement[Axis::kDataShard] = weights.placement[Axis::kDataShard] = Shard(0);
  const std::vector<const Value*> inputs = {&logits, &targets, &weights};
  const auto infer = [&] {
    return RulesOf(OpKind::kSoftmaxStatsAndGrad).infer(mesh, LossAttributes(), inputs);
  };
  const auto types = infer();
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].placement, logits.placement);
  EXPECT_EQ((*types)[1].placement, targets.placement);
  EXPECT_EQ((*types)[2].placement[Axis::kDataShard], Shard(1));
  EXPECT_EQ((*types)[2].placement[Axis::kTensor], Replicated());
  mesh.degrees[Axis::kTensor] = 2;
  const auto refused = infer();
  EXPECT_NE(refused.status().ToString().find("logits is S(1) on axis tensor of 2 ranks"),
            std::string::npos)
      << refused.status();
}

TEST(PlacementRuleTest, OfSoftmaxStatisticsDemandsTheirCombination) {
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = 2;
  Value logits, targets;
  logits.dims = {{"rows", 4, 4}, {"vocab", 9, 5}};
  logits.placement[Axis::kTensor] = Shard(1);
  targets.dtype = DType::kInt32;
  targets.dims = {{"rows", 4, 4}};
  const std::vector<const Value*> inputs = {&logits, &targets};
  const auto stats = RulesOf(OpKind::kSoftmaxStats).infer(mesh, VocabAttributes(), inputs);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ((*stats)[0].placement[Axis::kTensor], PartialMax());
  EXPECT_EQ((*stats)[1].placement[Axis::kTensor], Shard(0));
  EXPECT_EQ((*stats)[1].dims[0].global, 4);
  Value max, sums;
  max.dims = (*stats)[0].dims;
  max.placement = (*stats)[0].placement;
  sums.dims = (*stats)[1].dims;
  sums.placement = (*stats)[1].placement;
  Value global_max = max;
  const std::vector<const Value*> rescale = {&sums, &max, &global_max};
  EXPECT_FALSE(
      RulesOf(OpKind::kSoftmaxRescale).infer(mesh, NoAttributes(), rescale).ok());  // not reduced
  global_max.placement[Axis::kTensor] = Replicated();
  const auto rescaled = RulesOf(OpKind::kSoftmaxRescale).infer(mesh, NoAttributes(), rescale);
  ASSERT_TRUE(rescaled.ok()) << rescaled.status();
  EXPECT_EQ((*rescaled)[0].placement[Axis::kTensor], PartialSum());
  // Sums relative to different maxima must not be added before they are rescaled.
  const std::vector<const Value*> unscaled = {&sums};
  EXPECT_FALSE(RulesOf(OpKind::kAllReduce)
                   .infer(mesh,
                          AllReduceAttributes{{GroupOf(Axis::kTensor), CollectivePurpose::kTensor}},
                          unscaled)
                   .ok());
}

TEST(PlacementRuleTest, OfGatherAndScatterCutsRowsIntoBalancedBlocks) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = 2;
  mesh.degrees[Axis::kExpert] = 2;
  CollectiveGroup group = GroupOf(Axis::kDataShard);
  group.axes |= GroupOf(Axis::kExpert).axes;
  const CollectiveAttributes over = {group, CollectivePurpose::kGradient};
  AllGatherAttributes gather = {over};
  for (const int64_t rows : {int64_t{7}, int64_t{3}, int64_t{8}}) {
    int64_t sum = 0;
    for (int rank = 0; rank < 4; ++rank) {
      mesh.coordinates[Axis::kDataShard] = rank / 2;
      mesh.coordinates[Axis::kExpert] = rank % 2;
      Value x;
      x.name = "x";
      x.dims = {{"rows", 2 * rows, rows}, {"columns", 3, 3}};
      x.placement[Axis::kTensor] = Shard(0);
      const std::vector<const Value*> inputs = {&x};
      const auto scatter = [&] {
        return RulesOf(OpKind::kReduceScatter).infer(mesh, ReduceScatterAttributes{over}, inputs);
      };
      EXPECT_FALSE(scatter().ok()) << "nothing is Partial";
      x.placement[Axis::kDataShard] = PartialSum();
      EXPECT_FALSE(scatter().ok()) << "one of the two axes is not";
      x.placement[Axis::kExpert] = PartialSum();
      const auto scattered = scatter();
      ASSERT_TRUE(scattered.ok()) << scattered.status();
      EXPECT_EQ(ToText((*scattered)[0].placement), "data_shard:S(0) expert:S(0) tensor:S(0)");
      EXPECT_EQ((*scattered)[0].dims[0].global, 2 * rows);
      sum += (*scattered)[0].dims[0].local;

      Value block = x;
      block.dims = (*scattered)[0].dims;
      block.placement = (*scattered)[0].placement;
      const std::vector<const Value*> blocks = {&block};
      gather.extent = rows;
      const auto gathered = RulesOf(OpKind::kAllGather).infer(mesh, gather, blocks);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
      EXPECT_EQ((*gathered)[0].dims, x.dims);
      EXPECT_EQ(ToText((*gathered)[0].placement), "data_shard:C expert:C tensor:S(0)");
      gather.extent = rows + 4;
      EXPECT_FALSE(RulesOf(OpKind::kAllGather).infer(mesh, gather, blocks).ok());
    }
    EXPECT_EQ(sum, rows);
  }
}

// Exchanges rows against columns over two ranks and checks by index: each rank holds its slice of
// the same tensor before and after.
TEST(PlacementRuleTest, OfAllToAllTurnsRowsIntoColumnsAndBack) {
  MeshView mesh;
  mesh.degrees[Axis::kContext] = 2;
  const CollectiveAttributes over = {GroupOf(Axis::kContext), CollectivePurpose::kContext};
  ExchangeHeadsAttributes attributes = {over, 3, 4, /*to_rows=*/false};
  Value x;
  x.name = "x";
  x.dims = {{"rows", 24, 12}, {"qkv", 32, 32}};
  x.segments = {{"q", 16, 16}, {"k", 8, 8}, {"v", 8, 8}};
  x.placement[Axis::kContext] = Shard(0, ShardHow::kHeadTail);
  const std::vector<const Value*> inputs = {&x};
  const auto infer = [&] {
    return RulesOf(OpKind::kExchangeHeads).infer(mesh, attributes, inputs);
  };
  const auto columns = infer();
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_EQ((*columns)[0].dims[0].local, 24);
  EXPECT_EQ((*columns)[0].dims[1].local, 16);
  EXPECT_EQ((*columns)[0].segments[2].local, 4);
  EXPECT_EQ((*columns)[0].placement[Axis::kContext], Shard(1, ShardHow::kSegments));
  // The segment of k would be split within a head.
  attributes.head_dim = 8;
  EXPECT_FALSE(infer().ok());
  attributes = {over, 5, 4, false};  // 12 rows are not a multiple of two chunks per sample
  EXPECT_FALSE(infer().ok());
  for (const AxisPlacement& placement :
       {Replicated(), Copied(), PartialSum(), Shard(0), Shard(1, ShardHow::kSegments)}) {
    attributes = {over, 3, 4, false};
    x.placement[Axis::kContext] = placement;
    EXPECT_FALSE(infer().ok()) << ToText(placement);
  }
  Value y = x;
  y.dims = (*columns)[0].dims;
  y.segments = (*columns)[0].segments;
  y.placement = (*columns)[0].placement;
  attributes = {over, 3, 4, true};
  const std::vector<const Value*> back = {&y};
  const auto rows = RulesOf(OpKind::kExchangeHeads).infer(mesh, attributes, back);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*rows)[0].placement[Axis::kContext], Shard(0, ShardHow::kHeadTail));
  EXPECT_EQ((*rows)[0].dims[0].local, 12);
  EXPECT_EQ((*rows)[0].dims[1].local, 32);
  EXPECT_EQ((*rows)[0].segments, x.segments);
}

TEST(CollectiveRulesTest, EveryCollectiveThatSendsHasThem) {
  const OpKind kinds[] = {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) OpKind::k##Kind,
#include "model/program/op_kinds.def"
  };
  int collectives = 0;
  for (const OpKind kind : kinds) {
    // A copy has a group and sends nothing.
    const bool sends = IsCollective(kind) && kind != OpKind::kCopy;
    EXPECT_EQ(RulesOf(kind).collective.has_value(), sends) << Name(kind);
    collectives += IsCollective(kind) ? 1 : 0;
  }
  EXPECT_EQ(collectives, 11);
}

// Shifted keys and values are rejected where those of another shift are required.
TEST(PlacementRuleTest, OfAttentionPartsTakesOnlyTheShiftThatItStates) {
  MeshView mesh;
  mesh.degrees[Axis::kContext] = 3;
  Value q, kv;
  q.dims = {{"rows", 24, 8}, {"attention", 16, 16}};
  kv.dims = {{"rows", 24, 8}, {"kv", 16, 16}};
  kv.segments = {{"k", 8, 8}, {"v", 8, 8}};
  for (Value* value : {&q, &kv}) value->placement[Axis::kContext] = Shard(0, ShardHow::kHeadTail);
  ShiftAttributes onward = {{GroupOf(Axis::kContext), CollectivePurpose::kContext}};
  const auto shifted = [&](const Value& value, int shift) {
    onward.shift = shift;
    const std::vector<const Value*> inputs = {&value};
    Value result = value;
    result.placement = RulesOf(OpKind::kShift).infer(mesh, onward, inputs).value()[0].placement;
    return result;
  };
  const Value once = shifted(kv, 1);
  EXPECT_EQ(once.placement[Axis::kContext].shift, 1);
  EXPECT_EQ(shifted(once, 2).placement, kv.placement);
  EXPECT_EQ(shifted(kv, -2).placement, once.placement);
  EXPECT_NE(once.placement, kv.placement);

  const AttentionAttributes attention = {4, 2, 4, 24, {}};
  for (int part = 0; part < 2; ++part) {
    const PartAttributes attributes = {attention, part, false};
    Value o = q, lse = q;
    lse.dims[1] = {"heads", 4, 4};
    for (const Value* keys : std::vector<const Value*>{&kv, &once}) {
      std::vector<const Value*> inputs = {&q, keys};
      if (part == 1) inputs.insert(inputs.end(), {&o, &lse});
      EXPECT_EQ(RulesOf(OpKind::kAttentionPart).infer(mesh, attributes, inputs).ok(),
                (part == 1) == (keys == &once))
          << part;
    }
  }
  // No other operation accepts another rank's rows in place of its own.
  const std::vector<const Value*> sum = {&once, &kv};
  EXPECT_FALSE(RulesOf(OpKind::kAdd).infer(mesh, NoAttributes(), sum).ok());
  // Only a sharded value can be shifted along a ring.
  Value whole = kv;
  whole.placement[Axis::kContext] = Replicated();
  const std::vector<const Value*> inputs = {&whole};
  EXPECT_FALSE(RulesOf(OpKind::kShift).infer(mesh, onward, inputs).ok());
}

TEST(PlacementRuleTest, ChoicesAreCountedBeforeTheControlWordIsReducedAndOnlyOfExperts) {
  MeshView mesh;
  Value control, totals;
  control.dtype = totals.dtype = DType::kFloat64;
  control.dims = {{"lanes", kControlLanes, kControlLanes}};
  for (int a = 1; a < kNumAxes; ++a) control.placement.axes[a] = PartialSum();
  totals.dims = {{"totals", kRouterLanes + 4, kRouterLanes + 4}};
  const auto infer = [&](const Value& word, const Value& of) {
    const std::vector<const Value*> inputs = {&word, &of};
    return RulesOf(OpKind::kControlRouted).infer(mesh, NoAttributes(), inputs);
  };
  const auto types = infer(control, totals);
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].placement, control.placement);
  Value reduced = control;
  reduced.placement = {};
  EXPECT_FALSE(infer(reduced, totals).ok());
  Value none = totals;
  none.dims = {{"totals", kRouterLanes, kRouterLanes}};
  EXPECT_FALSE(infer(control, none).ok());
  Value wrong = totals;
  wrong.dtype = DType::kFloat32;
  EXPECT_FALSE(infer(control, wrong).ok());
}

TEST(PlacementRuleTest, OfDropoutKnowsWhichRowsOfWhichSamplesAreHere) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = 2;
  mesh.degrees[Axis::kContext] = 2;
  mesh.coordinates[Axis::kContext] = 1;
  mesh.degrees[Axis::kTensor] = 2;
  mesh.coordinates[Axis::kTensor] = 1;
  // 3 samples of 12 tokens, 6 of each on this context rank; of the 18 rows this tensor rank has the
  // last 9.
  Value x, samples;
  x.dims = {{"rows", 72, 9}, {"hidden", 8, 8}};
  x.placement[Axis::kDataShard] = Shard(0);
  x.placement[Axis::kContext] = Shard(0, ShardHow::kHeadTail);
  x.placement[Axis::kTensor] = Shard(0);
  samples.dtype = DType::kInt32;
  samples.dims = {{"samples", 6, 3}, {"lanes", 2, 2}};
  samples.placement[Axis::kDataShard] = Shard(0);
  const DropoutAttributes good = {0.1, 7, 12, ContextRows::Of(12, 2, 1), 9};
  const auto infer = [&](const DropoutAttributes& attributes, const Value& of, const Value& by) {
    const std::vector<const Value*> inputs = {&of, &by};
    return RulesOf(OpKind::kDropout).infer(mesh, attributes, inputs);
  };
  const auto types = infer(good, x, samples);
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].placement, x.placement);

  for (const auto change : std::vector<void (*)(DropoutAttributes&)>{
           [](DropoutAttributes& a) { a.own.first = 0; },
           [](DropoutAttributes& a) { a.held = ContextRows::Of(12, 2, 0); },
           [](DropoutAttributes& a) { a.held = ContextRows::Of(12, 1, 0); },
           [](DropoutAttributes& a) { a.probability = 1; },
           [](DropoutAttributes& a) { a.probability = 0; }}) {
    DropoutAttributes wrong = good;
    change(wrong);
    EXPECT_FALSE(infer(wrong, x, samples).ok());
  }
  for (const auto change : std::vector<void (*)(Value&, Value&)>{
           [](Value&v, Value&) { v.placement[Axis::kTensor] = PartialSum(); },
           [](Value&v, Value&) { v.placement[Axis::kTensor] = Shard(1); },
           [](Value&v, Value&) { v.placement[Axis::kTensor] = Copied(); },
           [](Value&v, Value&) { v.placement[Axis::kTensor] = Replicated(); },
           [](Value&v, Value&) { v.placement[Axis::kContext] = Shard(0); },
           [](Value&v, Value&) { v.placement[Axis::kContext] = Replicated(); },
           [](Value&, Value&s) { s.placement[Axis::kDataShard] = Replicated(); },
           [](Value&, Value&s) { s.placement[Axis::kContext] = Shard(0); },
           [](Value&, Value&s) { s.dims[0].local = 2; },
           [](Value&, Value&s) { s.dims[1].local = 3; }}) {
    Value wrong_x = x, wrong_samples = samples;
    change(wrong_x, wrong_samples);
    EXPECT_FALSE(infer(good, wrong_x, wrong_samples).ok());
  }
}

}  // namespace
}  // namespace troupe::model
