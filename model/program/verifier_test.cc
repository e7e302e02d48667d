#include "model/program/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "model/program/builder.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

// A program with every kind of collective: tensor 2, data 2; the first of two stages with a tied
// embedding, or a single stage.
Program Valid(int pipe, int stage, bool tied, bool overlap = true) {
  ModelConfig model = SmallModel("ADAD");
  model.tie_word_embeddings = tied;
  MeshView mesh;
  mesh.degrees[Axis::kPipe] = pipe;
  mesh.coordinates[Axis::kPipe] = stage;
  mesh.degrees[Axis::kTensor] = 2;
  mesh.degrees[Axis::kDataReplicate] = 2;
  BuildOptions options = StageOptions(model, mesh, 2, 8);
  options.overlap = overlap;
  return BuildProgram(options).value();
}

// Like Valid, with data_shard 2 as well.
Program ValidSharded(int zero_stage, int pipe, bool tied, int64_t samples = 2, int64_t tokens = 8,
                     int shard_run = 0) {
  ModelConfig model = SmallModel("ADAD");
  model.tie_word_embeddings = tied;
  MeshView mesh;
  mesh.degrees[Axis::kPipe] = pipe;
  mesh.degrees[Axis::kTensor] = 2;
  mesh.degrees[Axis::kDataReplicate] = 2;
  mesh.degrees[Axis::kDataShard] = shard_run > 0 ? 2 * shard_run : 2;
  BuildOptions options = StageOptions(model, mesh, samples, tokens);
  options.zero_stage = zero_stage;
  options.shard_run = shard_run;
  options.bucket_elements = 500;
  return BuildProgram(options).value();
}

// A mixture over data, expert, tensor and context; each rank has its own rows.
Program ValidMixture(bool spread, bool gathers) {
  ModelConfig model = SmallMixture("AE");
  model.experts.bias_update_rate = 0.1;
  model.num_key_value_heads = 4;
  MeshView mesh;
  mesh.degrees = PerAxis{{1, 2, 1, 2, 2, 2}};
  BuildOptions options = StageOptions(model, mesh, 2, 8);
  options.sequence_parallel = true;
  options.spread_experts_over_tensor = spread;
  options.gather_dispatch = gathers;
  return BuildProgram(options).value();
}

std::vector<Program> AllValid() {
  std::vector<Program> programs = {Valid(1, 0, false), Valid(2, 0, true), Valid(2, 1, true),
                                   Valid(3, 1, false)};
  for (const int zero_stage : {1, 2, 3}) {
    programs.push_back(ValidSharded(zero_stage, 1, true));
    programs.push_back(ValidSharded(zero_stage, 2, true));
  }
  for (const int pipe : {1, 2}) programs.push_back(ValidSharded(3, pipe, true, 2, 8, 2));
  for (const bool spread : {false, true}) {
    for (const bool gathers : {false, true}) programs.push_back(ValidMixture(spread, gathers));
  }
  return programs;
}

bool IsConversion(const Op& op) {
  return op.kind == OpKind::kAllReduce || op.kind == OpKind::kCopy ||
         op.kind == OpKind::kReduceScatter || op.kind == OpKind::kAllGather ||
         op.kind == OpKind::kControlReduce || op.kind == OpKind::kAllToAll ||
         op.kind == OpKind::kGatherRouted || op.kind == OpKind::kScatterRouted;
}

// Makes every operation that reads `from` read `to`.
void Rewire(Program& program, ValueId from, ValueId to) {
  const auto rewire = [&](std::vector<Op>& ops) {
    for (Op& op : ops) std::replace(op.inputs.begin(), op.inputs.end(), from, to);
  };
  for (auto& pieces : program.ops) {
    for (auto& ops : pieces) rewire(ops);
  }
  rewire(program.update);
}

// Calls `mutate` on a fresh copy of `program` for each conversion in it, with the operation lists
// that contain the conversion (those of backward are in I or W too) and the conversion.
void ForEachConversion(
    const Program& program,
    const std::function<void(Program&, const std::vector<std::vector<Op>*>&, const Op&)>& mutate) {
  const auto lists = [](Program& p) {
    std::vector<std::vector<Op>*> all;
    for (auto& pieces : p.ops) {
      for (auto& ops : pieces) all.push_back(&ops);
    }
    all.push_back(&p.update);
    return all;
  };
  Program original = program;
  std::vector<ValueId> seen;
  for (const std::vector<Op>* ops : lists(original)) {
    for (const Op& op : *ops) {
      if (!IsConversion(op) || std::count(seen.begin(), seen.end(), op.outputs[0])) continue;
      seen.push_back(op.outputs[0]);
      Program copy = program;
      std::vector<std::vector<Op>*> holders;
      for (std::vector<Op>* list : lists(copy)) {
        if (std::any_of(list->begin(), list->end(),
                        [&](const Op& o) { return o.outputs == op.outputs; })) {
          holders.push_back(list);
        }
      }
      mutate(copy, holders, op);
    }
  }
  ASSERT_GE(seen.size(), 9u);
}

TEST(VerifyProgramTest, AcceptsWhatTheBuilderMakes) {
  for (const Program& program : AllValid())
    EXPECT_TRUE(VerifyProgram(program).ok()) << VerifyProgram(program);
}

TEST(VerifyProgramTest, RefusesTheAttributesOfAnotherKind) {
  const Program valid = Valid(1, 0, false);
  const std::vector<Op>& forward = valid.Ops(0, Piece::kForward);
  const auto sum = std::ranges::find(forward, OpKind::kAllReduce, &Op::kind);
  ASSERT_NE(sum, forward.end());
  for (const Attributes& wrong : {Attributes(NoAttributes()), Attributes(CollectiveOf(*sum)),
                                  Attributes(ReduceScatterAttributes{CollectiveOf(*sum)})}) {
    EXPECT_FALSE(AreAttributesOf(OpKind::kAllReduce, wrong));
    const Status inferred = InferTypes(valid, OpKind::kAllReduce, wrong, sum->inputs).status();
    EXPECT_THAT(std::string(Message(inferred)), testing::HasSubstr("attributes of another kind"));
    Program program = valid;
    program.ops[0][static_cast<int>(Piece::kForward)][sum - forward.begin()].attributes = wrong;
    EXPECT_THAT(std::string(Message(VerifyProgram(program))),
                testing::HasSubstr("attributes of another kind"));
  }
}

TEST(VerifyProgramTest, FindsEveryMissingConversionWithReadersOfItsInput) {
  for (const Program& program : AllValid()) {
    ForEachConversion(
        program, [](Program& mutant, const std::vector<std::vector<Op>*>& holders, const Op& op) {
          for (std::vector<Op>* ops : holders) {
            std::erase_if(*ops, [&](const Op& o) { return o.outputs == op.outputs; });
          }
          for (size_t i = 0; i < op.outputs.size(); ++i)
            Rewire(mutant, op.outputs[i], op.inputs[i]);
          const Status status = VerifyProgram(mutant);
          EXPECT_EQ(status.code(), StatusCode::kInternal) << ToText(op, mutant);
        });
  }
}

TEST(VerifyProgramTest, FindsEveryMissingConversionWithReadersOfItsOutput) {
  for (const Program& program : AllValid()) {
    ForEachConversion(
        program, [](Program& mutant, const std::vector<std::vector<Op>*>& holders, const Op& op) {
          for (std::vector<Op>* ops : holders) {
            std::erase_if(*ops, [&](const Op& o) { return o.outputs == op.outputs; });
          }
          EXPECT_EQ(VerifyProgram(mutant).code(), StatusCode::kInternal) << ToText(op, mutant);
        });
  }
}

TEST(VerifyProgramTest, FindsEveryRepeatedConversion) {
  for (const Program& program : AllValid()) {
    ForEachConversion(
        program, [](Program& mutant, const std::vector<std::vector<Op>*>& holders, const Op& op) {
          for (std::vector<Op>* ops : holders) {
            const auto at = std::find_if(ops->begin(), ops->end(),
                                         [&](const Op& o) { return o.outputs == op.outputs; });
            const Op twin = *at;
            ops->insert(at, twin);
          }
          EXPECT_EQ(VerifyProgram(mutant).code(), StatusCode::kInternal) << ToText(op, mutant);
        });
  }
}

TEST(VerifyProgramTest, FindsEveryConversionAppliedToItsOwnResult) {
  for (const Program& program : AllValid()) {
    ForEachConversion(
        program, [](Program& mutant, const std::vector<std::vector<Op>*>& holders, const Op& op) {
          Op again = op;
          for (size_t i = 0; i < op.outputs.size(); ++i) {
            Value value = mutant.value(op.outputs[i]);
            value.view_of = op.outputs[i];
            value.view_offset = 0;
            value.id = static_cast<ValueId>(mutant.values.size());
            again.inputs[i] = op.outputs[i];
            again.outputs[i] = value.id;
            mutant.values.push_back(value);
            Rewire(mutant, op.outputs[i], value.id);
          }
          for (std::vector<Op>* ops : holders) {
            const auto at = std::find_if(ops->begin(), ops->end(),
                                         [&](const Op& o) { return o.outputs == op.outputs; });
            ops->insert(at + 1, again);
          }
          EXPECT_EQ(VerifyProgram(mutant).code(), StatusCode::kInternal) << ToText(op, mutant);
        });
  }
}

TEST(VerifyProgramTest, FindsAMicrobatchesGradientThatIsNeverScattered) {
  for (const int zero_stage : {2, 3}) {
    // Tied on one rank: the head of a large batch computes its part of the gradient in F, the
    // embedding in B.
    const Program valid = ValidSharded(zero_stage, 1, true, 3, 1100);
    const ValueId table = valid.parameters[0].gradient;
    int parts = 0;
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      Program program = valid;
      std::vector<ValueId> dropped;
      for (const Piece list : {piece, Piece::kWeightGradient}) {
        std::vector<Op>& ops = program.ops[0][static_cast<int>(list)];
        if (list != piece && piece == Piece::kForward) continue;
        std::erase_if(ops, [&](const Op& op) {
          if (op.kind != OpKind::kAccumulate || op.outputs[0] != table) return false;
          dropped.push_back(op.inputs[0]);
          return true;
        });
        std::erase_if(ops, [&](const Op& op) {
          return (op.kind == OpKind::kReduceScatter &&
                  std::count(dropped.begin(), dropped.end(), op.outputs[0]) > 0) ||
                 (op.kind == OpKind::kWait &&
                  std::count(dropped.begin(), dropped.end(), op.inputs[0]) > 0);
        });
      }
      parts += dropped.empty() ? 0 : 1;
      EXPECT_EQ(VerifyProgram(program).code(), StatusCode::kInternal) << Name(piece);
    }
    EXPECT_EQ(parts, 2);
  }
}

std::vector<Op>& OpsOf(Program& program, Piece piece) {
  return program.ops[0][static_cast<int>(piece)];
}

TEST(VerifyProgramTest, NamesOperationAxisAndPlacements) {
  Program program = Valid(1, 0, false, false);
  Op& reduce = OpsOf(program, Piece::kReduce)[0];
  const Op whole = reduce;
  // Omit the last gradient of the bucket from the reduction.
  reduce.inputs.pop_back();
  reduce.outputs.pop_back();
  Rewire(program, whole.outputs.back(), whole.inputs.back());
  const Status status = VerifyProgram(program);
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("sum_of_squares"));
  EXPECT_THAT(std::string(Message(status)),
              testing::HasSubstr("gradient head.table.gradient is P(sum) on axis data_replicate"));

  program = Valid(1, 0, false);
  std::vector<Op>& forward = OpsOf(program, Piece::kForward);
  ASSERT_EQ(forward[1].kind, OpKind::kAllReduce);
  const Op embedding_reduce = forward[1];
  forward.erase(forward.begin() + 1);
  Rewire(program, embedding_reduce.outputs[0], embedding_reduce.inputs[0]);
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::AllOf(testing::HasSubstr("rms_norm"), testing::HasSubstr("forward"),
                             testing::HasSubstr("embedding.partial is P(sum) on axis tensor")));
}

TEST(VerifyProgramTest, FindsAGradientThatIsCountedTwiceOrNotAtAll) {
  Program program = Valid(1, 0, false);
  for (Op& op : program.update) {
    if (op.kind == OpKind::kSumOfSquares) op.inputs.push_back(op.inputs.back());
  }
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("counts a gradient twice"));

  program = Valid(1, 0, false);
  for (Op& op : program.update) {
    if (op.kind == OpKind::kSumOfSquares) op.inputs.pop_back();
  }
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("is not counted on this rank"));

  program = Valid(1, 0, false);
  program.mesh.coordinates[Axis::kTensor] = 1;  // coordinate 0 counts the norms
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("norm is counted on this rank"));
}

// Each trainable parameter has exactly one optimizer; there may be several.
TEST(VerifyProgramTest, FindsAParameterThatIsUpdatedTwiceOrNotAtAll) {
  const Program valid = Valid(1, 0, false);
  const Op optimizer = valid.update.back();
  ASSERT_TRUE(UpdatesParameters(optimizer));
  const std::ptrdiff_t one = 5;  // operands of a parameter: gradient, master, copy, two states
  const auto first_end = optimizer.inputs.begin() + kUpdateScalars + one;
  Op first = optimizer, others = optimizer;
  first.inputs.assign(optimizer.inputs.begin(), first_end);
  others.inputs.erase(others.inputs.begin() + kUpdateScalars,
                      others.inputs.begin() + kUpdateScalars + one);
  const auto error = [&](const std::vector<Op>& optimizers) {
    Program program = valid;
    program.update.pop_back();
    program.update.insert(program.update.end(), optimizers.begin(), optimizers.end());
    return std::string(Message(VerifyProgram(program)));
  };
  EXPECT_EQ(error({first, others}), "");
  const std::string name = valid.value(valid.parameters[0].value).name;
  EXPECT_THAT(error({others}), testing::HasSubstr("no optimizer updates " + name));
  EXPECT_THAT(error({first, optimizer}), testing::HasSubstr(name + " is updated twice"));
  std::swap(first.inputs[kUpdateScalars + 3], first.inputs[kUpdateScalars + 4]);
  EXPECT_THAT(error({first, others}), testing::HasSubstr("the states of another parameter"));
  Program program = valid;
  std::swap(program.update[program.update.size() - 2], program.update.back());
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("adamw runs before count_step"));
}

TEST(VerifyProgramTest, FindsAHaltThatComesTooLateOrIsMissing) {
  BuildOptions options = StageOptions(SmallModel("AD"), {}, 2, 8);
  options.halts = true;
  const Program valid = BuildProgram(options).value();
  const size_t halt = valid.update.size() - 3;
  ASSERT_EQ(valid.update[halt].kind, OpKind::kControlHalt);
  Program program = valid;
  std::swap(program.update[halt], program.update[halt + 1]);
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("control_halt runs after count_step"));
  program = valid;
  program.update.erase(program.update.begin() + static_cast<std::ptrdiff_t>(halt));
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("0 control_halt, but a value for it"));
  // Before the word is reduced, ranks would halt at different steps.
  program = valid;
  std::swap(program.update[halt - 1], program.update[halt]);
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::AllOf(testing::HasSubstr("control_halt"),
                             testing::HasSubstr("control_word.reduced")));
}

TEST(VerifyProgramTest, FindsAWeightGradientAccumulatedTwiceAndAWrongFirstWriter) {
  Program program = Valid(1, 0, false);
  for (const Piece piece : {Piece::kBackward, Piece::kWeightGradient}) {
    std::vector<Op>& ops = OpsOf(program, piece);
    const auto at = std::find_if(ops.begin(), ops.end(),
                                 [](const Op& op) { return op.kind == OpKind::kMatmulGradWeight; });
    Op twin = *at;
    twin.first_writer = false;
    ops.insert(at + 1, twin);
  }
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("accumulated twice"));

  program = Valid(1, 0, false);
  for (const Piece piece : {Piece::kBackward, Piece::kWeightGradient}) {
    for (Op& op : OpsOf(program, piece)) op.first_writer = false;
  }
  EXPECT_THAT(std::string(Message(VerifyProgram(program))), testing::HasSubstr("first writer"));
}

TEST(VerifyProgramTest, FindsAReadOfWhatWasOverwrittenInPlace) {
  // Attention then reads q, k and v before the in-place rotation.
  Program program = Valid(1, 0, false);
  std::vector<Op>& forward = OpsOf(program, Piece::kForward);
  const auto rope = std::find_if(forward.begin(), forward.end(),
                                 [](const Op& op) { return op.kind == OpKind::kRope; });
  const auto attention = std::find_if(forward.begin(), forward.end(),
                                      [](const Op& op) { return op.kind == OpKind::kAttention; });
  ASSERT_EQ(StorageRoot(program, rope->outputs[0]), StorageRoot(program, rope->inputs[0]));
  attention->inputs[0] = rope->inputs[0];
  EXPECT_THAT(std::string(Message(VerifyProgram(program))),
              testing::HasSubstr("was overwritten by"));
}

TEST(VerifyProgramTest, FindsACollectiveThatIsUsedBeforeItsWait) {
  const Program valid = ValidSharded(3, 1, true);
  const auto is_wait = [](const Op& op) { return op.kind == OpKind::kWait; };
  const std::vector<Op>& forward = valid.Ops(0, Piece::kForward);
  const auto count = std::count_if(forward.begin(), forward.end(), is_wait);
  ASSERT_GT(count, 0);
  for (int w = 0; w < count; ++w) {
    Program late = valid, none = valid, twice = valid, early = valid;
    const auto nth = [&](Program& program) {
      std::vector<Op>& ops = OpsOf(program, Piece::kForward);
      auto at = std::find_if(ops.begin(), ops.end(), is_wait);
      for (int i = 0; i < w; ++i) at = std::find_if(at + 1, ops.end(), is_wait);
      return at;
    };
    // Move it to the end of the list, after the readers.
    std::rotate(nth(late), nth(late) + 1, OpsOf(late, Piece::kForward).end());
    EXPECT_THAT(std::string(Message(VerifyProgram(late))), testing::HasSubstr("is in use by"));
    OpsOf(none, Piece::kForward).erase(nth(none));
    EXPECT_EQ(VerifyProgram(none).code(), StatusCode::kInternal);
    OpsOf(twice, Piece::kForward).insert(nth(twice), Op(*nth(twice)));
    EXPECT_THAT(std::string(Message(VerifyProgram(twice))),
                testing::HasSubstr("waits for a collective that was not started"));
    std::rotate(OpsOf(early, Piece::kForward).begin(), nth(early), nth(early) + 1);
    EXPECT_THAT(std::string(Message(VerifyProgram(early))),
                testing::HasSubstr("waits for a collective that was not started"));
  }
}

}  // namespace
}  // namespace troupe::model
