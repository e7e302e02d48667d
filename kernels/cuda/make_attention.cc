// Makes the commands of attention: by a library if one is chosen for the shape, else by our own
// kernels.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/preparation.h"
#include "kernels/op_sequence.h"

namespace troupe::kernels::cuda {
namespace {

bool SuitLibrary(std::initializer_list<const void*> addresses) {
  return std::ranges::all_of(addresses, [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % kLibraryAlignment == 0;
  });
}

LibraryAttentionShape ShapeOf(const AttentionRows& rows, bool bfloat16) {
  return {bfloat16, rows.samples, rows.tokens, rows.query_heads, rows.key_value_heads, rows.head_dim};
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

Status Preparation::AddAttention(Commands* commands, const AttentionArgs& args, bool bfloat16) {
  LibraryAttention* call = nullptr;
  if (libraries_.attention != nullptr && args.rows.documents == nullptr && SuitLibrary({args.q, args.k, args.v, args.o})) {
    TROUPE_ASSIGN_OR_RETURN(
        call, PreparedOf(ShapeOf(args.rows, bfloat16), &library_attention_,
                         [&](const auto& shape) { return libraries_.attention->Prepare(shape); }));
  }
  implementations_.insert("attention: " + ImplementationOf(call));
  if (call == nullptr) {
    NoteOwnAttention(args.rows, bfloat16);
    commands->emplace_back(Stream::kCompute, Attention(args, bfloat16));
    return OkStatus();
  }
  commands->emplace_back(Stream::kCompute, CallOf(call, args, TakeBytes(call->workspace_bytes())));
  return OkStatus();
}

Status Preparation::AddAttentionGrad(Commands* commands, const AttentionGradArgs& args, bool bfloat16) {
  LibraryAttentionGrad* call = nullptr;
  if (libraries_.attention != nullptr && args.rows.documents == nullptr &&
      SuitLibrary({args.output_gradient, args.q, args.k, args.v, args.o, args.dq, args.dk, args.dv})) {
    TROUPE_ASSIGN_OR_RETURN(
        call, PreparedOf(ShapeOf(args.rows, bfloat16), &library_attention_grad_,
                         [&](const auto& shape) { return libraries_.attention->PrepareGrad(shape); }));
  }
  implementations_.insert("attention_grad: " + ImplementationOf(call));
  if (call == nullptr) {
    NoteOwnAttention(args.rows, bfloat16);
    AddOwnAttentionGrad(commands, args, bfloat16);
    return OkStatus();
  }
  auto* const lse = Take<float>(args.rows.samples * args.rows.tokens * args.rows.query_heads);
  commands->emplace_back(Stream::kCompute, LseByHeads(args.rows, args.lse, lse));
  AttentionGradArgs by_heads = args;
  by_heads.lse = lse;
  commands->emplace_back(Stream::kCompute, CallOf(call, by_heads, TakeBytes(call->workspace_bytes())));
  return OkStatus();
}

void Preparation::NoteOwnAttention(const AttentionRows& rows, bool bfloat16) {
  if (libraries_.attention_absence.empty() || !bfloat16 || rows.documents != nullptr) return;
  NoteFallback(fmt::format("{}: own kernel: {}", OperationName(program_, *op_), libraries_.attention_absence));
}

void Preparation::AddOwnAttentionGrad(Commands* commands, const AttentionGradArgs& args, bool bfloat16) {
  void* const scratch = TakeBytes(AttentionGradScratchBytes(args.rows));
  for (const KernelLaunch& kernel : {AttentionDelta(args, scratch, bfloat16), AttentionQueryGrad(args, scratch, bfloat16),
                                     AttentionKeyGrad(args, scratch, bfloat16)}) {
    commands->emplace_back(Stream::kCompute, kernel);
  }
}

}  // namespace troupe::kernels::cuda
