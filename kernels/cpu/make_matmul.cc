// Makes the instructions of matmuls, also of FP8 operands and of several experts.
#include <omp.h>

#include <utility>

#include "kernels/cpu/experts/grouped_matmul.h"
#include "kernels/cpu/preparation.h"
#include "kernels/cpu/quantize.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;

class MatmulInstruction : public Instruction {
 public:
  MatmulInstruction(Matmul* matmul, const void* a, const void* b, void* c, char* scratch,
                    bool accumulates, Overwrites overwrites, int threads)
      : matmul_(matmul),
        a_(a),
        b_(b),
        c_(c),
        scratch_(scratch),
        accumulates_(accumulates),
        overwrites_(overwrites),
        threads_(threads) {}
  Status Run(const RunOptions& options) override {
    omp_set_num_threads(threads_);  // for parallel regions of this thread, which oneDNN opens
    return matmul_->Run(a_, b_, c_, accumulates_ && Accumulates(overwrites_, options), scratch_);
  }

 private:
  Matmul* const matmul_;
  const void* const a_;
  const void* const b_;
  void* const c_;
  char* const scratch_;
  const bool accumulates_;
  const Overwrites overwrites_;
  const int threads_;
};

// A matmul of FP8 operands, which are first dequantised into scratch.
class Float8Matmul : public Instruction {
 public:
  Float8Matmul(const DequantizeArgs& a, const DequantizeArgs& b,
               std::unique_ptr<Instruction> matmul, int threads)
      : a_(a), b_(b), matmul_(std::move(matmul)), threads_(threads) {}
  Status Run(const RunOptions& options) override {
    for (const DequantizeArgs* args : {&a_, &b_}) {
      Parallel(threads_, [&](int part) { Dequantize(*args, part, threads_); });
    }
    return matmul_->Run(options);
  }

 private:
  const DequantizeArgs a_, b_;
  const std::unique_ptr<Instruction> matmul_;
  const int threads_;
};

}  // namespace

void Preparation::NoteMatmul(const Op& op, const Matmul& matmul) {
  const model::DType used = matmul.is_float32() ? model::DType::kFloat32 : model::DType::kBFloat16;
  executed_matmuls_.Note(program_, op, used, used);
}

MadeInstruction Preparation::MakeMatmul(const Making& making) {
  const Op& op = making.op;
  const MatmulShape shape = OfBFloat16(MatmulShapeOf(program_, op));
  NoteMatmul(op, *matmuls_.at(shape));
  const auto matmul = [&](const void* a, const void* b, char* working) {
    return std::make_unique<MatmulInstruction>(matmuls_.at(shape).get(), a, b, making.out(0),
                                               working, op.kind == OpKind::kMatmulGradWeight,
                                               making.overwrites, ThreadsFor(shape));
  };
  if (!model::IsFloat8(program_.value(op.inputs[0]).dtype)) {
    return matmul(making.in(0), making.in(1), scratch());
  }
  const int64_t a_bytes = WidenedBytes(op.inputs[0]), b_bytes = WidenedBytes(op.inputs[1]);
  DequantizeArgs a = making.arguments.Operand(0), b = making.arguments.Operand(1);
  a.y = scratch();
  b.y = scratch() + a_bytes;
  return std::make_unique<Float8Matmul>(a, b, matmul(a.y, b.y, scratch() + a_bytes + b_bytes),
                                        ThreadsFor(shape));
}

MadeInstruction Preparation::MakeMatmulGradInput(const Making& making) {
  return MakeMatmul(making);
}
MadeInstruction Preparation::MakeMatmulGradWeight(const Making& making) {
  return MakeMatmul(making);
}

MadeInstruction Preparation::MakeGroupedMatmul(const Making& making) {
  const Op& op = making.op;
  const MatmulShape shape = TileOf(op, 1);
  GroupedMatmulArgs args{shape.kind,
                         shape.bfloat16,
                         making.in(0),
                         making.in(1),
                         making.out(0),
                         reinterpret_cast<const int32_t*>(making.in(2)),
                         Extent(op.inputs[2], 0),
                         std::get<model::GroupedAttributes>(op.attributes).local_experts,
                         shape.k,
                         shape.n,
                         scratch(),
                         {}};
  if (!shape.bfloat16)
    executed_matmuls_.Note(program_, op, model::DType::kFloat32, model::DType::kFloat32);
  if (shape.bfloat16) {
    NoteMatmul(op, *matmuls_.at(TileOf(op, kRowTiles[0])));
    for (size_t tile = 0; tile < kRowTiles.size(); ++tile) {
      args.tiles[tile] = matmuls_.at(TileOf(op, kRowTiles[tile])).get();
    }
  }
  const int64_t rows_of_one = Extent(op.inputs[0], 0) / args.experts;
  return MakeGroupedMatmulInstruction(args, making.overwrites,
                                      ThreadsFor(TileOf(op, std::max<int64_t>(1, rows_of_one))));
}

MadeInstruction Preparation::MakeGroupedMatmulGradInput(const Making& making) {
  return MakeGroupedMatmul(making);
}
MadeInstruction Preparation::MakeGroupedMatmulGradWeight(const Making& making) {
  return MakeGroupedMatmul(making);
}

}  // namespace troupe::kernels::cpu
