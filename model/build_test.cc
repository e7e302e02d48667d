#include "model/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/cost.h"
#include "model/program/memory_plan.h"
#include "model/program/verifier.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

BuildOptions Small(int data, int tensor, int pipe, int stage = 0, bool tied = false) {
  ModelConfig model = SmallModel("ADADAD");
  model.tie_word_embeddings = tied;
  MeshView mesh;
  mesh.degrees[Axis::kDataReplicate] = data;
  mesh.degrees[Axis::kTensor] = tensor;
  mesh.degrees[Axis::kPipe] = pipe;
  mesh.coordinates[Axis::kPipe] = stage;
  return StageOptions(model, mesh, 2, 8);
}

TEST(BuildProgramTest, BuildsAndVerifiesEveryStageOfEveryLayout) {
  for (const bool tied : {false, true}) {
    for (const int data : {1, 3}) {
      for (const int tensor : {1, 2}) {
        for (const int pipe : {1, 2, 3}) {
          for (int stage = 0; stage < pipe; ++stage) {
            for (int coordinate = 0; coordinate < tensor; ++coordinate) {
              for (const int variant : {0, 1, 2, 3}) {
                const bool fuse = variant % 2 == 1;
                BuildOptions options = Small(data, tensor, pipe, stage, tied);
                options.sequence_parallel = variant >= 2;
                options.document_mask = variant >= 2;
                options.model.hidden_dropout = variant >= 2 ? 0.1 : 0;
                options.z_loss_coef = variant >= 2 ? 1e-4 : 0;
                options.mesh.coordinates[Axis::kTensor] = coordinate;
                options.compute_dtype = fuse ? DType::kBFloat16 : DType::kFloat32;
                options.fuse = fuse;
                const auto program = BuildProgram(options);
                EXPECT_TRUE(program.ok()) << program.status();
              }
            }
          }
        }
      }
    }
  }
}

TEST(BuildProgramTest, BuildsAndVerifiesEveryStageOfZero) {
  for (const int zero_stage : {1, 2, 3}) {
    for (const int shards : {2, 3, 40}) {  // 40: more than the rows of any dim
      for (const int rank : {0, 1, shards - 1}) {
        for (const int pipe : {1, 2}) {
          for (const bool fuse : {false, true}) {
            BuildOptions options = Small(2, 2, pipe, pipe - 1, fuse);
            options.mesh.degrees[Axis::kDataShard] = shards;
            options.mesh.coordinates[Axis::kDataShard] = rank;
            options.zero_stage = zero_stage;
            options.bucket_elements = 600;
            options.compute_dtype = fuse ? DType::kBFloat16 : DType::kFloat32;
            const auto program = BuildProgram(options);
            EXPECT_TRUE(program.ok()) << program.status();
          }
        }
      }
    }
  }
}

TEST(BuildProgramTest, GradientsTravelAsTheReduceDtypeAndNothingElseDoes) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    BuildOptions options = Small(2, 2, 2, 0, true);
    options.sequence_parallel = true;
    options.mesh.degrees[Axis::kDataShard] = 2;
    options.zero_stage = zero_stage;
    const std::string plain = ToText(BuildProgram(options).value());
    EXPECT_EQ(plain.find("wire"), std::string::npos);
    options.reduce_dtype = DType::kBFloat16;
    const Program program = BuildProgram(options).value();
    int packed = 0;
    for (const auto& pieces : program.ops) {
      for (const auto& ops : pieces) {
        for (const Op& op : ops) {
          const auto* collective = FindCollective(op.attributes);
          if (collective == nullptr) continue;
          const bool travels_so = WireOf(op) == DType::kBFloat16;
          EXPECT_EQ(travels_so, collective->purpose == CollectivePurpose::kGradient)
              << ToText(op, program);
          EXPECT_EQ(travels_so, ToText(op, program).find("wire bf16") != std::string::npos);
          packed += travels_so;
        }
      }
    }
    EXPECT_GE(packed, 2) << zero_stage;
  }
  BuildOptions options = Small(2, 1, 1);
  options.reduce_dtype = DType::kFloat64;
  EXPECT_FALSE(BuildProgram(options).ok());
}

// The slices that the ranks of a shard group hold of each tensor add up to the whole tensor.
TEST(BuildProgramTest, ShardsOfAParameterAreAllOfItOnce) {
  constexpr int kShards = 3;
  std::map<std::string, int64_t> held, whole;
  for (int rank = 0; rank < kShards; ++rank) {
    BuildOptions options = Small(1, 1, 1);
    options.mesh.degrees[Axis::kDataShard] = kShards;
    options.mesh.coordinates[Axis::kDataShard] = rank;
    options.zero_stage = 3;
    const Program program = BuildProgram(options).value();
    for (const ParameterEntry& entry : program.parameters) {
      int64_t rows = 0;
      for (const ParameterPart& part : entry.parts) {
        EXPECT_EQ(part.row_begin, rows) << "parts lie one after the other";
        rows += part.local_shape[0];
        held[part.name] += part.local_shape[0];
        whole[part.name] = part.global_shape[0];
        EXPECT_LE(part.global_offset[0] + part.local_shape[0], part.global_shape[0]);
      }
      EXPECT_EQ(rows, program.value(entry.value).dims[0].local);
      EXPECT_EQ(program.value(entry.optimizer_states[0]).dims, program.value(entry.value).dims);
      EXPECT_EQ(program.value(entry.gradient).dims, program.value(entry.value).dims);
    }
  }
  EXPECT_EQ(held, whole);
}

TEST(BuildProgramTest, ZeroThreeKeepsNeitherGradientsNorParametersWhole) {
  BuildOptions options = Small(1, 1, 1);
  options.mesh.degrees[Axis::kDataShard] = 4;
  options.bucket_elements = 1;
  int64_t persistent[4], temporary[4];
  for (int zero_stage = 0; zero_stage < 4; ++zero_stage) {
    options.zero_stage = zero_stage;
    const Program program = BuildProgram(options).value();
    const MemoryPlan plan = PlanMemory(program, {2}, false, 1);
    persistent[zero_stage] = plan.persistent_bytes;
    temporary[zero_stage] = plan.temporary_bytes;
  }
  // Bytes per parameter, of 16: 8 + 8/4, 4 + 12/4, 16/4; the difference is alignment.
  EXPECT_NEAR(static_cast<double>(persistent[1]) / persistent[0], 10.0 / 16, 0.05);
  EXPECT_NEAR(static_cast<double>(persistent[2]) / persistent[0], 7.0 / 16, 0.05);
  EXPECT_NEAR(static_cast<double>(persistent[3]) / persistent[0], 4.0 / 16, 0.05);
  // Values gathered and computed for one microbatch are freed at once.
  EXPECT_LT(temporary[3] - temporary[0], (persistent[0] - persistent[3]) / 3);
}

// Fewer key and value heads than tensor ranks.
BuildOptions WithSharedHeads(int heads, int rank, int zero_stage) {
  BuildOptions options = Small(1, 4, 1);
  options.model.num_key_value_heads = heads;
  options.zero_stage = zero_stage;
  options.mesh.coordinates[Axis::kTensor] = rank;
  options.mesh.degrees[Axis::kDataShard] = zero_stage > 0 ? 4 : 1;
  return options;
}

TEST(BuildProgramTest, BuildsAndVerifiesEveryRankThatSharesHeads) {
  for (const int heads : {1, 2}) {
    for (int rank = 0; rank < 4; ++rank) {
      for (const int zero_stage : {0, 1, 2, 3}) {
        for (const int variant : {0, 1, 2, 3, 4, 5, 6}) {
          BuildOptions options = WithSharedHeads(heads, rank, zero_stage);
          options.sequence_parallel = variant > 0;
          options.compute_dtype = variant > 1 ? DType::kBFloat16 : DType::kFloat32;
          options.tensor_parts = variant == 2 ? 2 : 1;
          if (variant == 3) options.float8 = Float8Recipe::kDelayed;
          if (variant == 4) options.float8 = Float8Recipe::kBlockwise;
          if (variant == 5) options.param_dtype = DType::kFloat32;
          if (variant == 6 && zero_stage == 3) options.shard_run = 2;
          const auto program = BuildProgram(options);
          ASSERT_TRUE(program.ok())
              << "variant " << variant << ", zero_stage " << zero_stage << ": " << program.status();
        }
      }
    }
  }
}

TEST(BuildProgramTest, OneRankOfARunCountsTheHeadsThatItShares) {
  for (const int heads : {1, 2}) {
    for (int rank = 0; rank < 4; ++rank) {
      const Program program = BuildProgram(WithSharedHeads(heads, rank, 0)).value();
      int checked = 0;
      for (const ParameterEntry& entry : program.parameters) {
        const Value& value = program.value(entry.value);
        if (value.name.find("kv_proj") == std::string::npos) continue;
        ++checked;
        EXPECT_EQ(entry.counted_in_norm, rank % (4 / heads) == 0);
        EXPECT_EQ(entry.parts[0].global_shape[0],
                  heads * program.value(entry.value).dims[0].local / 2);
        EXPECT_EQ(ToText(value.placement),
                  fmt::format("tensor:S(0,segments,run {},within R)", 4 / heads));
        EXPECT_EQ(ToText(program.value(entry.unsharded).placement[Axis::kTensor]), "S(0,segments)");
      }
      EXPECT_EQ(checked, 3);
    }
  }
}

// The verifier reports the missing sum over the ranks that share a head.
TEST(BuildProgramTest, AHeadsGradientThatIsNotSummedIsRefused) {
  Program program = BuildProgram(WithSharedHeads(2, 1, 0)).value();
  std::vector<Op>& reduce = program.ops[0][static_cast<int>(Piece::kReduce)];
  const size_t sums = std::erase_if(reduce, [&](const Op& op) {
    return op.kind == OpKind::kAllReduce &&
           CollectiveOf(op).group == WithinRun(GroupOf(Axis::kTensor), 2);
  });
  EXPECT_EQ(sums, 3u);
  EXPECT_FALSE(VerifyProgram(program).ok());
}

TEST(BuildProgramTest, BuildsAndVerifiesEveryRankOverContext) {
  for (const bool sequence_parallel : {false, true}) {
    for (const int pipe : {1, 2}) {
      for (int rank = 0; rank < 2 * 2 * pipe; ++rank) {
        BuildOptions options = Small(1, 2, pipe, rank / 4, true);
        options.model.num_key_value_heads = 4;
        options.mesh.degrees[Axis::kContext] = 2;
        options.mesh.coordinates[Axis::kContext] = rank / 2 % 2;
        options.mesh.coordinates[Axis::kTensor] = rank % 2;
        options.sequence_parallel = sequence_parallel;
        options.document_mask = true;
        const auto program = BuildProgram(options);
        EXPECT_TRUE(program.ok()) << program.status();
      }
    }
  }
}

TEST(BuildProgramTest, RefusesWhatDoesNotFitNamingNumberAndRelation) {
  const auto refuse = [](const BuildOptions& options, const char* words) {
    const auto program = BuildProgram(options);
    ASSERT_FALSE(program.ok()) << words;
    EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(program.status())), testing::HasSubstr(words));
  };
  refuse(Small(1, 3, 1),
         "num_attention_heads 4 must be a positive multiple of tensor_parallel_degree 3");
  BuildOptions options = Small(1, 6, 1);
  options.model.num_attention_heads = 12;
  options.model.num_key_value_heads = 4;
  refuse(options,
         "num_key_value_heads 4 must be positive, and a multiple or a divisor of "
         "tensor_parallel_degree 6");
  options = Small(1, 4, 1);
  options.zero_stage = 1;
  options.whole_matrices = true;
  refuse(options, "whole matrices with num_key_value_heads 2 below tensor_parallel_degree 4");
  options = Small(1, 4, 1);
  options.mesh.degrees[Axis::kContext] = 2;
  options.model.num_attention_heads = 8;
  refuse(options,
         "num_key_value_heads 2 must be a multiple of tensor_parallel_degree 4 × "
         "context_parallel_degree 2");
  options = Small(1, 1, 1);
  options.model.num_key_value_heads = 3;
  refuse(options, "num_attention_heads 4 must be a multiple of num_key_value_heads 3");
  options = Small(1, 2, 1);
  options.model.vocab_size = 1;
  refuse(options, "vocab_size 1 is below tensor_parallel_degree 2");
  options = Small(1, 1, 1);
  options.model.head_dim = 5;
  refuse(options, "head_dim 5 must be even");
  options = Small(1, 1, 1);
  options.mesh.degrees[Axis::kContext] = 3;
  refuse(options, "sequence_length 8 must be a multiple of 2 · context_parallel_degree 3");
  options.mesh.degrees[Axis::kContext] = 4;
  refuse(options,
         "num_key_value_heads 2 must be a multiple of tensor_parallel_degree 1 × "
         "context_parallel_degree 4");
  options = Small(1, 2, 1);
  options.sequence_parallel = true;
  options.micro_batch_size = options.sequence_length = 1;
  refuse(options, "1 rows (micro_batch_size 1 · sequence_length 1) are below");
  options = Small(1, 1, 1);
  options.chunks[0].block_count = 7;
  refuse(options, "blocks [0, 7)");
  options = Small(1, 1, 1);
  options.model.blocks[3] = 'M';
  refuse(options, "block 3 is 'M'");
}

TEST(BuildProgramTest, BuildsAndVerifiesEveryRankOfExperts) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const bool spread : {false, true}) {
      for (const bool gathers : {false, true}) {
        BuildOptions options = StageOptions(SmallMixture("AEAE"), {}, 2, 8);
        options.mesh.degrees = PerAxis{{1, 2, 2, 2, 2, 2}};
        options.model.num_key_value_heads = 4;
        options.sequence_parallel = true;
        options.spread_experts_over_tensor = spread;
        options.gather_dispatch = gathers;
        options.zero_stage = zero_stage;
        for (int rank = 0; rank < 4; ++rank) {
          options.mesh.coordinates[Axis::kExpert] = rank / 2;
          options.mesh.coordinates[Axis::kTensor] = rank % 2;
          const auto program = BuildProgram(options);
          ASSERT_TRUE(program.ok()) << program.status();
          for (const ParameterEntry& entry : program->parameters) {
            const bool is_bank =
                program->value(entry.value).name.find("gate_up_proj") != std::string::npos &&
                program->value(entry.value).name.find("shared") == std::string::npos;
            if (!is_bank) continue;
            // 4 experts with gate|up [2·10, 16] over expert 2 × tensor 2, and ZeRO over data_shard
            // 2.
            const Value& master = program->value(entry.value);
            EXPECT_EQ(master.elements(), 4 * 2 * 10 * 16 / 4 / (zero_stage > 0 ? 2 : 1));
          }
        }
      }
    }
  }
}

TEST(BuildProgramTest, RefusesExpertsThatDoNotFitNamingTheNumbers) {
  BuildOptions options = StageOptions(SmallMixture("AE"), {}, 1, 9);
  options.mesh.degrees[Axis::kTensor] = 2;
  options.mesh.degrees[Axis::kExpert] = 2;
  EXPECT_THAT(std::string(Message(BuildProgram(options).status())),
              testing::HasSubstr("tensor_parallel_degree 2 with expert_parallel_degree 2 needs"));
  options.sequence_parallel = true;
  EXPECT_TRUE(BuildProgram(options).ok());
  options.spread_experts_over_tensor = true;
  EXPECT_TRUE(BuildProgram(options).ok());
  options.gather_dispatch = true;
  EXPECT_THAT(std::string(Message(BuildProgram(options).status())),
              testing::HasSubstr("9 rows of a microbatch are not a multiple of tensor"));
  options.gather_dispatch = false;
  options.model.experts.num_experts = 6;
  EXPECT_THAT(
      std::string(Message(BuildProgram(options).status())),
      testing::HasSubstr("num_experts 6 must be a multiple of expert_parallel_degree 2 × "));
  options.spread_experts_over_tensor = false;
  options.model.experts.moe_intermediate_size = 1;
  EXPECT_THAT(std::string(Message(BuildProgram(options).status())),
              testing::HasSubstr("moe_intermediate_size 1 is below tensor_parallel_degree 2"));
}

TEST(BuildProgramTest, TiedEmbeddingsAreOneParameterOnOneStageAndOwnedByTwoElse) {
  const auto tied_on = [](const Program& program) {
    int count = 0;
    for (const ParameterEntry& entry : program.parameters) {
      if (entry.parts[0].name == "model.embed_tokens.weight") ++count;
      EXPECT_NE(entry.parts[0].name, "lm_head.weight");
      EXPECT_EQ(entry.tied, program.mesh.degrees[Axis::kPipe] > 1 &&
                                entry.parts[0].name == "model.embed_tokens.weight");
    }
    return count;
  };
  EXPECT_EQ(tied_on(BuildProgram(Small(1, 1, 1, 0, true)).value()), 1);
  EXPECT_EQ(tied_on(BuildProgram(Small(1, 1, 3, 0, true)).value()), 1);
  EXPECT_EQ(tied_on(BuildProgram(Small(1, 1, 3, 1, true)).value()), 0);
  EXPECT_EQ(tied_on(BuildProgram(Small(1, 1, 3, 2, true)).value()), 1);
}

TEST(BuildProgramTest, LogitsOfALargeBatchNeverExistAtOnce) {
  BuildOptions options = Small(1, 1, 1);
  options.micro_batch_size = 3;
  options.sequence_length = 1100;
  const Program program = BuildProgram(options).value();
  for (const Value& value : program.values) {
    if (!value.name.ends_with("logits")) continue;
    EXPECT_EQ(value.dims[0].local, 1100) << value.name;
    EXPECT_EQ(value.role, Role::kActivation) << value.name;
  }
  int hoisted = 0;
  for (const Op& op : program.Ops(0, Piece::kForward)) hoisted += op.gradient_in_forward;
  EXPECT_EQ(hoisted, 3 * 2);  // the gradients of x and of the table, per chunk
  for (const Op& op : program.Ops(0, Piece::kBackward))
    EXPECT_NE(op.kind, OpKind::kSoftmaxStatsGrad);
  // I begins with the gradient that F saved.
  EXPECT_EQ(program.Ops(0, Piece::kInputGradient)[0].kind, OpKind::kAllReduce);
  EXPECT_EQ(program.value(program.Ops(0, Piece::kInputGradient)[0].inputs[0]).role, Role::kSaved);
}

std::vector<int64_t> SavedBytes(const BuildOptions& options, bool split_backward) {
  const Program program = BuildProgram(options).value();
  return PlanMemory(program, {1}, split_backward, 1).saved_bytes;
}

TEST(BuildProgramTest, RecomputationSavesLessTheMoreItMakesAgain) {
  using Mode = Recomputation::Mode;
  for (const bool split_backward : {false, true}) {
    BuildOptions options = Small(1, 1, 2);
    const int64_t none = SavedBytes(options, split_backward)[0];
    options.recomputation.mode = Mode::kSelective;
    const int64_t selective = SavedBytes(options, split_backward)[0];
    options.recomputation.mode = Mode::kFull;
    const int64_t full = SavedBytes(options, split_backward)[0];
    EXPECT_LT(selective, none);
    options.recomputation.layers = 1;
    const int64_t first_layer = SavedBytes(options, split_backward)[0];
    EXPECT_LT(first_layer, none);
    if (split_backward) continue;  // recomputed values that W reads stay alive until W
    EXPECT_LT(full, selective);
    EXPECT_LT(full, first_layer);
  }
}

TEST(BuildProgramTest, FullRecomputationSavesWhatEntersEachLayerAlone) {
  BuildOptions options = Small(1, 1, 2, 1);
  options.recomputation.mode = Recomputation::Mode::kFull;
  const Program program = BuildProgram(options).value();
  std::vector<std::string> saved;
  for (const Value& value : program.values) {
    if (value.role == Role::kSaved && value.view_of == kNoValue) saved.push_back(value.name);
  }
  EXPECT_THAT(saved, testing::Each(testing::Not(testing::HasSubstr("qkv"))));
  double forward = 0;
  for (const Op& op : program.Ops(0, Piece::kForward)) {
    if (op.layer >= 0) forward += ModelFlops(op, program);
  }
  const PartFlops flops = ModelFlops(program, 0);
  EXPECT_GT(flops.recomputed, 0);
  // The last matmul of each layer serves only the next layer, so it is not recomputed.
  EXPECT_LT(flops.recomputed, forward);
  EXPECT_DOUBLE_EQ(flops.total(), ModelFlops(BuildProgram(Small(1, 1, 2, 1)).value(), 0).total());
}

}  // namespace
}  // namespace troupe::model
