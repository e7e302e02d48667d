// The texts of programs that stages become. To accept a change of the golden one, run with
// TROUPE_UPDATE_GOLDEN=1 and review the difference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/golden/golden_file.h"
#include "kernels/backend/plain_program.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/runtime/segment.h"
#include "kernels/xla/runtime/stage_programs.h"
#include "kernels/xla/runtime/xla_backend.h"
#include "kernels/xla/testing/recording_client.h"
#include "model/build.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

// The client of these tests; an error where there is none. It is never destroyed: the plugin's own
// statics end before those of this program.
const StatusOr<std::unique_ptr<xla::Client>>& PluginClient() {
  static const auto& client =
      *new StatusOr<std::unique_ptr<xla::Client>>([]() -> StatusOr<std::unique_ptr<xla::Client>> {
        TROUPE_ASSIGN_OR_RETURN(const std::string path, xla::FindPlugin(""));
        return xla::Client::Make(path, 1);
      }());
  return client;
}

// Prepares a program and returns the texts of its compiled parts.
std::vector<std::string> TextsOf(const model::Program& program, const model::MemoryPlan& plan) {
  std::vector<std::string> texts;
  xla::RecordingClient client(**PluginClient(), [&](std::string_view text) {
    texts.emplace_back(text);
    xla::RecordInFolder(text);
  });
  xla::ProgramCache programs(client, {{"xla_backend_optimization_level", int64_t{0}},
                                      {"xla_cpu_use_fusion_emitters", false}});
  auto backend = xla::XlaBackend::Make(programs, {});
  TROUPE_CHECK_OK(backend.status());
  const auto prepared = (*backend)->Prepare(program, plan, nullptr);
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  return texts;
}

// Three operations of an MLP: the norm of two rows, the matmul with gate and up, the gate.
model::Program NormAndGate() {
  model::Program program = PlainProgram();
  const auto value = [&](DType dtype, const std::vector<int64_t>& extents, const char* name) {
    return AddPlainValue(program, dtype, extents, name);
  };
  const model::ValueId x = value(DType::kBFloat16, {2, 4}, "x");
  const model::ValueId weight = value(DType::kFloat32, {4}, "norm");
  const model::ValueId normed = value(DType::kBFloat16, {2, 4}, "normed");
  const model::ValueId rstd = value(DType::kFloat32, {2}, "rstd");
  const model::ValueId gate_up_proj = value(DType::kBFloat16, {6, 4}, "gate_up_proj");
  const model::ValueId gate_up = value(DType::kBFloat16, {2, 6}, "gate_up");
  const model::ValueId gated = value(DType::kBFloat16, {2, 3}, "gated");
  AddPlainOp(program, {.kind = OpKind::kRmsNorm,
                       .attributes = model::NormAttributes{1e-5},
                       .inputs = {x, weight},
                       .outputs = {normed, rstd}});
  AddPlainOp(program,
             {.kind = OpKind::kMatmul, .inputs = {normed, gate_up_proj}, .outputs = {gate_up}});
  AddPlainOp(program, {.kind = OpKind::kSwiGlu, .inputs = {gate_up}, .outputs = {gated}});
  return program;
}

// Writes the forward piece of the ranks of a stage. No plugin is needed.
xla::SegmentText ForwardOf(const std::vector<model::Program>& ranks,
                           const model::MemoryPlan& plan) {
  std::vector<const model::Program*> pointers;
  for (const model::Program& program : ranks) pointers.push_back(&program);
  const auto stage = xla::StagePrograms::Make(pointers);
  TROUPE_CHECK_OK(stage.status());
  const xla::StageOps& ops = stage->Ops(0, model::Piece::kForward);
  const xla::ValueUse values;
  const auto text = xla::WriteSegment(*stage, plan, {ops, 0, ops.size(), false, values});
  TROUPE_CHECK_OK(text.status());
  return *text;
}

// These lines as comments.
std::string Commented(std::string_view text) {
  std::string commented;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    commented += line.empty() ? "//\n" : "// " + line + "\n";
  return commented;
}

// The golden file begins with the stage program's own text as comments.
// The order in which an operation's operands are lowered is that in which a compiler evaluates the
// arguments of a call. The golden texts are those of GCC, which compiles what users run.
#ifdef __clang__
constexpr bool kOrdersOperandsOtherwise = true;
#else
constexpr bool kOrdersOperandsOtherwise = false;
#endif
constexpr char kOtherOrder[] = "Clang evaluates arguments in another order than GCC";

TEST(ProgramTexts, ASmallStageIsGolden) {
  if (kOrdersOperandsOtherwise) GTEST_SKIP() << kOtherOrder;
  const model::Program program = NormAndGate();
  ExpectGolden("kernels/xla/runtime/golden/norm_and_gate.mlir",
               Commented(model::ToText(program)) + ForwardOf({program}, PlainPlan(program)).module);
}

// Two ranks of tensor with six rows of the vocabulary and three columns of an MLP: the embedding
// has each rank's first row in a table by partition id, the MLP a branch for each rank. The golden
// file begins with the first rank's operations and with the values that the arguments are.
TEST(ProgramTexts, ASmallSliceIsGolden) {
  if (kOrdersOperandsOtherwise) GTEST_SKIP() << kOtherOrder;
  model::ModelConfig config = model::SmallModel("D");
  config.hidden_size = 4;
  config.intermediate_size = 3;
  config.vocab_size = 6;
  std::vector<model::Program> ranks;
  for (const int rank : {0, 1}) {
    model::MeshView mesh;
    mesh.degrees[model::Axis::kTensor] = 2;
    mesh.coordinates[model::Axis::kTensor] = rank;
    const auto program = model::BuildProgram(model::StageOptions(config, mesh, 1, 2));
    ASSERT_TRUE(program.ok()) << program.status();
    ranks.push_back(*program);
  }
  const xla::SegmentText text =
      ForwardOf(ranks, model::PlanMemory(ranks[0], {1}, /*split_backward=*/false, /*threads=*/1));
  const std::string stage = model::ToText(ranks[0]);
  const size_t begin = stage.find("  forward\n"), end = stage.find("  backward\n");
  ASSERT_LT(begin, end);
  std::string operations = stage.substr(begin, end - begin);
  for (size_t a = 0; a < text.arguments.size(); ++a)
    operations += fmt::format("  %a{}: {}\n", a, ranks[0].value(text.arguments[a]).name);
  ExpectGolden("kernels/xla/runtime/golden/slice_of_two.mlir", Commented(operations) + text.module);
}

// tests/interop/stablehlo_test.py checks that every plugin can read these texts.
TEST(ProgramTexts, StagesOfEveryKindOfModelAreWritten) {
  if (!PluginClient().ok()) GTEST_SKIP() << PluginClient().status();
  for (const bool experts : {false, true}) {
    model::ModelConfig config = experts ? model::SmallMixture("AE") : model::SmallModel("AD");
    config.hidden_dropout = 0.1;
    model::BuildOptions options = model::StageOptions(config, {}, 2, 160);
    options.compute_dtype = experts ? DType::kBFloat16 : DType::kFloat32;
    options.document_mask = experts;
    const auto program = model::BuildProgram(options);
    ASSERT_TRUE(program.ok()) << program.status();
    // Forward, backward (the mixture's in two halves) and update at least.
    EXPECT_GE(TextsOf(*program, model::PlanMemory(*program, {1}, experts, 1)).size(), 3u);
  }
}

// The copy in which a parameter is multiplied is the updated parameter in another type. If it were
// selected by itself, a TPU's compiler would keep a second copy of all parameters in float32.
TEST(ProgramTexts, AnUpdateSelectsNoCopyOfAParameter) {
  if (!PluginClient().ok()) GTEST_SKIP() << PluginClient().status();
  model::BuildOptions options = model::StageOptions(model::SmallModel("AD"), {}, 2, 160);
  options.compute_dtype = DType::kBFloat16;
  const auto program = model::BuildProgram(options);
  ASSERT_TRUE(program.ok()) << program.status();
  int updates = 0;
  for (const std::string& text : TextsOf(*program, model::PlanMemory(*program, {1}, false, 1))) {
    if (text.find("stablehlo.power") == std::string::npos) continue;  // AdamW's corrections
    ++updates;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("stablehlo.select") == std::string::npos) continue;
      EXPECT_EQ(line.find("bf16"), std::string::npos) << line;
    }
  }
  EXPECT_EQ(updates, 1);
}

// A compiler that knew both conversions of gate and up, of the forward pass and of the gradient,
// would keep the float32 of every layer from one to the other.
TEST(ProgramTexts, AGradientConvertsGateAndUpAgain) {
  if (!PluginClient().ok()) GTEST_SKIP() << PluginClient().status();
  const auto barriers = [](DType compute_dtype) {
    model::BuildOptions options = model::StageOptions(model::SmallModel("AD"), {}, 2, 64);
    options.compute_dtype = compute_dtype;
    const auto program = model::BuildProgram(options).value();
    int count = 0;
    for (const std::string& text : TextsOf(program, model::PlanMemory(program, {1}, false, 1))) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);)
        count += line.find("stablehlo.optimization_barrier") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(barriers(DType::kBFloat16), 1);
  EXPECT_EQ(barriers(DType::kFloat32), 0);
}

}  // namespace
}  // namespace troupe::kernels
