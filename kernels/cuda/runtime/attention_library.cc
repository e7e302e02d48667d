#include "kernels/cuda/runtime/attention_library.h"

namespace troupe::kernels::cuda {
namespace {

void Advance(const void** address, int64_t bytes) {
  *address = static_cast<const char*>(*address) + bytes;
}
void Advance(void** address, int64_t bytes) { *address = static_cast<char*>(*address) + bytes; }

// Sizes of the rows before sample `first`.
struct Before {
  int64_t qkv_bytes, output_bytes, lse;  // lse: number of elements

  Before(int64_t first, const LibraryAttentionShape& shape)
      : qkv_bytes(first * shape.tokens * shape.qkv_width() * (shape.bfloat16 ? 2 : 4)),
        output_bytes(first * shape.tokens * shape.query_heads * shape.head_dim *
                     (shape.bfloat16 ? 2 : 4)),
        lse(first * shape.tokens * shape.query_heads) {}
};

}  // namespace

std::string ShapeText(const LibraryAttentionShape& shape) {
  return fmt::format("{} samples={} tokens={} queries={} keys={} width={}",
                     shape.bfloat16 ? "bfloat16" : "float32", shape.samples, shape.tokens,
                     shape.query_heads, shape.key_value_heads, shape.head_dim);
}

AttentionArgs SamplesFrom(int64_t first, const LibraryAttentionShape& shape, AttentionArgs args) {
  const Before before(first, shape);
  for (const void** const address : {&args.q, &args.k, &args.v}) Advance(address, before.qkv_bytes);
  Advance(&args.o, before.output_bytes);
  args.lse += before.lse;
  return args;
}

AttentionGradArgs SamplesFrom(int64_t first, const LibraryAttentionShape& shape,
                              AttentionGradArgs args) {
  const Before before(first, shape);
  for (const void** const address : {&args.q, &args.k, &args.v}) Advance(address, before.qkv_bytes);
  for (void** const address : {&args.dq, &args.dk, &args.dv}) Advance(address, before.qkv_bytes);
  for (const void** const address : {&args.output_gradient, &args.o})
    Advance(address, before.output_bytes);
  args.lse += before.lse;
  return args;
}

AttentionGradArgs HeadsFrom(int64_t first, const LibraryAttentionShape& shape,
                            AttentionGradArgs args) {
  const int64_t queries = first * (shape.query_heads / shape.key_value_heads);
  const int64_t head_bytes = shape.head_dim * (shape.bfloat16 ? 2 : 4);
  for (const void** const address : {&args.q, &args.o, &args.output_gradient})
    Advance(address, queries * head_bytes);
  Advance(&args.dq, queries * head_bytes);
  for (const void** const address : {&args.k, &args.v}) Advance(address, first * head_bytes);
  for (void** const address : {&args.dk, &args.dv}) Advance(address, first * head_bytes);
  args.lse += queries * shape.tokens;
  return args;
}

}  // namespace troupe::kernels::cuda
