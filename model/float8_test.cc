// Programs with float8 linear layers: which values are quantised, where and how often; which are
// saved; and which dtypes collectives accept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/parameter_slices.h"
#include "model/passes/passes.h"
#include "model/program/builder.h"
#include "model/program/collective_types.h"
#include "model/program/memory_plan.h"
#include "model/program/op_rules.h"
#include "model/program/verifier.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

constexpr Float8Recipe kRecipes[] = {Float8Recipe::kCurrent, Float8Recipe::kDelayed,
                                     Float8Recipe::kBlockwise};

BuildOptions Float8Options(Float8Recipe recipe, const PerAxis& degrees = {},
                           ModelConfig model = SmallModel("ADAD")) {
  MeshView mesh;
  mesh.degrees = degrees;
  BuildOptions options = StageOptions(std::move(model), mesh, 2, 8);
  options.compute_dtype = DType::kBFloat16;
  options.float8 = recipe;
  return options;
}

PerAxis Degrees(int data, int shard, int tensor, int pipe = 1) {
  PerAxis degrees;
  degrees[Axis::kDataReplicate] = data;
  degrees[Axis::kDataShard] = shard;
  degrees[Axis::kTensor] = tensor;
  degrees[Axis::kPipe] = pipe;
  return degrees;
}

// Calls `body` with each operation of chunk 0 and its piece; B is not split into I and W.
template <typename Body>
void ForEachOp(const Program& program, const Body& body) {
  for (const Piece piece : {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce}) {
    for (const Op& op : program.Ops(0, piece)) body(piece, op);
  }
}

TEST(Float8Programs, AreVerifiedUnderEveryLayoutAndPass) {
  for (const Float8Recipe recipe : kRecipes) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      for (const int pipe : {1, 2}) {
        for (const int variant : {0, 1, 2, 3}) {
          const int shards = zero_stage == 0 ? 1 : 4;
          BuildOptions options = Float8Options(recipe, Degrees(2, shards, 2, pipe));
          options.mesh.coordinates[Axis::kTensor] = 1;
          options.zero_stage = zero_stage;
          options.shard_run = zero_stage == 3 && variant == 1 ? 2 : 0;
          options.whole_matrices = zero_stage > 0 && variant == 2;
          options.sequence_parallel = variant >= 1;
          options.tensor_parts = variant == 3 ? 2 : 1;
          options.fuse = variant != 0;
          options.overlap = variant != 2;
          options.recomputation.mode = variant == 1   ? Recomputation::Mode::kFull
                                       : variant == 2 ? Recomputation::Mode::kSelective
                                                      : Recomputation::Mode::kNone;
          const auto program = BuildProgram(options);
          EXPECT_TRUE(program.ok()) << program.status();
        }
      }
    }
  }
}

TEST(Float8Programs, MatmulsOfBlocksAreFloat8AndAllOthersStay) {
  for (const Float8Recipe recipe : kRecipes) {
    const Program program = BuildProgram(Float8Options(recipe, {}, SmallMixture("ADAE"))).value();
    std::map<OpKind, int> quantized;
    int others = 0;
    ForEachOp(program, [&](Piece, const Op& op) {
      const bool grouped = op.kind == OpKind::kGroupedMatmul ||
                           op.kind == OpKind::kGroupedMatmulGradInput ||
                           op.kind == OpKind::kGroupedMatmulGradWeight;
      EXPECT_FALSE(grouped && IsFloat8(program.value(op.inputs[0]).dtype));
      if (!IsMatmul(op)) return;
      if (!IsFloat8(program.value(op.inputs[0]).dtype)) {
        ++others;
        EXPECT_GE(op.row_chunk, -1);
        EXPECT_THAT(program.value(op.outputs[0]).name,
                    testing::AnyOf(testing::HasSubstr("head"), testing::HasSubstr("embedding")));
        return;
      }
      ++quantized[op.kind];
      const bool gradient = op.kind != OpKind::kMatmul;
      EXPECT_EQ(program.value(op.inputs[0]).dtype,
                gradient ? DType::kFloat8E5M2 : DType::kFloat8E4M3);
      EXPECT_EQ(program.value(op.inputs[1]).dtype, DType::kFloat8E4M3);
      EXPECT_EQ(program.value(op.outputs[0]).dtype,
                op.kind == OpKind::kMatmulGradWeight ? DType::kFloat32 : DType::kBFloat16);
    });
    // qkv and o of two blocks A, gate|up and down of D and of E's shared expert.
    for (const OpKind kind :
         {OpKind::kMatmul, OpKind::kMatmulGradInput, OpKind::kMatmulGradWeight}) {
      EXPECT_EQ(quantized[kind], 8) << Name(kind);
    }
    EXPECT_EQ(others, 3);
  }
}

TEST(Float8Programs, EachValueIsQuantizedOnceAndWeightsOnceAStepWhereTheyAreThere) {
  for (const Float8Recipe recipe : kRecipes) {
    for (const int zero_stage : {0, 2, 3}) {
      BuildOptions options = Float8Options(recipe, Degrees(1, zero_stage > 0 ? 2 : 1, 1));
      options.zero_stage = zero_stage;
      const Program program = BuildProgram(options).value();
      std::map<std::string, int> times;
      std::map<Piece, int> weights;
      ForEachOp(program, [&](Piece piece, const Op& op) {
        if (op.kind != OpKind::kQuantize) return;
        const std::string& name = program.value(op.inputs[0]).name;
        const bool is_weight = name.find(".unsharded") != std::string::npos;
        if (is_weight) ++weights[piece];
        ++times[name];
      });
      for (const auto& [name, count] : times) EXPECT_EQ(count, 1) << name;
      if (zero_stage < 3) {
        EXPECT_EQ(weights, (std::map<Piece, int>{{Piece::kUnshard, 8}}));
      } else {
        EXPECT_EQ(weights, (std::map<Piece, int>{{Piece::kForward, 8}, {Piece::kBackward, 8}}));
      }
    }
  }
}

TEST(Float8Programs, SaveWhatWasQuantizedInPlaceOfWhatItWasMadeOf) {
  const auto saved = [](Float8Recipe recipe) {
    ModelConfig model = SmallModel("DD");
    model.hidden_size = 256;
    model.head_dim = 64;
    model.intermediate_size = 512;
    return PlanMemory(BuildProgram(Float8Options(recipe, {}, model)).value(), {1}, false, 1)
        .saved_bytes[0];
  };
  // The saved values of a block D: its norm's output, 2 bytes per element, and the input of its
  // second matmul.
  const int64_t rows = 16, elements = 2 * rows * (256 + 512);
  for (const Float8Recipe recipe : kRecipes) {
    const int64_t scales = recipe == Float8Recipe::kBlockwise ? 2 * 4 * (256 + 512) : 0;
    const int64_t gain = saved(Float8Recipe::kNone) - saved(recipe);
    EXPECT_NEAR(static_cast<double>(gain), static_cast<double>(elements - scales), 64 * 8)
        << Name(recipe);
  }
}

TEST(Float8Programs, OnlyTheForwardPassCountsAMicrobatchForItsLargestMagnitudes) {
  BuildOptions options = Float8Options(Float8Recipe::kDelayed);
  options.recomputation.mode = Recomputation::Mode::kFull;
  const Program program = BuildProgram(options).value();
  int again = 0;
  std::map<ValueId, int> folds;
  ForEachOp(program, [&](Piece, const Op& op) {
    if (op.kind != OpKind::kQuantize) return;
    const auto& attributes = std::get<QuantizeAttributes>(op.attributes);
    if (op.recomputes()) {
      ++again;
      EXPECT_FALSE(attributes.folds);
    } else if (attributes.folds) {
      ++folds[op.outputs.back()];
      EXPECT_TRUE(op.first_writer);
    }
  });
  EXPECT_GT(again, 0);
  // An input and a gradient for each of eight matmuls.
  ASSERT_EQ(program.amax_histories.size(), 16u);
  for (const AmaxHistory& entry : program.amax_histories) EXPECT_EQ(folds[entry.amax], 1);
}

std::vector<QuantizeSource> SourcesOf(const Program& program) {
  std::vector<QuantizeSource> sources;
  ForEachOp(program, [&](Piece, const Op& op) {
    if (const auto* quantize = std::get_if<QuantizeAttributes>(&op.attributes);
        quantize != nullptr && quantize->source != QuantizeSource::kValue) {
      sources.push_back(quantize->source);
    }
  });
  return sources;
}

TEST(Float8Programs, WriteNeitherWhatSwiGluMakesNorItsGradient) {
  for (const Float8Recipe recipe : kRecipes) {
    for (const auto mode : {Recomputation::Mode::kNone, Recomputation::Mode::kSelective,
                            Recomputation::Mode::kFull}) {
      BuildOptions options = Float8Options(recipe, Degrees(1, 1, 2));
      options.recomputation.mode = mode;
      const Program program = BuildProgram(options).value();
      int forward = 0;
      ForEachOp(program, [&](Piece piece, const Op& op) {
        EXPECT_NE(op.kind, OpKind::kSwiGlu);
        EXPECT_NE(op.kind, OpKind::kSwiGluGrad);
        const auto* quantize = std::get_if<QuantizeAttributes>(&op.attributes);
        if (quantize == nullptr || quantize->source == QuantizeSource::kValue) return;
        const Value& gate_up = program.value(op.inputs[InputsOf(quantize->source) - 1]);
        EXPECT_EQ(gate_up.segments.size(), 2u);
        EXPECT_THAT(gate_up.name, testing::HasSubstr("mlp.gate_up"));
        if (piece == Piece::kForward) {
          ++forward;
          EXPECT_EQ(gate_up.role,
                    mode == Recomputation::Mode::kFull ? Role::kActivation : Role::kSaved);
        }
        EXPECT_EQ(op.inputs.size() - InputsOf(quantize->source),
                  recipe == Float8Recipe::kDelayed ? 1u : 0u);
      });
      EXPECT_EQ(forward, 2);
      // The operand of down's weights is then recomputed, from a recomputed gate_up.
      std::map<QuantizeSource, int> sources;
      for (const QuantizeSource source : SourcesOf(program)) ++sources[source];
      EXPECT_EQ(sources[QuantizeSource::kSwiGlu], mode == Recomputation::Mode::kFull ? 4 : 2);
      EXPECT_EQ(sources[QuantizeSource::kSwiGluGrad], 2);
    }
  }
}

TEST(Float8Programs, ExpertsOfTheirOwnWriteWhatSwiGluMakesAndSharedOnesDoNot) {
  const Program program =
      BuildProgram(Float8Options(Float8Recipe::kCurrent, {}, SmallMixture("AE"))).value();
  std::map<OpKind, int> counted;
  ForEachOp(program, [&](Piece, const Op& op) {
    if (op.kind == OpKind::kSwiGlu || op.kind == OpKind::kSwiGluGrad) ++counted[op.kind];
  });
  EXPECT_EQ(counted, (std::map<OpKind, int>{{OpKind::kSwiGlu, 1}, {OpKind::kSwiGluGrad, 1}}));
  EXPECT_EQ(SourcesOf(program),
            (std::vector<QuantizeSource>{QuantizeSource::kSwiGlu, QuantizeSource::kSwiGluGrad}));
}

// A chunk that computes %1 from %0 by SwiGLU, quantises it to %2 and %3, and contains `others`.
Program OfOneSwiGlu(std::vector<ValueId> counts, std::vector<Op> others) {
  Program program;
  for (ValueId id = 0; id < 6; ++id)
    program.values.push_back({.id = id, .name = fmt::format("value{}", id)});
  program.chunks.resize(1);
  program.ops.assign(1, std::vector<std::vector<Op>>(kNumPieces));
  std::vector<Op>& forward = program.ops[0][static_cast<int>(Piece::kForward)];
  Op swiglu = {.kind = OpKind::kSwiGlu, .inputs = {0}, .outputs = {1}};
  swiglu.inputs.insert(swiglu.inputs.end(), counts.begin(), counts.end());
  forward.push_back(std::move(swiglu));
  forward.push_back({.kind = OpKind::kQuantize,
                     .attributes = QuantizeAttributes{DType::kFloat8E4M3, true, false},
                     .inputs = {1},
                     .outputs = {2, 3}});
  forward.insert(forward.end(), others.begin(), others.end());
  return program;
}

TEST(QuantizeAtSource, WhatIsReadByOthersAsWellOrMadeByCountsIsWrittenAsBefore) {
  const Op reader = {.kind = OpKind::kAdd, .inputs = {1, 4}, .outputs = {5}};
  Program alone = OfOneSwiGlu({}, {}), read = OfOneSwiGlu({}, {reader}),
          counted = OfOneSwiGlu({4}, {});
  Program read_later = OfOneSwiGlu({}, {}), leaves = OfOneSwiGlu({}, {});
  read_later.ops[0][static_cast<int>(Piece::kBackward)].push_back(reader);
  leaves.chunks[0].output = 1;
  for (Program* program : {&alone, &read, &counted, &read_later, &leaves}) {
    QuantizeAtSource(*program);
    const bool merges = program == &alone;
    EXPECT_EQ(program->Ops(0, Piece::kForward)[0].kind,
              merges ? OpKind::kQuantize : OpKind::kSwiGlu);
    EXPECT_EQ(SourcesOf(*program).size(), merges ? 1u : 0u);
  }
  EXPECT_EQ(alone.Ops(0, Piece::kForward)[0].inputs, std::vector<ValueId>{0});
}

TEST(Float8Programs, LargestMagnitudesAreReducedOnceAStepOverAllRanksOfTheStage) {
  const Program program =
      BuildProgram(Float8Options(Float8Recipe::kDelayed, Degrees(2, 2, 2, 2))).value();
  int reduces = 0, moves = 0;
  for (const Op& op : program.update) {
    if (op.kind == OpKind::kAmaxHistory) ++moves;
    if (op.kind != OpKind::kAllReduce) continue;
    ++reduces;
    const auto& attributes = std::get<AllReduceAttributes>(op.attributes);
    EXPECT_EQ(attributes.purpose, CollectivePurpose::kControl);
    EXPECT_EQ(attributes.reduce, ReduceKind::kMax);
    EXPECT_EQ(GroupSize(program.mesh, attributes.group), 8);
    EXPECT_EQ(op.inputs.size(), program.amax_histories.size());
  }
  EXPECT_EQ(reduces, 1);
  EXPECT_EQ(moves, 1);
  for (const Float8Recipe recipe : {Float8Recipe::kCurrent, Float8Recipe::kBlockwise}) {
    EXPECT_TRUE(BuildProgram(Float8Options(recipe)).value().amax_histories.empty());
  }
}

TEST(Float8Programs, HistoriesAreSlicesOfCheckpointsWithTheSameNamesOnEveryLayout) {
  const auto names = [](const PerAxis& degrees) {
    std::vector<std::string> found;
    for (int stage = 0; stage < degrees[Axis::kPipe]; ++stage) {
      BuildOptions options = Float8Options(Float8Recipe::kDelayed, degrees);
      MeshView mesh = options.mesh;
      mesh.coordinates[Axis::kPipe] = stage;
      const ModelConfig model = options.model;
      BuildOptions of_stage = StageOptions(model, mesh, 2, 8);
      of_stage.compute_dtype = DType::kBFloat16;
      of_stage.float8 = Float8Recipe::kDelayed;
      const Program program = BuildProgram(of_stage).value();
      for (const ParameterSlice& slice : ParameterSlices(program)) {
        if (!slice.name.starts_with(kAmaxPrefix)) continue;
        found.push_back(slice.name);
        EXPECT_EQ(slice.local_shape, std::vector<int64_t>{kAmaxSteps});
        for (int a = 1; a < kNumAxes; ++a) EXPECT_TRUE(slice.replicated_axes & (1u << a));
      }
    }
    std::ranges::sort(found);
    return found;
  };
  const std::vector<std::string> one = names({});
  EXPECT_EQ(one.size(), 16u);
  EXPECT_THAT(one, testing::Contains("float8_amax.block3.mlp.down_proj.input"));
  EXPECT_EQ(names(Degrees(2, 1, 2, 2)), one);
}

TEST(Float8Programs, AreRefusedWithFloat32) {
  BuildOptions options = Float8Options(Float8Recipe::kCurrent);
  options.compute_dtype = DType::kFloat32;
  EXPECT_THAT(std::string(Message(BuildProgram(options).status())),
              testing::HasSubstr("float8 current with compute_dtype f32"));
}

// Replaces the input of every collective of a program by an FP8 value.
TEST(CollectiveTypes, NoCollectiveTakesEightBitsAndThePresentOnesTakeWhatTheyMust) {
  BuildOptions options =
      Float8Options(Float8Recipe::kCurrent, {{1, 2, 2, 2, 2, 2}}, SmallMixture("AE"));
  options.model.num_key_value_heads = 4;
  options.model.experts.bias_update_rate = 0.1;
  options.sequence_parallel = true;
  options.zero_stage = 3;
  std::map<OpKind, int> seen;
  for (const bool gathers : {false, true}) {
    options.gather_dispatch = gathers;
    const Program program = BuildProgram(options).value();
    ASSERT_TRUE(VerifyProgram(program).ok());
    const auto check = [&](const Op& op) {
      ASSERT_TRUE(CheckCollectiveTypes(program, op).ok());
      if (FindCollective(op.attributes) == nullptr || op.kind == OpKind::kCopy) return;
      for (const DType dtype : {DType::kFloat8E4M3, DType::kFloat8E5M2}) {
        Program wrong = program;
        wrong.values[op.inputs[0]].dtype = dtype;
        const Status status = CheckCollectiveTypes(wrong, op);
        ASSERT_FALSE(status.ok()) << ToText(op, program);
        for (const std::string& part :
             {std::string(Name(op.kind)), program.value(op.inputs[0]).name,
              std::string(Name(dtype))}) {
          EXPECT_THAT(std::string(Message(status)), testing::HasSubstr(part));
        }
        EXPECT_FALSE(VerifyProgram(wrong).ok());
      }
      ++seen[op.kind];
    };
    ForEachOp(program, [&](Piece, const Op& op) { check(op); });
    for (const Op& op : program.update) check(op);
  }
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                            OpKind::kAllToAll, OpKind::kExchangeHeads, OpKind::kGatherRouted,
                            OpKind::kScatterRouted, OpKind::kControlReduce}) {
    EXPECT_GT(seen[kind], 0) << Name(kind);
  }
}

TEST(CollectiveTypes, SumsOfWholeNumbersAndMaximaOfBfloat16AreRefused) {
  Program program = BuildProgram(Float8Options(Float8Recipe::kNone, Degrees(2, 1, 2))).value();
  for (const Op& op : program.Ops(0, Piece::kForward)) {
    if (op.kind != OpKind::kAllReduce) continue;
    const bool is_maximum = ReduceOf(op) == ReduceKind::kMax;
    const DType before = program.value(op.inputs[0]).dtype;
    program.values[op.inputs[0]].dtype = is_maximum ? DType::kBFloat16 : DType::kInt32;
    EXPECT_FALSE(CheckCollectiveTypes(program, op).ok()) << ToText(op, program);
    program.values[op.inputs[0]].dtype = before;
  }
}

// --- The rules of quantisation and of float8 matmuls.

Value MakeValue(const char* name, DType dtype, std::vector<Dim> dims, AxisPlacement tensor) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.dims = std::move(dims);
  value.placement[Axis::kTensor] = tensor;
  return value;
}

MeshView TensorTwo() {
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = 2;
  return mesh;
}

std::string Refusal(OpKind kind, const Attributes& attributes, const std::vector<Value>& values) {
  std::vector<const Value*> inputs;
  for (const Value& value : values) inputs.push_back(&value);
  return std::string(Message(RulesOf(kind).infer(TensorTwo(), attributes, inputs).status()));
}

TEST(Float8Rules, FormsAreCutAsTheirValueIsAndScalesWithThem) {
  const Value x = MakeValue("x", DType::kBFloat16, {{"rows", 10, 10}, {"in", 512, 256}}, Shard(1));
  const std::vector<const Value*> inputs = {&x};
  const auto types =
      RulesOf(OpKind::kQuantize)
          .infer(TensorTwo(), QuantizeAttributes{DType::kFloat8E4M3, true, true, 1}, inputs)
          .value();
  ASSERT_EQ(types.size(), 4u);
  EXPECT_EQ(types[0].placement[Axis::kTensor], Shard(1));
  EXPECT_EQ(types[1].placement[Axis::kTensor], Shard(0));
  EXPECT_EQ(types[1].dims[0].local, 256);
  EXPECT_EQ(types[2].dims[1], (Dim{"blocks", 4, 2}));
  EXPECT_EQ(types[3].dims[0].local, 256);
  EXPECT_EQ(types[3].dims[1].local, 1);
  const auto whole =
      RulesOf(OpKind::kQuantize)
          .infer(TensorTwo(), QuantizeAttributes{DType::kFloat8E5M2, true, true, 0}, inputs)
          .value();
  ASSERT_EQ(whole.size(), 3u);
  EXPECT_EQ(whole[2].dims, (std::vector<Dim>{{"scales", 2, 1}}));  // each rank has its own
}

TEST(Float8Rules, WhatSwiGluMakesIsCutAsItsHalvesAre) {
  Value gu = MakeValue("gu", DType::kBFloat16, {{"rows", 10, 10}, {"gate_up", 42, 22}},
                       Shard(1, ShardHow::kSegments));
  gu.segments = {{"gate", 21, 11}, {"up", 21, 11}};
  const Value dy = MakeValue("dy", DType::kBFloat16, {{"rows", 10, 10}, {"ffn", 21, 11}}, Shard(1));
  const auto of = [](DType format, int block_rows, QuantizeSource source) {
    return QuantizeAttributes{format, true, true, block_rows, false, source};
  };
  const std::vector<const Value*> forward = {&gu}, backward = {&dy, &gu};
  const auto made =
      RulesOf(OpKind::kQuantize)
          .infer(TensorTwo(), of(DType::kFloat8E4M3, 0, QuantizeSource::kSwiGlu), forward);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)[0].dims[1], (Dim{"ffn", 21, 11}));
  EXPECT_EQ((*made)[0].placement[Axis::kTensor], Shard(1));
  const auto gradient =
      RulesOf(OpKind::kQuantize)
          .infer(TensorTwo(), of(DType::kFloat8E5M2, 1, QuantizeSource::kSwiGluGrad), backward);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ((*gradient)[0].segments, gu.segments);
  EXPECT_EQ((*gradient)[1].placement[Axis::kTensor], Shard(0, ShardHow::kSegments));
  EXPECT_EQ((*gradient)[1].dims[0].local, 22);

  for (const QuantizeAttributes& wrong : {of(DType::kFloat8E5M2, 0, QuantizeSource::kSwiGlu),
                                          of(DType::kFloat8E4M3, 128, QuantizeSource::kSwiGlu),
                                          of(DType::kFloat8E5M2, 0, QuantizeSource::kSwiGluGrad)}) {
    EXPECT_THAT(Refusal(OpKind::kQuantize, wrong, {gu}),
                testing::HasSubstr("the output of swiglu"));
  }
  Value wide = gu;
  wide.dtype = DType::kFloat32;
  EXPECT_THAT(
      Refusal(OpKind::kQuantize, of(DType::kFloat8E4M3, 0, QuantizeSource::kSwiGlu), {wide}),
      testing::HasSubstr("swiglu of gu is f32"));
}

TEST(Float8Rules, WhatIsASumOrOfAnotherTypeIsNotQuantized) {
  const QuantizeAttributes attributes{DType::kFloat8E4M3, true, false};
  const std::vector<Dim> dims = {{"rows", 4, 4}, {"in", 6, 6}};
  EXPECT_THAT(Refusal(OpKind::kQuantize, attributes,
                      {MakeValue("x", DType::kBFloat16, dims, PartialSum())}),
              testing::HasSubstr("input x is P(sum) on axis tensor"));
  EXPECT_THAT(
      Refusal(OpKind::kQuantize, attributes, {MakeValue("x", DType::kFloat32, dims, Replicated())}),
      testing::HasSubstr("input x is f32"));
  EXPECT_THAT(Refusal(OpKind::kQuantize, QuantizeAttributes{DType::kBFloat16, true, false},
                      {MakeValue("x", DType::kBFloat16, dims, Replicated())}),
              testing::HasSubstr("x is quantised to bf16"));
}

TEST(Float8Rules, MatmulsRefuseOperandsWithoutScalesOrOfTheOtherFormat) {
  const Value x = MakeValue("x", DType::kFloat8E4M3, {{"rows", 4, 4}, {"in", 6, 6}}, Copied());
  const Value w = MakeValue("w", DType::kFloat8E4M3, {{"out", 8, 4}, {"in", 6, 6}}, Shard(0));
  const Value x_scale = MakeValue("x_scale", DType::kFloat32, {{"scales", 1, 1}}, Copied());
  const Value w_scale = MakeValue("w_scale", DType::kFloat32, {{"scales", 2, 1}}, Shard(0));
  const std::vector<const Value*> inputs = {&x, &w, &x_scale, &w_scale};
  const auto types = RulesOf(OpKind::kMatmul).infer(TensorTwo(), NoAttributes(), inputs);
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].placement[Axis::kTensor], Shard(1));
  EXPECT_EQ((*types)[0].dtype, DType::kBFloat16);
  EXPECT_THAT(Refusal(OpKind::kMatmul, NoAttributes(), {x, w}),
              testing::HasSubstr("have no scales"));
  EXPECT_THAT(Refusal(OpKind::kMatmul, NoAttributes(), {x, w, w_scale, x_scale}),
              testing::HasSubstr("w_scale, tensor:S(0), is not a scale of x"));
  EXPECT_THAT(Refusal(OpKind::kMatmulGradInput, NoAttributes(), {x, w, x_scale, w_scale}),
              testing::HasSubstr("input x is f8e4m3 of 2 dims, must be f8e5m2"));
}

}  // namespace
}  // namespace troupe::model
