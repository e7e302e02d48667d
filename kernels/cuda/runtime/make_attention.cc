// Makes the commands of attention: by a library if one is chosen for the shape, else by our own
// kernels.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/runtime/preparation.h"

namespace troupe::kernels::cuda {
namespace {

bool SuitLibrary(std::initializer_list<const void*> addresses) {
  return std::ranges::all_of(addresses, [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % kLibraryAlignment == 0;
  });
}

LibraryAttentionShape ShapeOf(const AttentionRows& rows, bool bfloat16) {
  return {bfloat16,         rows.samples,         rows.tokens,
          rows.query_heads, rows.key_value_heads, rows.head_dim};
}

// Calls `prepare` once per shape and returns its result; null if our own kernels are to be used.
template <typename Prepared, typename Prepare>
StatusOr<Prepared*> PreparedOf(const LibraryAttentionShape& shape,
                               std::map<LibraryAttentionShape, std::unique_ptr<Prepared>>* prepared,
                               const Prepare& prepare) {
  auto found = prepared->find(shape);
  if (found == prepared->end()) {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Prepared> made, prepare(shape));
    found = prepared->emplace(shape, std::move(made)).first;
  }
  return found->second.get();
}

template <typename Args>
std::string ImplementationOf(const LibraryAttentionOf<Args>* call) {
  return call == nullptr ? "own kernels" : call->implementation();
}

template <typename Args>
LibraryCommand CallOf(LibraryAttentionOf<Args>* call, const Args& args, void* workspace) {
  return {[=](Stream stream) { return call->Enqueue(args, workspace, stream); }};
}

}  // namespace

Status Preparation::MakeAttention(const Making& making) {
  const AttentionArgs args = making.arguments.Attention();
  const bool bfloat16 = making.arguments.bfloat16();
  LibraryAttention* call = nullptr;
  if (libraries_.attention != nullptr && args.rows.documents == nullptr &&
      SuitLibrary({args.q, args.k, args.v, args.o})) {
    TROUPE_ASSIGN_OR_RETURN(
        call, PreparedOf(ShapeOf(args.rows, bfloat16), &library_attention_,
                         [&](const auto& shape) { return libraries_.attention->Prepare(shape); }));
  }
  implementations_.insert("attention: " + ImplementationOf(call));
  if (call == nullptr) {
    NoteOwnAttention(args.rows, bfloat16);
    return making.Launch(Attention(args, bfloat16));
  }
  making.commands->emplace_back(Stream::kCompute,
                                CallOf(call, args, AllocateBytes(call->workspace_bytes())));
  return OkStatus();
}

Status Preparation::MakeAttentionGrad(const Making& making) {
  const AttentionGradArgs args = making.arguments.AttentionGrad();
  const bool bfloat16 = making.arguments.bfloat16();
  LibraryAttentionGrad* call = nullptr;
  if (libraries_.attention != nullptr && args.rows.documents == nullptr &&
      SuitLibrary(
          {args.output_gradient, args.q, args.k, args.v, args.o, args.dq, args.dk, args.dv})) {
    TROUPE_ASSIGN_OR_RETURN(call, PreparedOf(ShapeOf(args.rows, bfloat16), &library_attention_grad_,
                                             [&](const auto& shape) {
                                               return libraries_.attention->PrepareGrad(shape);
                                             }));
  }
  implementations_.insert("attention_grad: " + ImplementationOf(call));
  if (call == nullptr) {
    NoteOwnAttention(args.rows, bfloat16);
    return LaunchAttentionGrad(making, args);
  }
  auto* const lse = Allocate<float>(args.rows.samples * args.rows.tokens * args.rows.query_heads);
  TROUPE_RETURN_IF_ERROR(making.Launch(LseByHeads(args.rows, args.lse, lse)));
  AttentionGradArgs by_heads = args;
  by_heads.lse = lse;
  making.commands->emplace_back(Stream::kCompute,
                                CallOf(call, by_heads, AllocateBytes(call->workspace_bytes())));
  return OkStatus();
}

void Preparation::NoteOwnAttention(const AttentionRows& rows, bool bfloat16) {
  if (libraries_.attention_absence.empty() || !bfloat16 || rows.documents != nullptr) return;
  NoteFallback(fmt::format("{}: own kernel: {}", OperationName(program_, *op_),
                           libraries_.attention_absence));
}

Status Preparation::LaunchAttentionGrad(const Making& making, const AttentionGradArgs& args) {
  void* const scratch = AllocateBytes(AttentionGradScratchBytes(args.rows));
  const bool bfloat16 = making.arguments.bfloat16();
  return making.Launch(std::array{AttentionDelta(args, scratch, bfloat16),
                                  AttentionQueryGrad(args, scratch, bfloat16),
                                  AttentionKeyGrad(args, scratch, bfloat16)});
}

Status Preparation::MakeAttentionPart(const Making& making) {
  return making.Launch(Attention(making.arguments.AttentionPart(), making.arguments.bfloat16()));
}

Status Preparation::MakeAttentionPartGrad(const Making& making) {
  return LaunchAttentionGrad(making, making.arguments.AttentionPartGrad());
}

}  // namespace troupe::kernels::cuda
