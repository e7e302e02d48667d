// Makes the instruction of each operation kind: one switch, and helpers for its longer cases. The
// switch lists every kind of the model, so that a kind without a kernel does not compile.
#include <omp.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/cpu/all_reduce.h"
#include "kernels/cpu/all_to_all.h"
#include "kernels/cpu/gather_scatter.h"
#include "kernels/cpu/grouped_matmul.h"
#include "kernels/cpu/preparation.h"
#include "kernels/cpu/quantize.h"
#include "kernels/cpu/relayout.h"
#include "kernels/cpu/routed_rows.h"
#include "kernels/cpu/router.h"
#include "kernels/cpu/shift.h"
#include "kernels/cpu/update.h"
#include "kernels/op_arguments.h"
#include "kernels/op_sequence.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

template <typename Args>
std::unique_ptr<Instruction> OnKernel(const Args& args, Kernel<Args> kernel, int threads,
                                      Overwrites overwrites = Overwrites::kNever,
                                      Kernel<Args> finish = nullptr) {
  return std::make_unique<KernelInstruction<Args>>(args, kernel, threads, overwrites, finish);
}

class ProductInstruction : public Instruction {
 public:
  ProductInstruction(Product* product, const void* a, const void* b, void* c, char* scratch,
                     bool accumulates, Overwrites overwrites, int threads)
      : product_(product),
        a_(a),
        b_(b),
        c_(c),
        scratch_(scratch),
        accumulates_(accumulates),
        overwrites_(overwrites),
        threads_(threads) {}
  Status Run(const RunOptions& options) override {
    omp_set_num_threads(threads_);  // for parallel regions of this thread, which oneDNN opens
    return product_->Run(a_, b_, c_, accumulates_ && Accumulates(overwrites_, options), scratch_);
  }

 private:
  Product* const product_;
  const void* const a_;
  const void* const b_;
  void* const c_;
  char* const scratch_;
  const bool accumulates_;
  const Overwrites overwrites_;
  const int threads_;
};

// A matmul of FP8 operands, which are first dequantised into scratch.
class Float8Product : public Instruction {
 public:
  Float8Product(const DequantizeArgs& a, const DequantizeArgs& b, std::unique_ptr<Instruction> product, int threads)
      : a_(a), b_(b), product_(std::move(product)), threads_(threads) {}
  Status Run(const RunOptions& options) override {
    for (const DequantizeArgs* args : {&a_, &b_}) {
      Parallel(threads_, [&](int part) { Dequantize(*args, part, threads_); });
    }
    return product_->Run(options);
  }

 private:
  const DequantizeArgs a_, b_;
  const std::unique_ptr<Instruction> product_;
  const int threads_;
};

class CopyInstruction : public Instruction {
 public:
  CopyInstruction(const void* from, void* to, int64_t bytes)
      : from_(from), to_(to), bytes_(bytes) {}
  Status Run(const RunOptions&) override {
    if (from_ != to_) std::memcpy(to_, from_, bytes_);
    return OkStatus();
  }

 private:
  const void* const from_;
  void* const to_;
  const int64_t bytes_;
};

}  // namespace

StatusOr<std::unique_ptr<Instruction>> Preparation::MakeOne(const Op& op, int buffer) {
  const auto in = [&](int i) { return Address(op.inputs[i], buffer); };
  const auto out = [&](int i) { return Address(op.outputs[i], buffer); };
  const auto floats = [](char* address) { return reinterpret_cast<float*>(address); };
  const OpArguments arguments(program_, op,
                              [&](ValueId value) { return Address(value, buffer); });
  const int column = arguments.bfloat16() ? 1 : 0;  // index in the kernel table
  const int64_t elements = arguments.elements();
  const int threads = ThreadsFor(elements);
  const auto on_scratch = [&](auto args, auto kernel) {
    args.scratch = scratch();
    return OnKernel(args, kernel, threads);
  };
  const Overwrites overwrites = OverwritesOf(program_, op);
  switch (op.kind) {
    case OpKind::kEmbedding:
      return OnKernel(arguments.Embedding(), kernels_.embedding[column], threads);
    case OpKind::kEmbeddingGrad:
      return OnKernel(arguments.EmbeddingGrad(), kernels_.embedding_grad[column], threads,
                      overwrites);
    case OpKind::kRmsNorm:
    case OpKind::kAddRmsNorm:
      return OnKernel(arguments.RmsNorm(), kernels_.rms_norm[column], threads);
    case OpKind::kRmsNormGrad: {
      RmsNormGradArgs args = arguments.RmsNormGrad();
      args.partial = floats(scratch());
      return OnKernel(args, kernels_.rms_norm_grad[column], threads, overwrites,
                      kernels_.rms_norm_grad_finish);
    }
    case OpKind::kAdd:
      return OnKernel(arguments.Add(), kernels_.add[column], threads);
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight: {
      const ProductShape shape = OfBFloat16(ProductShapeOf(program_, op));
      NoteProduct(op, *products_.at(shape));
      const auto product = [&](const void* a, const void* b, char* working) {
        return std::make_unique<ProductInstruction>(products_.at(shape).get(), a, b, out(0), working,
                                                    op.kind == OpKind::kMatmulGradWeight, overwrites,
                                                    ThreadsFor(shape));
      };
      if (!model::IsFloat8(program_.value(op.inputs[0]).dtype)) return product(in(0), in(1), scratch());
      DequantizeArgs a = arguments.Factor(0), b = arguments.Factor(1);
      a.y = scratch();
      b.y = scratch() + WidenedBytes(op.inputs[0]);
      return std::make_unique<Float8Product>(
          a, b, product(a.y, b.y, scratch() + WidenedBytes(op.inputs[0]) + WidenedBytes(op.inputs[1])),
          ThreadsFor(shape));
    }
    case OpKind::kQuantize:
      return MakeQuantize(arguments.Quantize(), kernels_, scratch(), threads, overwrites);
    case OpKind::kAmaxHistory:
      return MakeAmaxHistory(reinterpret_cast<const double*>(in(0)), arguments.AmaxHistories());
    case OpKind::kRope: {
      RopeArgs args = arguments.Rope();
      rope_tables_.Place(std::get<model::RopeAttributes>(op.attributes), tables(), &args);
      return OnKernel(args, kernels_.rope[column], threads);
    }
    case OpKind::kDropout:
      return OnKernel(arguments.Dropout(), kernels_.dropout[column], threads);
    case OpKind::kSplitHeads:
    case OpKind::kJoinHeads:
      return OnKernel(arguments.SplitHeads(), kernels_.split_heads, threads);
    case OpKind::kAttention:
      return on_scratch(arguments.Attention(), kernels_.attention[column]);
    case OpKind::kAttentionGrad:
      return on_scratch(arguments.AttentionGrad(), kernels_.attention_grad[column]);
    case OpKind::kAttentionPart:
      return on_scratch(arguments.AttentionPart(), kernels_.attention[column]);
    case OpKind::kAttentionPartGrad:
      return on_scratch(arguments.AttentionPartGrad(), kernels_.attention_grad[column]);
    case OpKind::kSwiGlu:
      return OnKernel(arguments.SwiGlu(), kernels_.swiglu[column], threads);
    case OpKind::kSwiGluGrad:
      return OnKernel(arguments.SwiGluGrad(), kernels_.swiglu_grad[column], threads);
    case OpKind::kSoftmaxStats:
      return OnKernel(arguments.SoftmaxStats(), kernels_.softmax_stats[column],
                      ThreadsFor(program_.value(op.inputs[0]).elements()));
    case OpKind::kSoftmaxStatsGrad:
      return OnKernel(arguments.SoftmaxStatsGrad(), kernels_.softmax_stats_grad[column], threads);
    case OpKind::kSoftmaxStatsAndGrad:
      return OnKernel(arguments.SoftmaxStatsAndGrad(), kernels_.softmax_stats_and_grad[column],
                      ThreadsFor(program_.value(op.inputs[0]).elements()));
    case OpKind::kSoftmaxRescale:
    case OpKind::kSoftmaxRescaleGrad:
      return OnKernel(arguments.SoftmaxRescale(), kernels_.softmax_rescale, threads);
    case OpKind::kCrossEntropy:
      return OnKernel(arguments.CrossEntropy(), kernels_.cross_entropy, 1, overwrites);
    case OpKind::kCrossEntropyGrad:
      return OnKernel(arguments.CrossEntropyGrad(), kernels_.cross_entropy_grad, threads);
    case OpKind::kCopy:
      return std::make_unique<CopyInstruction>(in(0), out(0), program_.value(op.inputs[0]).bytes());
    case OpKind::kCast:
      if (program_.value(op.outputs[0]).dtype == model::DType::kFloat32) {
        const WidenArgs args = {in(0), reinterpret_cast<float*>(out(0)), arguments.elements()};
        return OnKernel(args, kernels_.widen, threads);
      }
      return OnKernel(arguments.Cast(), kernels_.cast, threads);
    case OpKind::kAllReduce:
      return MakeCollective(op, buffer);
    case OpKind::kReduceScatter:
      return MakeReduceScatter(op, buffer);
    case OpKind::kAllGather: {
      Communicator* const communicator = CommunicatorOf(op, find_communicator_);
      const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
      const model::Value& whole = program_.value(op.outputs[0]);
      std::vector<size_t> bytes =
          BlockElements(whole, attributes.cut, model::GroupSize(program_.mesh, attributes.group));
      for (size_t& block : bytes) block *= static_cast<size_t>(SizeOf(whole.dtype));
      return cpu::MakeAllGather(in(0), out(0), std::move(bytes), PurposeOf(attributes.purpose),
                                communicator, UnderWayOf(op));
    }
    case OpKind::kExchangeHeads:
      return MakeExchangeHeads(ExchangeOf(op), in(0), out(0), scratch(),
                               CommunicatorOf(op, find_communicator_));
    case OpKind::kShift: {
      const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
      const ShiftArgs args = {in(0), out(0), program_.value(op.inputs[0]).bytes(),
                              attributes.shift, PurposeOf(attributes.purpose)};
      return MakeShift(args, CommunicatorOf(op, find_communicator_), UnderWayOf(op));
    }
    case OpKind::kRelayout: {
      const auto element_bytes = static_cast<size_t>(SizeOf(program_.value(op.inputs[0]).dtype));
      return MakeRelayout(RowRelayout(program_, op, element_bytes), in(0), out(0), scratch(),
                          CommunicatorOf(op, find_communicator_));
    }
    case OpKind::kWait: {
      const auto begun = under_way_.find(op.inputs[0]);
      if (begun == under_way_.end()) return Internal("it waits for nothing that was begun");
      return std::make_unique<Wait>(begun->second);
    }
    case OpKind::kAccumulate:
      return OnKernel(arguments.Accumulate(), kernels_.accumulate, threads, overwrites);
    case OpKind::kAllToAll:
      return MakeExchange(op, buffer);
    case OpKind::kGatherRouted:
      return MakeGatherRouted(RoutedOf(op, buffer), CommunicatorOf(op, find_communicator_));
    case OpKind::kScatterRouted:
      return MakeScatterRouted(RoutedOf(op, buffer), CommunicatorOf(op, find_communicator_));
    case OpKind::kGroupedMatmul:
    case OpKind::kGroupedMatmulGradInput:
    case OpKind::kGroupedMatmulGradWeight:
      return MakeGrouped(op, buffer);
    case OpKind::kRouterLogits:
      return OnKernel(arguments.RouterLogits(), kernels_.router_logits[column],
                      ThreadsFor(program_.value(op.inputs[0]).elements()));
    case OpKind::kRouterLogitsGradInput:
      return OnKernel(arguments.RouterLogitsGradInput(), kernels_.router_logits_grad_input[column],
                      threads);
    case OpKind::kRouterLogitsGradWeight:
      return OnKernel(arguments.RouterLogitsGradWeight(),
                      kernels_.router_logits_grad_weight[column],
                      ThreadsFor(program_.value(op.inputs[1]).elements()), overwrites);
    case OpKind::kRouterTopK:
      return OnKernel(arguments.RouterTopK(), &RouterTopK, 1);
    case OpKind::kRouterTopKGrad:
      return OnKernel(arguments.RouterTopKGrad(), &RouterTopKGrad, 1);
    case OpKind::kRouterLoad:
      return OnKernel(arguments.RouterLoad(), &RouterLoad, 1);
    case OpKind::kRouterSlots:
      return OnKernel(arguments.RouterSlots(), &RouterSlots, 1);
    case OpKind::kRouterLoss:
      return OnKernel(arguments.RouterLoss(), &RouterLoss, 1, overwrites);
    case OpKind::kRouterLossGrad:
      return OnKernel(arguments.RouterLossGrad(), &RouterLossGrad, 1);
    case OpKind::kRouterBias:
      return OnKernel(arguments.RouterBias(), &RouterBias, 1);
    case OpKind::kPermute:
      return OnKernel(arguments.Permute(), kernels_.permute[column], threads);
    case OpKind::kPermuteGrad:
    case OpKind::kCombine:
      return OnKernel(arguments.Combine(), kernels_.combine[column], threads);
    case OpKind::kCombineGrad:
      return OnKernel(arguments.CombineGrad(), kernels_.combine_grad[column], threads);
    case OpKind::kControlTotals:
    case OpKind::kControlRouted:
    case OpKind::kSumOfSquares:
    case OpKind::kControlReduce:
    case OpKind::kControlHalt:
    case OpKind::kAdamW:
      return MakeUpdate(op);
  }
  return Internal("operation kind {} is unknown", static_cast<int>(op.kind));
}

void Preparation::NoteProduct(const Op& op, const Product& product) {
  const model::DType used = product.is_float32() ? model::DType::kFloat32 : model::DType::kBFloat16;
  executed_products_.Note(program_, op, used, used);
}

std::unique_ptr<Instruction> Preparation::MakeGrouped(const Op& op, int buffer) {
  const ProductShape shape = TileOf(op, 1);
  GroupedProductArgs args{shape.kind,
                          shape.bfloat16,
                          Address(op.inputs[0], buffer),
                          Address(op.inputs[1], buffer),
                          Address(op.outputs[0], buffer),
                          reinterpret_cast<const int32_t*>(Address(op.inputs[2], buffer)),
                          Extent(op.inputs[2], 0),
                          std::get<model::GroupedAttributes>(op.attributes).local_experts,
                          shape.k,
                          shape.n,
                          scratch(),
                          {}};
  if (!shape.bfloat16) executed_products_.Note(program_, op, model::DType::kFloat32, model::DType::kFloat32);
  if (shape.bfloat16) {
    NoteProduct(op, *products_.at(TileOf(op, kRowTiles[0])));
    for (size_t tile = 0; tile < kRowTiles.size(); ++tile) {
      args.tiles[tile] = products_.at(TileOf(op, kRowTiles[tile])).get();
    }
  }
  const int64_t rows_of_one = Extent(op.inputs[0], 0) / args.experts;
  return MakeGroupedProduct(args, OverwritesOf(program_, op),
                            ThreadsFor(TileOf(op, std::max<int64_t>(1, rows_of_one))));
}

std::unique_ptr<Instruction> Preparation::MakeUpdate(const Op& op) {
  auto* control = reinterpret_cast<double*>(Address(op.inputs[0], 0));
  if (op.kind == OpKind::kControlReduce) {
    return MakeControlReduce(CommunicatorOf(op, find_communicator_), control);
  }
  if (op.kind == OpKind::kControlTotals) {
    return MakeControlTotals(std::get<model::ControlAttributes>(op.attributes).rank,
                             reinterpret_cast<const double*>(Address(op.inputs[1], 0)), control);
  }
  if (op.kind == OpKind::kControlHalt) {
    return MakeControlHalt(control, reinterpret_cast<double*>(Address(op.inputs[1], 0)));
  }
  if (op.kind == OpKind::kControlRouted) {
    std::vector<RouterTotals> totals;
    for (size_t i = 1; i < op.inputs.size(); ++i) {
      totals.push_back({reinterpret_cast<const double*>(Address(op.inputs[i], 0)),
                        Extent(op.inputs[i], 0) - model::kRouterLanes});
    }
    return MakeControlRouted(std::move(totals), control);
  }
  if (op.kind == OpKind::kSumOfSquares) {
    std::vector<FloatRange> gradients;
    for (size_t i = 1; i < op.inputs.size(); ++i) {
      gradients.push_back({reinterpret_cast<const float*>(Address(op.inputs[i], 0)),
                           program_.value(op.inputs[i]).elements()});
    }
    return MakeSumOfSquares(std::get<model::ControlAttributes>(op.attributes).rank,
                            std::move(gradients), reinterpret_cast<double*>(scratch()), control,
                            kernels_, threads_);
  }
  const auto floats = [this](ValueId value) { return reinterpret_cast<float*>(Address(value, 0)); };
  std::vector<AdamWEntry> entries;
  for (size_t p = 0; p < program_.parameters.size(); ++p) {
    const model::ParameterEntry& parameter = program_.parameters[p];
    const int64_t row = program_.value(parameter.value).row_elements();
    for (const auto& [rows, decays] : model::DecayRuns(parameter)) {
      const int64_t begin = rows.begin * row;
      AdamWEntry entry{};
      entry.args.parameter = floats(parameter.value) + begin;
      entry.args.exp_avg = floats(parameter.exp_avg) + begin;
      entry.args.exp_avg_sq = floats(parameter.exp_avg_sq) + begin;
      entry.args.gradient = floats(op.inputs[3 + p]) + begin;
      entry.args.copy =
          parameter.compute_copy == parameter.value
              ? nullptr
              : Address(parameter.compute_copy, 0) + begin * SizeOf(model::DType::kBFloat16);
      entry.args.count = rows.size() * row;
      entry.weight_decay = decays;
      entries.push_back(entry);
    }
  }
  return MakeAdamW(std::get<model::AdamWAttributes>(op.attributes), control, floats(op.inputs[1]),
                   floats(op.inputs[2]), std::move(entries), kernels_, threads_);
}

}  // namespace troupe::kernels::cpu
