#include "kernels/cuda/kernels/attention_wide.h"

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/kernels/attention_keys.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {
namespace {

// Indexes the rows of each head of each sample.
struct RowPlace {
  int64_t sample, row, head;
};
TROUPE_DEVICE RowPlace RowPlaceOf(int64_t index, int64_t rows, int64_t heads) {
  return {index / heads / rows, index / heads % rows, index % heads};
}

// Every lane gets the result.
template <typename T>
TROUPE_DEVICE float Dot(const T* a, const T* b, int64_t width) {
  float sum = 0;
  for (int64_t d = Lane(); d < width; d += kWarp) sum += Widen(a[d]) * Widen(b[d]);
  return WarpSum(sum);
}

template <typename T>
TROUPE_KERNEL void WideAttentionKernel(AttentionLaunch<AttentionArgs> launch) {
  // [D], each lane owns some columns
  auto* const output = reinterpret_cast<float*>(DynamicShared());
  const AttentionArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const auto [sample, row, head] = RowPlaceOf(BlockIndex().x, rows.queries.rows, rows.query_heads);
  const int64_t at = BlockIndex().x, width = rows.head_dim;
  const KeyRange visible = VisibleKeys(rows, DocumentsOf(rows, sample), row);
  const int64_t kv_at = sample * rows.keys.rows * args.kv_stride +
                        head / (rows.query_heads / rows.key_value_heads) * width;
  const T* const q = static_cast<const T*>(args.q) +
                     (sample * rows.queries.rows + row) * args.q_stride + head * width;
  const bool merges = args.merged_lse != nullptr;
  float max = merges ? args.merged_lse[at] : -INFINITY, sum = merges ? 1.0f : 0.0f;
  for (int64_t d = Lane(); d < width; d += kWarp) {
    output[d] = merges ? args.merged_o[at * width + d] : 0.0f;
  }
  for (int64_t key = visible.begin; key < visible.end; ++key) {
    const T* const k = static_cast<const T*>(args.k) + kv_at + key * args.kv_stride;
    const T* const v = static_cast<const T*>(args.v) + kv_at + key * args.kv_stride;
    const float score = Dot(q, k, width) * launch.scale;
    const float risen = fmaxf(max, score);
    const float rescale = expf(max - risen), weight = expf(score - risen);
    max = risen;
    sum = sum * rescale + weight;
    for (int64_t d = Lane(); d < width; d += kWarp)
      output[d] = output[d] * rescale + weight * Widen(v[d]);
  }
  if (Lane() == 0) args.lse[at] = max + logf(sum);
  for (int64_t d = Lane(); d < width; d += kWarp) {
    if (args.wide_output) {
      static_cast<float*>(args.o)[at * width + d] = output[d] / sum;
    } else {
      static_cast<T*>(args.o)[at * width + d] = Narrow<T>(output[d] / sum);
    }
  }
}

template <typename T>
TROUPE_KERNEL void WideQueryGradKernel(AttentionLaunch<AttentionGradArgs> launch) {
  // [D], each lane owns some columns
  auto* const gradient = reinterpret_cast<float*>(DynamicShared());
  const AttentionGradArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const auto [sample, row, head] = RowPlaceOf(BlockIndex().x, rows.queries.rows, rows.query_heads);
  const int64_t at = BlockIndex().x, width = rows.head_dim;
  const KeyRange visible = VisibleKeys(rows, DocumentsOf(rows, sample), row);
  const int64_t kv_at = sample * rows.keys.rows * args.kv_stride +
                        head / (rows.query_heads / rows.key_value_heads) * width;
  const int64_t q_at = (sample * rows.queries.rows + row) * args.q_stride + head * width;
  const T* const q = static_cast<const T*>(args.q) + q_at;
  const T* const d_output = static_cast<const T*>(args.output_gradient) + at * width;
  for (int64_t d = Lane(); d < width; d += kWarp) gradient[d] = 0;
  for (int64_t key = visible.begin; key < visible.end; ++key) {
    const T* const k = static_cast<const T*>(args.k) + kv_at + key * args.kv_stride;
    const T* const v = static_cast<const T*>(args.v) + kv_at + key * args.kv_stride;
    const float weight = expf(Dot(q, k, width) * launch.scale - args.lse[at]);
    const float d_score = weight * (Dot(d_output, v, width) - launch.delta[at]) * launch.scale;
    for (int64_t d = Lane(); d < width; d += kWarp) gradient[d] += d_score * Widen(k[d]);
  }
  for (int64_t d = Lane(); d < width; d += kWarp) {
    static_cast<T*>(args.dq)[q_at + d] = Narrow<T>(gradient[d]);
  }
}

template <typename T>
TROUPE_KERNEL void WideKeyGradKernel(AttentionLaunch<AttentionGradArgs> launch) {
  const AttentionGradArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const int64_t width = rows.head_dim, group = rows.query_heads / rows.key_value_heads;
  // [D], each lane owns some columns
  auto* const d_key = reinterpret_cast<float*>(DynamicShared());
  float* const d_value = d_key + width;
  const auto [sample, key, head] = RowPlaceOf(BlockIndex().x, rows.keys.rows, rows.key_value_heads);
  const int32_t* const documents = DocumentsOf(rows, sample);
  const int64_t kv_at = (sample * rows.keys.rows + key) * args.kv_stride + head * width;
  const T* const k = static_cast<const T*>(args.k) + kv_at;
  const T* const v = static_cast<const T*>(args.v) + kv_at;
  for (int64_t d = Lane(); d < width; d += kWarp) d_key[d] = d_value[d] = 0;
  const QueryRange queries = QueriesAttendingTo(rows, documents, key, key + 1);
  for (int64_t q_head = head * group; q_head < (head + 1) * group; ++q_head) {
    for (int64_t row = queries.begin; row < queries.end; ++row) {
      const int64_t query = sample * rows.queries.rows + row,
                    at = query * rows.query_heads + q_head;
      const T* const q = static_cast<const T*>(args.q) + query * args.q_stride + q_head * width;
      const T* const d_output = static_cast<const T*>(args.output_gradient) + at * width;
      const float weight = expf(Dot(q, k, width) * launch.scale - args.lse[at]);
      const float d_score = weight * (Dot(d_output, v, width) - launch.delta[at]) * launch.scale;
      for (int64_t d = Lane(); d < width; d += kWarp) {
        d_key[d] += d_score * Widen(q[d]);
        d_value[d] += weight * Widen(d_output[d]);
      }
    }
  }
  for (int64_t d = Lane(); d < width; d += kWarp) {
    static_cast<T*>(args.dk)[kv_at + d] = Narrow<T>(d_key[d]);
    static_cast<T*>(args.dv)[kv_at + d] = Narrow<T>(d_value[d]);
  }
}

// One block of one warp per row of each head, with `vectors` arrays of float32 [D] in shared
// memory.
LaunchShape WarpsFor(int64_t rows, int64_t heads, int64_t vectors, int64_t head_dim) {
  return {.blocks_x = static_cast<unsigned>(rows * heads),
          .threads = kWarp,
          .shared_bytes = static_cast<size_t>(vectors * head_dim) * sizeof(float)};
}

}  // namespace

template <typename T>
KernelLaunch WideAttention(const AttentionLaunch<AttentionArgs>& launch) {
  const AttentionRows& rows = launch.args.rows;
  return MakeLaunch("wide_attention", &WideAttentionKernel<T>,
                    WarpsFor(rows.samples * rows.queries.rows, rows.query_heads, 1, rows.head_dim),
                    launch);
}

template <typename T>
KernelLaunch WideAttentionQueryGrad(const AttentionLaunch<AttentionGradArgs>& launch) {
  const AttentionRows& rows = launch.args.rows;
  return MakeLaunch("wide_attention_query_grad", &WideQueryGradKernel<T>,
                    WarpsFor(rows.samples * rows.queries.rows, rows.query_heads, 1, rows.head_dim),
                    launch);
}

template <typename T>
KernelLaunch WideAttentionKeyGrad(const AttentionLaunch<AttentionGradArgs>& launch) {
  const AttentionRows& rows = launch.args.rows;
  return MakeLaunch("wide_attention_key_grad", &WideKeyGradKernel<T>,
                    WarpsFor(rows.samples * rows.keys.rows, rows.key_value_heads, 2, rows.head_dim),
                    launch);
}

template KernelLaunch WideAttention<float>(const AttentionLaunch<AttentionArgs>&);
template KernelLaunch WideAttention<BFloat16>(const AttentionLaunch<AttentionArgs>&);
template KernelLaunch WideAttentionQueryGrad<float>(const AttentionLaunch<AttentionGradArgs>&);
template KernelLaunch WideAttentionQueryGrad<BFloat16>(const AttentionLaunch<AttentionGradArgs>&);
template KernelLaunch WideAttentionKeyGrad<float>(const AttentionLaunch<AttentionGradArgs>&);
template KernelLaunch WideAttentionKeyGrad<BFloat16>(const AttentionLaunch<AttentionGradArgs>&);

}  // namespace troupe::kernels::cuda
