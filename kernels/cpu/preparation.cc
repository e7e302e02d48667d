#include "kernels/cpu/preparation.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "kernels/cpu/all_reduce.h"
#include "kernels/cpu/gather_scatter.h"
#include "kernels/cpu/all_to_all.h"
#include "kernels/cpu/grouped_matmul.h"
#include "kernels/cpu/router.h"
#include "kernels/cpu/update.h"
#include "kernels/op_sequence.h"
#include "kernels/rope_frequencies.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

constexpr int64_t kPage = 4096;
constexpr int64_t kAlignment = 64;  // of values in the memory plan, bytes
// Below these the hand-over between threads costs more than it saves.
constexpr int64_t kSmallElements = 4096;
constexpr int64_t kSmallProduct = 1 << 19;  // multiply-adds

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

bool SameRotation(const model::RopeAttributes& a, const model::RopeAttributes& b) {
  return a.head_dim == b.head_dim && a.theta == b.theta && a.scaling.factor == b.scaling.factor &&
         a.scaling.low_freq_factor == b.scaling.low_freq_factor &&
         a.scaling.high_freq_factor == b.scaling.high_freq_factor &&
         a.scaling.original_max_position_embeddings == b.scaling.original_max_position_embeddings;
}

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
    omp_set_num_threads(threads_);  // of this thread's regions: the library's
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

Status Preparation::Measure() {
  const auto each = [this](auto&& body) -> Status {
    for (const auto& chunk : program_.ops) {
      for (const auto& piece : chunk) {
        for (const Op& op : piece) TROUPE_RETURN_IF_ERROR(body(op));
      }
    }
    for (const Op& op : program_.update) TROUPE_RETURN_IF_ERROR(body(op));
    for (const Op& op : program_.initialize) TROUPE_RETURN_IF_ERROR(body(op));
    return OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(each([this](const Op& op) {
    if (op.kind == OpKind::kAttention) {
      longest_sample_ =
          std::max(longest_sample_, std::get<model::AttentionAttributes>(op.attributes).tokens);
    }
    return OkStatus();
  }));
  TROUPE_RETURN_IF_ERROR(each([this](const Op& op) {
    if (Status status = MeasureOp(op); !status.ok()) {
      return Annotate(status, OperationName(program_, op));
    }
    return OkStatus();
  }));

  int64_t offset = RoundUp(plan_.persistent_bytes, kPage);
  for (size_t chunk = 0; chunk < plan_.saved_bytes.size(); ++chunk) {
    saved_offsets_.push_back(offset);
    offset += RoundUp(plan_.saved_bytes[chunk], kPage) * plan_.buffers[chunk];
  }
  temporary_offset_ = offset;
  offset += RoundUp(plan_.temporary_bytes, kPage);
  scratch_offset_ = offset;
  // The plan's figure is the device profile's; what this library version needs decides.
  offset += std::max(plan_.scratch_bytes, tables_bytes_ + working_bytes_);
  TROUPE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(offset));
  arena_.emplace(std::move(arena));
  for (const RopeTable& table : tables_) FillTable(table);
  return OkStatus();
}

Status Preparation::MeasureOp(const Op& op) {
  int64_t bytes = 0;
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight:
      return MeasureProduct(op, ShapeOf(op));
    case OpKind::kGroupedMatmul:
    case OpKind::kGroupedMatmulGradInput:
    case OpKind::kGroupedMatmulGradWeight:
      if (program_.value(op.inputs[0]).dtype != model::DType::kBFloat16) break;
      for (const int64_t rows : kRowTiles) {
        TROUPE_RETURN_IF_ERROR(MeasureProduct(op, TileOf(op, rows)));
      }
      break;
    case OpKind::kAttention:
    case OpKind::kAttentionGrad: {
      const auto& attributes = std::get<model::AttentionAttributes>(op.attributes);
      bytes = threads_ * kernels_.attention_scratch_bytes(
                             {attributes.tokens, attributes.head_dim,
                              program_.value(op.outputs[0]).dtype == model::DType::kBFloat16,
                              op.kind == OpKind::kAttentionGrad});
      break;
    }
    case OpKind::kRmsNormGrad:
      bytes = threads_ * Extent(op.inputs[1], 1) * static_cast<int64_t>(sizeof(float));
      break;
    case OpKind::kReduceScatter:
      if (KeepsInput(op)) bytes = program_.value(op.inputs[0]).bytes();
      break;
    case OpKind::kExchangeHeads:
      bytes = 2 * static_cast<int64_t>(ExchangeOf(op).bytes());
      break;
    case OpKind::kSumOfSquares:
      bytes = threads_ * static_cast<int64_t>(sizeof(double));
      break;
    case OpKind::kRope:
      // A program without attention: positions are at most its rows'.
      if (longest_sample_ == 0) longest_sample_ = Extent(op.inputs[0], 0);
      TableOf(std::get<model::RopeAttributes>(op.attributes));
      break;
    default:
      break;
  }
  working_bytes_ = std::max(working_bytes_, bytes);
  return OkStatus();
}

ProductShape Preparation::ShapeOf(const Op& op) const {
  const bool bfloat16 = program_.value(op.inputs[0]).dtype == model::DType::kBFloat16;
  const int64_t rows = Extent(op.inputs[0], 0);
  if (op.kind == OpKind::kMatmulGradWeight) {
    return {ProductKind::kWeightGradient, bfloat16, rows, Extent(op.inputs[1], 1),
            Extent(op.inputs[0], 1)};
  }
  const ProductKind kind =
      op.kind == OpKind::kMatmul ? ProductKind::kForward : ProductKind::kInputGradient;
  return {kind, bfloat16, rows, Extent(op.inputs[1], 1), Extent(op.inputs[1], 0)};
}

ProductShape Preparation::TileOf(const Op& op, int64_t rows) const {
  const bool bfloat16 = program_.value(op.inputs[0]).dtype == model::DType::kBFloat16;
  const int64_t a = Extent(op.inputs[0], 1), other = Extent(op.outputs[0], 1);
  if (op.kind == OpKind::kGroupedMatmul) return {ProductKind::kForward, bfloat16, rows, a, other};
  const ProductKind kind = op.kind == OpKind::kGroupedMatmulGradInput
                               ? ProductKind::kInputGradient
                               : ProductKind::kWeightGradient;
  return {kind, bfloat16, rows, other, a};
}

Status Preparation::MeasureProduct(const Op& op, const ProductShape& shape) {
  std::unique_ptr<Product>& product = products_[shape];
  if (product == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(product, PrepareProduct(shape, level_, ThreadsFor(shape)));
  }
  const std::string implementation = product->implementation();
  if (implementation.find("ref") != std::string::npos) {
    fallbacks_.push_back(OperationName(program_, op) + ": " + implementation);
  }
  working_bytes_ = std::max(working_bytes_, product->scratch_bytes());
  return OkStatus();
}

Preparation::RopeTable& Preparation::TableOf(const model::RopeAttributes& attributes) {
  for (RopeTable& table : tables_) {
    if (SameRotation(table.attributes, attributes)) return table;
  }
  tables_.push_back({attributes, longest_sample_, tables_bytes_});
  tables_bytes_ += RoundUp(longest_sample_ * attributes.head_dim * 4 + attributes.head_dim * 4, 64);
  return tables_.back();
}

void Preparation::FillTable(const RopeTable& table) {
  const int64_t half = table.attributes.head_dim / 2;
  float* row = reinterpret_cast<float*>(arena_->base() + scratch_offset_ + table.offset);
  auto* frequencies = reinterpret_cast<double*>(row + table.rows * table.attributes.head_dim);
  for (int64_t i = 0; i < half; ++i) frequencies[i] = RopeFrequency(table.attributes, i);
  for (int64_t position = 0; position < table.rows; ++position, row += 2 * half) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

char* Preparation::Address(ValueId value, int buffer) const {
  const model::Location& location = plan_.locations[value];
  char* base = arena_->base() + location.offset;
  switch (location.region) {
    case model::Region::kPersistent:
      return base;
    case model::Region::kSaved:
      return base + saved_offsets_[location.chunk_index] +
             RoundUp(plan_.saved_bytes[location.chunk_index], kPage) * buffer;
    case model::Region::kTemporary:
      return base + temporary_offset_;
  }
  return base;
}

int Preparation::ThreadsFor(int64_t elements) const {
  return elements < kSmallElements ? 1 : threads_;
}

int Preparation::ThreadsFor(const ProductShape& shape) const {
  return shape.rows * shape.k * shape.n < kSmallProduct ? 1 : threads_;
}

StatusOr<Instructions> Preparation::Make(const std::vector<Op>& ops, int buffer) {
  Instructions instructions;
  instructions.reserve(ops.size());
  for (const Op& op : ops) {
    StatusOr<std::unique_ptr<Instruction>> instruction = MakeOne(op, buffer);
    if (!instruction.ok()) return Annotate(instruction.status(), OperationName(program_, op));
    (*instruction)->name = OperationName(program_, op);
    (*instruction)->gradient_in_forward = op.gradient_in_forward;
    instructions.push_back(std::move(*instruction));
  }
  return instructions;
}

StatusOr<std::unique_ptr<Instruction>> Preparation::MakeOne(const Op& op, int buffer) {
  const auto in = [&](int i) { return Address(op.inputs[i], buffer); };
  const auto out = [&](int i) { return Address(op.outputs[i], buffer); };
  const auto floats = [](char* address) { return reinterpret_cast<float*>(address); };
  const auto ints = [](char* address) { return reinterpret_cast<int32_t*>(address); };
  // The compute dtype's column of the kernel table, by the value that has that dtype.
  const auto column = [&](ValueId value) {
    return program_.value(value).dtype == model::DType::kBFloat16 ? 1 : 0;
  };
  const int64_t elements = op.outputs.empty() ? 0 : program_.value(op.outputs[0]).elements();
  const int threads = ThreadsFor(elements);
  const Overwrites overwrites = OverwritesOf(program_, op);
  switch (op.kind) {
    case OpKind::kEmbedding: {
      const int64_t offset = std::get<model::VocabAttributes>(op.attributes).vocab_offset;
      const EmbeddingArgs args{ints(in(0)),
                               in(1),
                               out(0),
                               Extent(op.inputs[0], 0),
                               Extent(op.inputs[1], 0),
                               Extent(op.inputs[1], 1),
                               offset};
      return OnKernel(args, kernels_.embedding[column(op.inputs[1])], threads);
    }
    case OpKind::kEmbeddingGrad: {
      const int64_t offset = std::get<model::VocabAttributes>(op.attributes).vocab_offset;
      const EmbeddingGradArgs args{ints(in(0)),
                                   in(1),
                                   floats(out(0)),
                                   Extent(op.inputs[0], 0),
                                   Extent(op.outputs[0], 0),
                                   Extent(op.outputs[0], 1),
                                   offset,
                                   false};
      return OnKernel(args, kernels_.embedding_grad[column(op.inputs[1])], threads,
                      overwrites);
    }
    case OpKind::kRmsNorm: {
      const float eps = static_cast<float>(std::get<model::NormAttributes>(op.attributes).eps);
      const RmsNormArgs args{
          in(0),  nullptr,        floats(in(1)),           nullptr,
          out(0), floats(out(1)), Extent(op.inputs[0], 0), Extent(op.inputs[0], 1),
          eps};
      return OnKernel(args, kernels_.rms_norm[column(op.inputs[0])], threads);
    }
    case OpKind::kAddRmsNorm: {
      const float eps = static_cast<float>(std::get<model::NormAttributes>(op.attributes).eps);
      const RmsNormArgs args{
          in(0),  in(1),          floats(in(2)),           out(0),
          out(1), floats(out(2)), Extent(op.inputs[0], 0), Extent(op.inputs[0], 1),
          eps};
      return OnKernel(args, kernels_.rms_norm[column(op.inputs[0])], threads);
    }
    case OpKind::kRmsNormGrad: {
      const RmsNormGradArgs args{in(0),
                                 in(1),
                                 floats(in(2)),
                                 floats(in(3)),
                                 op.inputs.size() > 4 ? in(4) : nullptr,
                                 out(0),
                                 floats(out(1)),
                                 floats(scratch()),
                                 Extent(op.inputs[1], 0),
                                 Extent(op.inputs[1], 1),
                                 false};
      return OnKernel(args, kernels_.rms_norm_grad[column(op.inputs[1])], threads, overwrites,
                      kernels_.rms_norm_grad_finish);
    }
    case OpKind::kAdd:
      return OnKernel(AddArgs{in(0), in(1), out(0), elements}, kernels_.add[column(op.inputs[0])],
                      threads);
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight:
      return std::make_unique<ProductInstruction>(
          products_.at(ShapeOf(op)).get(), in(0), in(1), out(0), scratch(),
          op.kind == OpKind::kMatmulGradWeight, overwrites, ThreadsFor(ShapeOf(op)));
    case OpKind::kRope: {
      const auto& attributes = std::get<model::RopeAttributes>(op.attributes);
      const RopeTable& table = TableOf(attributes);
      const char* base = arena_->base() + scratch_offset_ + table.offset;
      const RopeArgs args{
          in(0),
          ints(in(1)),
          out(0),
          reinterpret_cast<const float*>(base),
          reinterpret_cast<const double*>(base + table.rows * attributes.head_dim * 4),
          Extent(op.inputs[0], 0),
          attributes.query_heads + attributes.key_value_heads,
          attributes.key_value_heads,
          attributes.head_dim,
          table.rows,
          attributes.inverse};
      return OnKernel(args, kernels_.rope[column(op.inputs[0])], threads);
    }
    case OpKind::kAttention: {
      const auto& a = std::get<model::AttentionAttributes>(op.attributes);
      const AttentionArgs args{
          in(0),    out(0),        floats(out(1)),    scratch(), Extent(op.inputs[0], 0) / a.tokens,
          a.tokens, a.query_heads, a.key_value_heads, a.head_dim,
          op.inputs.size() > 1 ? ints(in(1)) : nullptr};
      return OnKernel(args, kernels_.attention[column(op.inputs[0])], threads);
    }
    case OpKind::kAttentionGrad: {
      const auto& a = std::get<model::AttentionAttributes>(op.attributes);
      const AttentionGradArgs args{in(0),
                                   in(1),
                                   in(2),
                                   floats(in(3)),
                                   out(0),
                                   scratch(),
                                   Extent(op.inputs[1], 0) / a.tokens,
                                   a.tokens,
                                   a.query_heads,
                                   a.key_value_heads,
                                   a.head_dim,
                                   op.inputs.size() > 4 ? ints(in(4)) : nullptr};
      return OnKernel(args, kernels_.attention_grad[column(op.inputs[1])], threads);
    }
    case OpKind::kSwiGlu: {
      const SwiGluArgs args{in(0), out(0), Extent(op.inputs[0], 0), Extent(op.inputs[0], 1) / 2,
                            op.inputs.size() > 1 ? ints(in(1)) : nullptr,
                            op.inputs.size() > 1 ? Extent(op.inputs[1], 0) : 0};
      return OnKernel(args, kernels_.swiglu[column(op.inputs[0])], threads);
    }
    case OpKind::kSwiGluGrad: {
      const SwiGluGradArgs args{in(0), in(1), out(0), Extent(op.inputs[1], 0),
                                Extent(op.inputs[1], 1) / 2,
                                op.inputs.size() > 2 ? ints(in(2)) : nullptr,
                                op.inputs.size() > 2 ? Extent(op.inputs[2], 0) : 0};
      return OnKernel(args, kernels_.swiglu_grad[column(op.inputs[1])], threads);
    }
    case OpKind::kSoftmaxStats: {
      const int64_t offset = std::get<model::VocabAttributes>(op.attributes).vocab_offset;
      const SoftmaxStatsArgs args{in(0),
                                  ints(in(1)),
                                  floats(out(0)),
                                  floats(out(1)),
                                  Extent(op.inputs[0], 0),
                                  Extent(op.inputs[0], 1),
                                  offset};
      return OnKernel(args, kernels_.softmax_stats[column(op.inputs[0])],
                      ThreadsFor(program_.value(op.inputs[0]).elements()));
    }
    case OpKind::kSoftmaxStatsGrad: {
      const int64_t offset = std::get<model::VocabAttributes>(op.attributes).vocab_offset;
      const SoftmaxStatsGradArgs args{in(0),
                                      ints(in(1)),
                                      floats(in(2)),
                                      floats(in(3)),
                                      out(0),
                                      Extent(op.inputs[0], 0),
                                      Extent(op.inputs[0], 1),
                                      offset};
      return OnKernel(args, kernels_.softmax_stats_grad[column(op.inputs[0])], threads);
    }
    case OpKind::kSoftmaxRescale:
    case OpKind::kSoftmaxRescaleGrad: {
      const SoftmaxRescaleArgs args{floats(in(0)), floats(in(1)), floats(in(2)), floats(out(0)),
                                    Extent(op.inputs[1], 0)};
      return OnKernel(args, kernels_.softmax_rescale, threads);
    }
    case OpKind::kCrossEntropy: {
      const CrossEntropyArgs args{floats(in(0)),           floats(in(1)),
                                  floats(in(2)),           reinterpret_cast<double*>(out(0)),
                                  Extent(op.inputs[0], 0), false};
      return OnKernel(args, kernels_.cross_entropy, 1, overwrites);
    }
    case OpKind::kCrossEntropyGrad: {
      const CrossEntropyGradArgs args{floats(in(0)), floats(in(1)), floats(out(0)),
                                      Extent(op.inputs[1], 0)};
      return OnKernel(args, kernels_.cross_entropy_grad, threads);
    }
    case OpKind::kCopy:
      return std::make_unique<CopyInstruction>(in(0), out(0), program_.value(op.inputs[0]).bytes());
    case OpKind::kCast:
      return OnKernel(CastArgs{floats(in(0)), out(0), elements}, kernels_.cast, threads);
    case OpKind::kAllReduce:
      return MakeCollective(op, buffer);
    case OpKind::kReduceScatter:
      return MakeReduceScatter(op, buffer);
    case OpKind::kAllGather: {
      Communicator* const communicator = CommunicatorOf(op, find_communicator_);
      const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
      const model::Value& whole = program_.value(op.outputs[0]);
      std::vector<size_t> bytes =
          BlockElements(whole, model::GroupSize(program_.mesh, attributes.group));
      for (size_t& block : bytes) block *= static_cast<size_t>(SizeOf(whole.dtype));
      return cpu::MakeAllGather(in(0), out(0), std::move(bytes), PurposeOf(attributes.purpose),
                                communicator);
    }
    case OpKind::kExchangeHeads:
      return MakeExchangeHeads(ExchangeOf(op), in(0), out(0), scratch(),
                          CommunicatorOf(op, find_communicator_));
    case OpKind::kAccumulate: {
      const AccumulateArgs args{floats(in(0)), floats(out(0)), elements, false};
      return OnKernel(args, kernels_.accumulate, threads, overwrites);
    }
    case OpKind::kAllToAll:
      return MakeExchange(op, buffer);
    case OpKind::kGroupedMatmul:
    case OpKind::kGroupedMatmulGradInput:
    case OpKind::kGroupedMatmulGradWeight:
      return MakeGrouped(op, buffer);
    case OpKind::kRouterLogits: {
      const RouterLogitsArgs args{in(0),
                                  floats(in(1)),
                                  floats(out(0)),
                                  Extent(op.inputs[0], 0),
                                  Extent(op.inputs[0], 1),
                                  Extent(op.inputs[1], 0)};
      return OnKernel(args, kernels_.router_logits[column(op.inputs[0])],
                      ThreadsFor(program_.value(op.inputs[0]).elements()));
    }
    case OpKind::kRouterLogitsGradInput: {
      const RouterLogitsGradInputArgs args{floats(in(0)),
                                           floats(in(1)),
                                           out(0),
                                           Extent(op.inputs[0], 0),
                                           Extent(op.inputs[1], 1),
                                           Extent(op.inputs[0], 1)};
      return OnKernel(args, kernels_.router_logits_grad_input[column(op.outputs[0])], threads);
    }
    case OpKind::kRouterLogitsGradWeight: {
      const RouterLogitsGradWeightArgs args{floats(in(0)),
                                            in(1),
                                            floats(out(0)),
                                            Extent(op.inputs[0], 0),
                                            Extent(op.inputs[1], 1),
                                            Extent(op.inputs[0], 1),
                                            false};
      return OnKernel(args, kernels_.router_logits_grad_weight[column(op.inputs[1])],
                      ThreadsFor(program_.value(op.inputs[1]).elements()), overwrites);
    }
    case OpKind::kRouterTopK: {
      const RouterTopKArgs args{floats(in(0)),
                                op.inputs.size() > 1 ? floats(in(1)) : nullptr,
                                floats(out(0)),
                                ints(out(1)),
                                ints(out(2)),
                                ints(out(3)),
                                floats(out(4)),
                                Extent(op.inputs[0], 0),
                                std::get<model::RouterAttributes>(op.attributes)};
      return OnKernel(args, &RouterTopK, 1);
    }
    case OpKind::kRouterTopKGrad: {
      const RouterTopKGradArgs args{floats(in(0)),
                                    floats(in(1)),
                                    ints(in(2)),
                                    floats(out(0)),
                                    Extent(op.inputs[1], 0),
                                    std::get<model::RouterAttributes>(op.attributes)};
      return OnKernel(args, &RouterTopKGrad, 1);
    }
    case OpKind::kRouterLoss: {
      const RouterLossArgs args{floats(in(0)),
                                floats(in(1)),
                                ints(in(2)),
                                floats(in(3)),
                                reinterpret_cast<double*>(out(0)),
                                Extent(op.inputs[1], 0),
                                std::get<model::RouterAttributes>(op.attributes),
                                false};
      return OnKernel(args, &RouterLoss, 1, overwrites);
    }
    case OpKind::kRouterLossGrad: {
      const RouterLossGradArgs args{floats(in(0)),
                                    floats(in(1)),
                                    floats(in(2)),
                                    floats(out(0)),
                                    Extent(op.inputs[1], 0),
                                    std::get<model::RouterAttributes>(op.attributes)};
      return OnKernel(args, &RouterLossGrad, 1);
    }
    case OpKind::kPermute: {
      const PermuteArgs args{in(0),
                             ints(in(1)),
                             out(0),
                             Extent(op.inputs[1], 0),
                             Extent(op.inputs[1], 1),
                             Extent(op.inputs[0], 1)};
      return OnKernel(args, kernels_.permute[column(op.inputs[0])], threads);
    }
    case OpKind::kPermuteGrad:
    case OpKind::kCombine: {
      const CombineArgs args{in(0),
                             ints(in(1)),
                             op.inputs.size() > 2 ? floats(in(2)) : nullptr,
                             out(0),
                             Extent(op.inputs[1], 0),
                             Extent(op.inputs[1], 1),
                             Extent(op.inputs[0], 1)};
      return OnKernel(args, kernels_.combine[column(op.inputs[0])], threads);
    }
    case OpKind::kCombineGrad: {
      const CombineGradArgs args{in(0),
                                 in(1),
                                 ints(in(2)),
                                 floats(in(3)),
                                 out(0),
                                 floats(out(1)),
                                 Extent(op.inputs[2], 0),
                                 Extent(op.inputs[2], 1),
                                 Extent(op.inputs[0], 1)};
      return OnKernel(args, kernels_.combine_grad[column(op.inputs[0])], threads);
    }
    case OpKind::kControlTotals:
    case OpKind::kSumOfSquares:
    case OpKind::kControlReduce:
    case OpKind::kAdamW:
      return MakeUpdate(op);
  }
  return Internal("operation kind {} is unknown", static_cast<int>(op.kind));
}

StatusOr<std::unique_ptr<Instruction>> Preparation::MakeCollective(const Op& op, int buffer) {
  // Members of a bucket that lie one after the other are one range, padding (0) included.
  std::vector<ReducedRange> ranges;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ReducedRange next = {Address(op.inputs[i], buffer), Address(op.outputs[i], buffer),
                               program_.value(op.inputs[i]).bytes()};
    if (next.bytes == 0) continue;
    if (!ranges.empty()) {
      ReducedRange& last = ranges.back();
      const int64_t distance = next.input - last.input;
      if (next.output - last.output == distance && distance == RoundUp(last.bytes, kAlignment)) {
        last.bytes = distance + next.bytes;
        continue;
      }
    }
    ranges.push_back(next);
  }
  return MakeAllReduce(std::move(ranges), program_.value(op.inputs[0]).dtype,
                       std::get<model::CollectiveAttributes>(op.attributes),
                       CommunicatorOf(op, find_communicator_));
}

StatusOr<std::unique_ptr<Instruction>> Preparation::MakeReduceScatter(const Op& op, int buffer) {
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  const model::Value& whole = program_.value(op.inputs[0]);
  return cpu::MakeReduceScatter(
      {.input = Address(op.inputs[0], buffer),
       .output = Address(op.outputs[0], buffer),
       .copy = KeepsInput(op) ? scratch() : nullptr,
       .counts = BlockElements(whole, model::GroupSize(program_.mesh, attributes.group)),
       .dtype = whole.dtype,
       .purpose = PurposeOf(attributes.purpose)},
      CommunicatorOf(op, find_communicator_));
}

RowExchange Preparation::ExchangeOf(const Op& op) const {
  return RowExchange(program_, op,
                     static_cast<size_t>(SizeOf(program_.value(op.inputs[0]).dtype)));
}

// Reducing uses the input up: where it must be kept, a copy of it is.
bool Preparation::KeepsInput(const Op& op) const {
  if (op.consumes_input) return false;
  int64_t offset = 0;
  return RootOf(program_, op.inputs[0], &offset) != RootOf(program_, op.outputs[0], &offset);
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
  if (shape.bfloat16) {
    for (size_t tile = 0; tile < kRowTiles.size(); ++tile) {
      args.tiles[tile] = products_.at(TileOf(op, kRowTiles[tile])).get();
    }
  }
  const int64_t rows_of_one = Extent(op.inputs[0], 0) / args.experts;
  return MakeGroupedProduct(args, OverwritesOf(program_, op),
                            ThreadsFor(TileOf(op, std::max<int64_t>(1, rows_of_one))));
}

std::unique_ptr<Instruction> Preparation::MakeExchange(const Op& op, int buffer) {
  const model::Value& x = program_.value(op.inputs[0]);
  AllToAllArgs args{Address(op.inputs[0], buffer), Address(op.outputs[0], buffer), nullptr, nullptr,
                    x.dims[0].local, model::SizeOf(x.dtype)};
  if (op.inputs.size() > 1) {
    args.sent = reinterpret_cast<const int32_t*>(Address(op.inputs[1], buffer));
    args.received = reinterpret_cast<const int32_t*>(Address(op.inputs[2], buffer));
    args.num_counts = Extent(op.inputs[1], 0);
    args.row_bytes = x.dims[1].local * model::SizeOf(x.dtype);
  }
  return MakeAllToAll(args,
                      PurposeOf(std::get<model::CollectiveAttributes>(op.attributes).purpose),
                      CommunicatorOf(op, find_communicator_));
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
    AdamWEntry entry{};
    entry.args.parameter = floats(parameter.value);
    entry.args.exp_avg = floats(parameter.exp_avg);
    entry.args.exp_avg_sq = floats(parameter.exp_avg_sq);
    entry.args.gradient = floats(op.inputs[2 + p]);
    entry.args.copy =
        parameter.compute_copy == parameter.value ? nullptr : Address(parameter.compute_copy, 0);
    entry.args.count = program_.value(parameter.value).elements();
    entry.weight_decay = parameter.weight_decay;
    entries.push_back(entry);
  }
  return MakeAdamW(std::get<model::AdamWAttributes>(op.attributes), control, floats(op.inputs[1]),
                   std::move(entries), kernels_, threads_);
}

}  // namespace troupe::kernels::cpu
