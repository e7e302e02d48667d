// Measures the share of dispatch and combination in an MoE block: forward and backward of the block
// alone, with random rows, on one rank or with its experts spread over ranks that are threads of
// this process.
//
// Prints JSON: the median time of the block, the median time of only its operations that move rows
// (without router, experts and norm) on the same choices, and their share.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/flag_parser.h"
#include "base/sample_schema.h"
#include "bench/program_bench.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/backend/plain_program.h"
#include "kernels/backend/program_part.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/testing/testing.h"
#include "model/build.h"
#include "model/initialize.h"

namespace troupe {
namespace {

using model::Axis;
using model::OpKind;
using model::Piece;

struct Arguments {
  int ranks = 2;
  std::string dispatch = "all_to_all", dtype = "float32";
  int64_t hidden = 768, width = 2048, experts = 8, choices = 2, rows = 1024;
  int runs = 7;
};

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-bench-experts: {}\n", message);
  std::exit(2);
}

void AddFlags(FlagParser& parser, Arguments* arguments) {
  parser.AddNumber({"--ranks", "N", "expert ranks, which are threads of this process"},
                   {.least = 1}, &arguments->ranks);
  parser.AddWord({"--dispatch", "METHOD", "all_to_all or all_gather"}, {"all_to_all", "all_gather"},
                 &arguments->dispatch);
  parser.AddWord({"--dtype", "DTYPE", "compute dtype, float32 or bfloat16"},
                 {"float32", "bfloat16"}, &arguments->dtype);
  parser.AddNumber({"--hidden", "N", "hidden size"}, {.least = 1}, &arguments->hidden);
  parser.AddNumber({"--width", "N", "intermediate size of an expert"}, {.least = 1},
                   &arguments->width);
  parser.AddNumber({"--experts", "N", "experts"}, {.least = 1}, &arguments->experts);
  parser.AddNumber({"--choices", "N", "experts per token"}, {.least = 1}, &arguments->choices);
  parser.AddNumber({"--rows", "N", "tokens on each rank"}, {.least = 1}, &arguments->rows);
  parser.AddNumber({"--runs", "N", "measured runs, whose median is printed"}, {.least = 1},
                   &arguments->runs);
}

bool MovesRows(const model::Op& op) {
  switch (op.kind) {
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kAllToAll:
    case OpKind::kCombine:
    case OpKind::kCombineGrad:
    case OpKind::kRouterSlots:
      return true;
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
      return model::CollectiveOf(op).purpose == model::CollectivePurpose::kDispatch;
    default:
      return false;
  }
}

model::Program BlockProgram(const Arguments& arguments, int rank) {
  model::BuildOptions options;
  options.model.blocks = "E";
  options.model.hidden_size = arguments.hidden;
  options.model.num_attention_heads = options.model.num_key_value_heads = 1;
  options.model.head_dim = 2;
  options.model.intermediate_size = arguments.width;
  options.model.vocab_size = 2;
  options.model.experts.num_experts = arguments.experts;
  options.model.experts.num_experts_per_tok = arguments.choices;
  options.model.experts.moe_intermediate_size = arguments.width;
  options.mesh.degrees[Axis::kExpert] = arguments.ranks;
  options.mesh.coordinates[Axis::kExpert] = rank;
  options.chunks = {{.chunk = 0, .first_block = 0, .block_count = 1}};
  options.sequence_length = arguments.rows;
  options.gather_dispatch = arguments.dispatch == "all_gather";
  options.compute_dtype =
      arguments.dtype == "bfloat16" ? model::DType::kBFloat16 : model::DType::kFloat32;
  auto program = model::BuildProgram(options);
  if (!program.ok()) Refuse(ToString(program.status()));
  return *std::move(program);
}

void FillParameters(kernels::Executable& executable, const model::Program& program) {
  for (const model::State& state : program.states) {
    auto* out = static_cast<float*>(executable.Address(state.value, 0));
    model::FillInitial(1, program, state,
                       {out, static_cast<size_t>(program.value(state.value).elements())});
  }
  TROUPE_CHECK_OK(executable.RunInitialize());
}

// Times forward and backward after one warm-up run; the ranks start each run together.
double SecondsOf(kernels::Executable& executable, Communicator* all, int runs) {
  std::vector<double> seconds;
  for (int run = 0; run <= runs; ++run) {
    if (all != nullptr) TROUPE_CHECK_OK(all->Barrier());
    const double start = bench::Now();
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      TROUPE_CHECK_OK(executable.Run(0, piece, 0, {.first_microbatch = true}));
    }
    if (run > 0) seconds.push_back(bench::Now() - start);
  }
  return bench::Median(seconds);
}

// Copies the choices (and all other int32 values that the forward pass has left) from one
// executable to another.
void CopyChoices(kernels::Executable& from, kernels::Executable& to,
                 const model::Program& program) {
  for (const model::Op& op : program.Ops(0, Piece::kForward)) {
    for (const model::ValueId id : op.outputs) {
      const model::Value& value = program.value(id);
      if (value.dtype != model::DType::kInt32) continue;
      std::vector<std::byte> bytes(static_cast<size_t>(value.bytes()));
      TROUPE_CHECK_OK(from.Read(id, 0, bytes));
      TROUPE_CHECK_OK(to.Write(id, 0, bytes));
    }
  }
}

struct Seconds {
  double block = 0, moves = 0;
};

Seconds Measure(const Arguments& arguments, LoopbackCluster& cluster, int rank) {
  CollectiveNetwork& network = cluster.network(rank);
  std::vector<int> members;
  for (int r = 0; r < arguments.ranks; ++r) members.push_back(r);
  Communicator *expert = nullptr, *all = nullptr;
  if (arguments.ranks > 1) {
    expert = network.MakeCommunicator("expert", Purpose::kDispatch, members, "expert").value();
    all = network.MakeCommunicator("all", Purpose::kControl, members, "all").value();
    TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
  }
  const kernels::FindCommunicator find =
      [expert, all](const model::CollectiveGroup& group) -> Communicator* {
    if (group == model::GroupOf(Axis::kExpert)) return expert;
    return group.kind == model::CollectiveGroup::Kind::kAll ? all : nullptr;
  };
  const auto backend = kernels::CpuBackend::Make({.threads = 1}).value();
  const model::Program program = BlockProgram(arguments, rank);
  // Every value has its own memory, so that choices survive the computation.
  const model::MemoryPlan plan = kernels::PlainPlan(program);
  const auto block = backend->Prepare(program, plan, find).value();
  TROUPE_CHECK_OK(kernels::FillRandomly(*block, program));
  FillParameters(*block, program);
  const std::vector<float> ones(static_cast<size_t>(arguments.rows), 1.0f);
  TROUPE_CHECK_OK(
      block->Write(program.chunks[0].Input(channels::kWeights), 0, std::as_bytes(std::span(ones))));
  TROUPE_CHECK_OK(block->Run(0, Piece::kUnshard, 0, {}));
  Seconds seconds;
  seconds.block = SecondsOf(*block, all, arguments.runs);

  TROUPE_CHECK_OK(block->Run(0, Piece::kForward, 0, {.first_microbatch = true}));
  const model::Program reduced = kernels::OnlyOps(program, MovesRows);
  const auto moves = backend->Prepare(reduced, plan, find).value();
  TROUPE_CHECK_OK(kernels::FillRandomly(*moves, reduced));
  CopyChoices(*block, *moves, program);
  seconds.moves = SecondsOf(*moves, all, arguments.runs);
  TROUPE_CHECK_OK(network.Close(std::chrono::seconds(10)));
  return seconds;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  using namespace troupe;
  Arguments arguments;
  FlagParser parser({.name = "troupe-bench-experts",
                     .usage = "troupe-bench-experts [FLAG …]",
                     .summary = "Measures the share of dispatch and combination in the forward and "
                                "backward pass of one MoE block; prints one JSON line."});
  AddFlags(parser, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  LoopbackCluster cluster(arguments.ranks, {.ranks_on_host = arguments.ranks});
  std::vector<Seconds> seconds(static_cast<size_t>(arguments.ranks));
  cluster.Run(
      [&](int rank) { seconds[static_cast<size_t>(rank)] = Measure(arguments, cluster, rank); });
  fmt::print(
      R"({{"bench":"experts","ranks":{},"dispatch":"{}","dtype":"{}","rows":{},"hidden":{},)"
      R"("width":{},"experts":{},"choices":{},"block_seconds":{:.6f},"moves_seconds":{:.6f},)"
      R"("share":{:.4f}}})"
      "\n",
      arguments.ranks, arguments.dispatch, arguments.dtype, arguments.rows, arguments.hidden,
      arguments.width, arguments.experts, arguments.choices, seconds[0].block, seconds[0].moves,
      seconds[0].moves / seconds[0].block);
  return 0;
}
