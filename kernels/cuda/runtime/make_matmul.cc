// Makes the commands of matmuls: by a library if it has one for the shape, else by our own kernels.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/quantize.h"
#include "kernels/cuda/runtime/preparation.h"

namespace troupe::kernels::cuda {

using model::Op;

Status Preparation::MakeMatmul(const Making& making) {
  const Op& op = making.op;
  MatmulArgs args = making.arguments.Matmul();
  const MatmulShape shape = MatmulShapeOf(program_, op);
  args.accumulate = making.accumulate && shape.kind == MatmulKind::kWeightGradient;
  if (shape.float8 != Float8Scaling::kNone) {
    return AddFloat8Matmul(making, args, shape);
  }
  return AddMatmulOf(making.commands, op, args, shape);
}

Status Preparation::MakeMatmulGradInput(const Making& making) { return MakeMatmul(making); }
Status Preparation::MakeMatmulGradWeight(const Making& making) { return MakeMatmul(making); }

Status Preparation::AddFloat8Matmul(const Making& making, MatmulArgs args,
                                    const MatmulShape& shape) {
  const Op& op = making.op;
  Commands* const commands = making.commands;
  DequantizeArgs a = making.arguments.Operand(0), b = making.arguments.Operand(1);
  LibraryMatmul* matmul = nullptr;
  if (SuitsLibrary(args)) {
    TROUPE_ASSIGN_OR_RETURN(matmul, LibraryMatmulOf(shape));
  }
  if (matmul != nullptr) {
    OperandScales scales = {a.scale, b.scale};
    if (shape.float8 == Float8Scaling::kBlocks) {
      for (const auto& [operand, scale] : {std::pair(&a, &scales.a), std::pair(&b, &scales.b)}) {
        float* const made = Allocate<float>(LibraryScaleCount(*operand));
        commands->emplace_back(Stream::kCompute, LibraryScales(*operand, made));
        *scale = made;
      }
    }
    void* const workspace = AllocateBytes(matmul->workspace_bytes());
    const auto enqueue = [=](Stream stream) {
      return matmul->Enqueue(args.a, args.b, args.c, args.accumulate, workspace, stream, scales);
    };
    commands->emplace_back(Stream::kCompute, LibraryCommand{enqueue});
    executed_matmuls_.Note(program_, op, program_.value(op.inputs[0]).dtype,
                           program_.value(op.inputs[1]).dtype);
    return OkStatus();
  }
  if (libraries_.matmuls != nullptr)
    NoteFallback(OperationName(program_, op) + ": " + kFloat8Fallback);
  for (DequantizeArgs* operand : {&a, &b}) {
    operand->y =
        AllocateBytes(operand->rows * operand->columns * model::SizeOf(model::DType::kBFloat16));
    commands->emplace_back(Stream::kCompute, Dequantize(*operand));
  }
  args.a = a.y;
  args.b = b.y;
  return AddMatmulOf(commands, op, args, OfBFloat16(shape));
}

bool Preparation::SuitsLibrary(const MatmulArgs& args) {
  return std::ranges::all_of(std::array<const void*, 3>{args.a, args.b, args.c},
                             [](const void* address) {
                               return reinterpret_cast<uintptr_t>(address) % kLibraryAlignment == 0;
                             });
}

Status Preparation::AddMatmulOf(Commands* commands, const Op& op, const MatmulArgs& args,
                                const MatmulShape& shape) {
  LibraryMatmul* matmul = nullptr;
  const model::DType used = shape.bfloat16 ? model::DType::kBFloat16 : model::DType::kFloat32;
  executed_matmuls_.Note(program_, op, used, used);
  if (SuitsLibrary(args)) {
    TROUPE_ASSIGN_OR_RETURN(matmul, LibraryMatmulOf(shape));
  }
  if (matmul == nullptr) {
    if (libraries_.matmuls != nullptr) NoteFallback(OperationName(program_, op) + ": own kernel");
    commands->emplace_back(Stream::kCompute, Matmul(args, shape.bfloat16));
    return OkStatus();
  }
  void* const workspace = AllocateBytes(matmul->workspace_bytes());
  const auto enqueue = [=](Stream stream) {
    return matmul->Enqueue(args.a, args.b, args.c, args.accumulate, workspace, stream, {});
  };
  commands->emplace_back(Stream::kCompute, LibraryCommand{enqueue});
  return OkStatus();
}

void Preparation::NoteFallback(const std::string& text) {
  if (std::ranges::find(fallbacks_, text) == fallbacks_.end()) fallbacks_.push_back(text);
}

StatusOr<LibraryMatmul*> Preparation::LibraryMatmulOf(const MatmulShape& shape) {
  if (libraries_.matmuls == nullptr) return nullptr;
  auto found = library_matmuls_.find(shape);
  if (found == library_matmuls_.end()) {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<LibraryMatmul> matmul,
                            libraries_.matmuls->Prepare(shape));
    found = library_matmuls_.emplace(shape, std::move(matmul)).first;
  }
  return found->second.get();
}

Status Preparation::MakeGroupedMatmul(const Making& making) {
  MatmulArgs args = making.arguments.Matmul();
  args.accumulate = making.accumulate;
  const bool bfloat16 = making.arguments.bfloat16();
  const model::DType used = bfloat16 ? model::DType::kBFloat16 : model::DType::kFloat32;
  executed_matmuls_.Note(program_, making.op, used, used);
  return making.Launch(GroupedMatmul(args, bfloat16));
}

Status Preparation::MakeGroupedMatmulGradInput(const Making& making) {
  return MakeGroupedMatmul(making);
}
Status Preparation::MakeGroupedMatmulGradWeight(const Making& making) {
  return MakeGroupedMatmul(making);
}

}  // namespace troupe::kernels::cuda
