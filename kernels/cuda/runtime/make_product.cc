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
  ProductArgs args = making.arguments.Product();
  const ProductShape shape = ProductShapeOf(program_, op);
  args.accumulate = making.accumulate && shape.kind == ProductKind::kWeightGradient;
  if (shape.float8 != Float8Scaling::kNone) {
    return AddFloat8Product(making, args, shape);
  }
  return AddProductOf(making.commands, op, args, shape);
}

Status Preparation::MakeMatmulGradInput(const Making& making) { return MakeMatmul(making); }
Status Preparation::MakeMatmulGradWeight(const Making& making) { return MakeMatmul(making); }

Status Preparation::AddFloat8Product(const Making& making, ProductArgs args,
                                     const ProductShape& shape) {
  const Op& op = making.op;
  Commands* const commands = making.commands;
  DequantizeArgs a = making.arguments.Factor(0), b = making.arguments.Factor(1);
  LibraryProduct* product = nullptr;
  if (SuitsLibrary(args)) {
    TROUPE_ASSIGN_OR_RETURN(product, LibraryProductOf(shape));
  }
  if (product != nullptr) {
    ProductScales scales = {a.scale, b.scale};
    if (shape.float8 == Float8Scaling::kBlocks) {
      for (const auto& [factor, scale] : {std::pair(&a, &scales.a), std::pair(&b, &scales.b)}) {
        float* const made = Allocate<float>(LibraryScaleCount(*factor));
        commands->emplace_back(Stream::kCompute, LibraryScales(*factor, made));
        *scale = made;
      }
    }
    void* const workspace = AllocateBytes(product->workspace_bytes());
    const auto enqueue = [=](Stream stream) {
      return product->Enqueue(args.a, args.b, args.c, args.accumulate, workspace, stream, scales);
    };
    commands->emplace_back(Stream::kCompute, LibraryCommand{enqueue});
    executed_products_.Note(program_, op, program_.value(op.inputs[0]).dtype,
                            program_.value(op.inputs[1]).dtype);
    return OkStatus();
  }
  if (libraries_.products != nullptr)
    NoteFallback(OperationName(program_, op) + ": " + kFloat8Fallback);
  for (DequantizeArgs* factor : {&a, &b}) {
    factor->y =
        AllocateBytes(factor->rows * factor->columns * model::SizeOf(model::DType::kBFloat16));
    commands->emplace_back(Stream::kCompute, Dequantize(*factor));
  }
  args.a = a.y;
  args.b = b.y;
  return AddProductOf(commands, op, args, OfBFloat16(shape));
}

bool Preparation::SuitsLibrary(const ProductArgs& args) {
  return std::ranges::all_of(std::array<const void*, 3>{args.a, args.b, args.c},
                             [](const void* address) {
                               return reinterpret_cast<uintptr_t>(address) % kLibraryAlignment == 0;
                             });
}

Status Preparation::AddProductOf(Commands* commands, const Op& op, const ProductArgs& args,
                                 const ProductShape& shape) {
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
  void* const workspace = AllocateBytes(product->workspace_bytes());
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
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<LibraryProduct> product,
                            libraries_.products->Prepare(shape));
    found = library_products_.emplace(shape, std::move(product)).first;
  }
  return found->second.get();
}

Status Preparation::MakeGroupedMatmul(const Making& making) {
  ProductArgs args = making.arguments.Product();
  args.accumulate = making.accumulate;
  const bool bfloat16 = making.arguments.bfloat16();
  const model::DType used = bfloat16 ? model::DType::kBFloat16 : model::DType::kFloat32;
  executed_products_.Note(program_, making.op, used, used);
  return making.Launch(GroupedMatmul(args, bfloat16));
}

Status Preparation::MakeGroupedMatmulGradInput(const Making& making) {
  return MakeGroupedMatmul(making);
}
Status Preparation::MakeGroupedMatmulGradWeight(const Making& making) {
  return MakeGroupedMatmul(making);
}

}  // namespace troupe::kernels::cuda
