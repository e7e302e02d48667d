// Makes the commands of each operation kind: one switch, and helpers for its longer cases. The
// switch lists every kind of the model, so that a kind without a kernel does not compile.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/preparation.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/update.h"
#include "kernels/cuda/widen.h"
#include "kernels/op_sequence.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {

using model::Op;
using model::OpKind;
using model::ValueId;

Status Preparation::MakeInto(Commands* commands, const Op& op, int buffer, bool accumulate) {
  const auto in = [&](size_t i) { return Address(op.inputs[i], buffer); };
  const auto out = [&](size_t i) { return Address(op.outputs[i], buffer); };
  const auto launch_all = [&](std::span<const KernelLaunch> kernels) {
    for (const KernelLaunch& kernel : kernels) commands->emplace_back(Stream::kCompute, kernel);
    return OkStatus();
  };
  const auto launch = [&](const KernelLaunch& kernel) { return launch_all({&kernel, 1}); };
  const OpArguments arguments(program_, op, [&](ValueId value) { return Address(value, buffer); });
  const bool bfloat16 = arguments.bfloat16();
  switch (op.kind) {
    case OpKind::kEmbedding:
      return launch(Embedding(arguments.Embedding(), bfloat16));
    case OpKind::kEmbeddingGrad: {
      EmbeddingGradArgs args = arguments.EmbeddingGrad();
      args.accumulate = accumulate;
      void* const scratch = TakeBytes(EmbeddingGradScratchBytes(args.rows, args.vocabulary));
      TROUPE_RETURN_IF_ERROR(launch_all(ListEmbeddingRows(args, scratch)));
      return launch(EmbeddingGrad(args, scratch, bfloat16));
    }
    case OpKind::kRmsNorm:
    case OpKind::kAddRmsNorm:
      return launch(RmsNorm(arguments.RmsNorm(), bfloat16));
    case OpKind::kRmsNormGrad: {
      RmsNormGradArgs args = arguments.RmsNormGrad();
      args.accumulate = accumulate;
      args.partial = Take<float>(RmsNormGradBlocks(args.rows, args.hidden) * args.hidden);
      return launch_all(std::array{RmsNormGrad(args, bfloat16), RmsNormGradFinish(args)});
    }
    case OpKind::kAdd:
      return launch(Add(arguments.Add(), bfloat16));
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight:
      return AddProduct(commands, op, arguments, accumulate);
    case OpKind::kQuantize: {
      QuantizeArgs args = arguments.Quantize();
      args.accumulate = accumulate;
      args.partial = reinterpret_cast<float*>(TakeBytes(QuantizeScratchBytes(args)));
      return launch_all(Quantize(args));
    }
    case OpKind::kAmaxHistory: {
      const std::vector<AmaxHistoryEntry> entries = arguments.AmaxHistories();
      return launch(AmaxHistory(Table(entries), static_cast<int64_t>(entries.size()),
                                reinterpret_cast<const double*>(in(0))));
    }
    case OpKind::kRope: {
      RopeArgs args = arguments.Rope();
      rope_tables_.Place(std::get<model::RopeAttributes>(op.attributes),
                         At(layout_.bytes()), &args);
      return launch(Rope(args, bfloat16));
    }
    case OpKind::kDropout:
      return launch(Dropout(arguments.Dropout(), bfloat16));
    case OpKind::kSplitHeads:
    case OpKind::kJoinHeads:
      return launch(SplitHeads(arguments.SplitHeads()));
    case OpKind::kAttention:
      return AddAttention(commands, arguments.Attention(), bfloat16);
    case OpKind::kAttentionPart:
      return launch(Attention(arguments.AttentionPart(), bfloat16));
    case OpKind::kAttentionGrad:
      return AddAttentionGrad(commands, arguments.AttentionGrad(), bfloat16);
    case OpKind::kAttentionPartGrad:
      AddOwnAttentionGrad(commands, arguments.AttentionPartGrad(), bfloat16);
      return OkStatus();
    case OpKind::kSwiGlu:
      return launch(SwiGlu(arguments.SwiGlu(), bfloat16));
    case OpKind::kSwiGluGrad:
      return launch(SwiGluGrad(arguments.SwiGluGrad(), bfloat16));
    case OpKind::kSoftmaxStats:
      return launch(SoftmaxStats(arguments.SoftmaxStats(), bfloat16));
    case OpKind::kSoftmaxStatsGrad:
      return launch(SoftmaxStatsGrad(arguments.SoftmaxStatsGrad(), bfloat16));
    case OpKind::kSoftmaxStatsAndGrad:
      return launch(SoftmaxStatsAndGrad(arguments.SoftmaxStatsAndGrad(), bfloat16));
    case OpKind::kSoftmaxRescale:
    case OpKind::kSoftmaxRescaleGrad:
      return launch(SoftmaxRescale(arguments.SoftmaxRescale()));
    case OpKind::kCrossEntropy: {
      CrossEntropyArgs args = arguments.CrossEntropy();
      args.accumulate = accumulate;
      return launch(CrossEntropy(args));
    }
    case OpKind::kCrossEntropyGrad:
      return launch(CrossEntropyGrad(arguments.CrossEntropyGrad()));
    case OpKind::kCopy:
      AddCopy(commands, in(0), out(0), program_.value(op.inputs[0]).bytes());
      return OkStatus();
    case OpKind::kAccumulate: {
      AccumulateArgs args = arguments.Accumulate();
      args.accumulate = accumulate;
      return launch(Accumulate(args));
    }
    case OpKind::kCast:
      if (program_.value(op.outputs[0]).dtype == model::DType::kFloat32) {
        return launch(Widen({in(0), reinterpret_cast<float*>(out(0)), arguments.elements()}));
      }
      return launch(Cast(arguments.Cast()));
    case OpKind::kGroupedMatmul:
    case OpKind::kGroupedMatmulGradInput:
    case OpKind::kGroupedMatmulGradWeight: {
      ProductArgs args = arguments.Product();
      args.accumulate = accumulate;
      const model::DType used = bfloat16 ? model::DType::kBFloat16 : model::DType::kFloat32;
      executed_products_.Note(program_, op, used, used);
      return launch(GroupedMatmul(args, bfloat16));
    }
    case OpKind::kRouterLogits:
      return launch(RouterLogits(arguments.RouterLogits(), bfloat16));
    case OpKind::kRouterLogitsGradInput:
      return launch(RouterLogitsGradInput(arguments.RouterLogitsGradInput(), bfloat16));
    case OpKind::kRouterLogitsGradWeight: {
      RouterLogitsGradWeightArgs args = arguments.RouterLogitsGradWeight();
      args.accumulate = accumulate;
      void* const scratch = TakeBytes(RouterLogitsGradWeightScratchBytes(args));
      return launch_all(RouterLogitsGradWeight(args, scratch, bfloat16));
    }
    case OpKind::kRouterTopK: {
      const RouterTopKArgs args = arguments.RouterTopK();
      return launch_all(RouterTopK(args, TakeBytes(RouterTopKScratchBytes(args))));
    }
    case OpKind::kRouterTopKGrad:
      return launch(RouterTopKGrad(arguments.RouterTopKGrad()));
    case OpKind::kRouterLoad: {
      const RouterLoadArgs args = arguments.RouterLoad();
      return launch_all(RouterLoad(args, TakeBytes(RouterLoadScratchBytes(args))));
    }
    case OpKind::kRouterSlots: {
      const RouterSlotsArgs args = arguments.RouterSlots();
      return launch_all(RouterSlots(args, TakeBytes(RouterSlotsScratchBytes(args))));
    }
    case OpKind::kRouterLoss: {
      RouterLossArgs args = arguments.RouterLoss();
      args.accumulate = accumulate;
      return launch_all(RouterLoss(args, TakeBytes(RouterLossScratchBytes(args.rows))));
    }
    case OpKind::kRouterLossGrad:
      return launch(RouterLossGrad(arguments.RouterLossGrad()));
    case OpKind::kRouterBias:
      return launch(RouterBias(arguments.RouterBias()));
    case OpKind::kPermute:
      return launch(Permute(arguments.Permute(), bfloat16));
    case OpKind::kPermuteGrad:
    case OpKind::kCombine:
      return launch(Combine(arguments.Combine(), bfloat16));
    case OpKind::kCombineGrad:
      return launch(CombineGrad(arguments.CombineGrad(), bfloat16));
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kAllToAll:
    case OpKind::kShift:
    case OpKind::kExchangeHeads:
    case OpKind::kRelayout:
    case OpKind::kGatherRouted:
    case OpKind::kScatterRouted:
      return AddCollective(commands, op, buffer);
    case OpKind::kWait: {
      const auto begun = under_way_.find(op.inputs[0]);
      if (begun == under_way_.end()) return Internal("it waits for nothing that was begun");
      stalls_.AddWait(commands, Stalls::Of(begun->second.purpose), begun->second.over);
      return OkStatus();
    }
    case OpKind::kControlTotals:
      return launch(ControlTotals(std::get<model::ControlAttributes>(op.attributes).rank,
                                  reinterpret_cast<const double*>(in(1)),
                                  reinterpret_cast<double*>(in(0))));
    case OpKind::kControlRouted:
      AddControlRouted(commands, op);
      return OkStatus();
    case OpKind::kSumOfSquares:
      AddSumOfSquares(commands, op);
      return OkStatus();
    case OpKind::kControlReduce:
      return AddControlReduce(commands, op);
    case OpKind::kControlHalt:
      return launch(ControlHalt(reinterpret_cast<double*>(in(0)), reinterpret_cast<double*>(in(1))));
    case OpKind::kAdamW:
      AddAdamW(commands, op);
      return OkStatus();
  }
  return Internal("operation kind {} is unknown", static_cast<int>(op.kind));
}

Status Preparation::AddProduct(Commands* commands, const Op& op, const OpArguments& arguments,
                               bool accumulate) {
  ProductArgs args = arguments.Product();
  const ProductShape shape = ProductShapeOf(program_, op);
  args.accumulate = accumulate && shape.kind == ProductKind::kWeightGradient;
  if (shape.float8 != Float8Scaling::kNone) return AddFloat8Product(commands, op, arguments, args, shape);
  return AddProductOf(commands, op, args, shape);
}

Status Preparation::AddFloat8Product(Commands* commands, const Op& op, const OpArguments& arguments, ProductArgs args,
                                     const ProductShape& shape) {
  DequantizeArgs a = arguments.Factor(0), b = arguments.Factor(1);
  LibraryProduct* product = nullptr;
  if (SuitsLibrary(args)) {
    TROUPE_ASSIGN_OR_RETURN(product, LibraryProductOf(shape));
  }
  if (product != nullptr) {
    ProductScales scales = {a.scale, b.scale};
    if (shape.float8 == Float8Scaling::kBlocks) {
      for (const auto& [factor, scale] : {std::pair(&a, &scales.a), std::pair(&b, &scales.b)}) {
        float* const made = Take<float>(LibraryScaleCount(*factor));
        commands->emplace_back(Stream::kCompute, LibraryScales(*factor, made));
        *scale = made;
      }
    }
    void* const workspace = TakeBytes(product->workspace_bytes());
    const auto enqueue = [=](Stream stream) {
      return product->Enqueue(args.a, args.b, args.c, args.accumulate, workspace, stream, scales);
    };
    commands->emplace_back(Stream::kCompute, LibraryCommand{enqueue});
    executed_products_.Note(program_, op, program_.value(op.inputs[0]).dtype,
                            program_.value(op.inputs[1]).dtype);
    return OkStatus();
  }
  if (libraries_.products != nullptr) NoteFallback(OperationName(program_, op) + ": " + kFloat8Fallback);
  for (DequantizeArgs* factor : {&a, &b}) {
    factor->y = TakeBytes(factor->rows * factor->columns * model::SizeOf(model::DType::kBFloat16));
    commands->emplace_back(Stream::kCompute, Dequantize(*factor));
  }
  args.a = a.y;
  args.b = b.y;
  return AddProductOf(commands, op, args, OfBFloat16(shape));
}

bool Preparation::SuitsLibrary(const ProductArgs& args) {
  return std::ranges::all_of(
      std::array<const void*, 3>{args.a, args.b, args.c}, [](const void* address) {
        return reinterpret_cast<uintptr_t>(address) % kLibraryAlignment == 0;
      });
}

Status Preparation::AddProductOf(Commands* commands, const Op& op, const ProductArgs& args, const ProductShape& shape) {
  LibraryProduct* product = nullptr;
  const model::DType used = shape.bfloat16 ? model::DType::kBFloat16 : model::DType::kFloat32;
  executed_products_.Note(program_, op, used, used);
  if (SuitsLibrary(args)) {
    TROUPE_ASSIGN_OR_RETURN(product, LibraryProductOf(shape));
  }
  if (product == nullptr) {
    if (libraries_.products != nullptr) NoteFallback(OperationName(program_, op) + ": own kernel");
    commands->emplace_back(Stream::kCompute, Matmul(args, shape.bfloat16));
    return OkStatus();
  }
  void* const workspace = TakeBytes(product->workspace_bytes());
  const auto enqueue = [=](Stream stream) {
    return product->Enqueue(args.a, args.b, args.c, args.accumulate, workspace, stream, {});
  };
  commands->emplace_back(Stream::kCompute, LibraryCommand{enqueue});
  return OkStatus();
}

void Preparation::NoteFallback(const std::string& text) {
  if (std::ranges::find(fallbacks_, text) == fallbacks_.end()) fallbacks_.push_back(text);
}

StatusOr<LibraryProduct*> Preparation::LibraryProductOf(const ProductShape& shape) {
  if (libraries_.products == nullptr) return nullptr;
  auto found = library_products_.find(shape);
  if (found == library_products_.end()) {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<LibraryProduct> product, libraries_.products->Prepare(shape));
    found = library_products_.emplace(shape, std::move(product)).first;
  }
  return found->second.get();
}

void Preparation::AddControlRouted(Commands* commands, const Op& op) {
  std::vector<RouterTotals> totals;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    totals.push_back({reinterpret_cast<const double*>(Address(op.inputs[i], 0)),
                      program_.value(op.inputs[i]).dims[0].local - model::kRouterLanes});
  }
  commands->emplace_back(Stream::kCompute,
                         ControlRouted(Table(totals), static_cast<int64_t>(totals.size()),
                                       reinterpret_cast<double*>(Address(op.inputs[0], 0))));
}

void Preparation::AddSumOfSquares(Commands* commands, const Op& op) {
  std::vector<GradientTensor> gradients;
  std::vector<int64_t> counts;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    const int64_t count = program_.value(op.inputs[i]).elements();
    gradients.push_back({reinterpret_cast<const float*>(Address(op.inputs[i], 0)), count});
    counts.push_back(count);
  }
  const std::vector<UpdatePart> parts = UpdateParts(counts);
  const auto num_parts = static_cast<int64_t>(parts.size());
  const SumOfSquaresTensors args = {Table(gradients),
                                    Table(parts),
                                    num_parts,
                                    Take<double>(num_parts),
                                    reinterpret_cast<double*>(Address(op.inputs[0], 0)),
                                    std::get<model::ControlAttributes>(op.attributes).rank};
  if (num_parts > 0) commands->emplace_back(Stream::kCompute, SumOfSquares(args));
  commands->emplace_back(Stream::kCompute, SumOfSquaresFinish(args));
}

void Preparation::AddAdamW(Commands* commands, const Op& op) {
  const auto floats = [this](ValueId value) { return reinterpret_cast<float*>(Address(value, 0)); };
  std::vector<AdamWTensor> tensors;
  std::vector<int64_t> counts;
  for (size_t p = 0; p < program_.parameters.size(); ++p) {
    const model::ParameterEntry& entry = program_.parameters[p];
    const bool copies = entry.compute_copy != entry.value;
    const int64_t row = program_.value(entry.value).row_elements();
    for (const auto& [rows, decays] : model::DecayRuns(entry)) {
      const int64_t begin = rows.begin * row, count = rows.size() * row;
      tensors.push_back(
          {floats(entry.value) + begin, floats(entry.exp_avg) + begin,
           floats(entry.exp_avg_sq) + begin, floats(op.inputs[3 + p]) + begin,
           copies ? Address(entry.compute_copy, 0) + begin * SizeOf(model::DType::kBFloat16)
                  : nullptr,
           count, decays});
      counts.push_back(count);
    }
  }
  const std::vector<UpdatePart> parts = UpdateParts(counts);
  const auto& adamw = std::get<model::AdamWAttributes>(op.attributes);
  const AdamWTensors args = {Table(tensors),
                             Table(parts),
                             static_cast<int64_t>(parts.size()),
                             reinterpret_cast<const double*>(Address(op.inputs[0], 0)),
                             floats(op.inputs[1]),
                             floats(op.inputs[2]),
                             adamw.beta1,
                             adamw.beta2,
                             adamw.eps,
                             adamw.weight_decay,
                             adamw.max_norm};
  if (!parts.empty()) commands->emplace_back(Stream::kCompute, AdamW(args));
  commands->emplace_back(Stream::kCompute, CountAppliedStep(args.control, args.applied_steps));
}

}  // namespace troupe::kernels::cuda
