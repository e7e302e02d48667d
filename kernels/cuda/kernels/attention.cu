// Attention without the T·T matrix (FlashAttention-2, Dao 2023). A block of threads computes a
// block of queries of one head, each warp some of them, and iterates over the keys that any of them
// attends to. For each query it keeps the largest score so far, the sum of exponentials and the
// output; a larger score rescales them. Exponentials are powers of 2: scores are multiplied by
// log2(e) / sqrt(D). The weights of a block of keys stay in the registers of the warp that computed
// them. Keys and values have two stages in shared memory: while one block of them is in use, the
// next is copied.
#include "kernels/cuda/device_code/shared_tile.h"
#include "kernels/cuda/kernels/attention_keys.h"
#include "kernels/cuda/kernels/attention_launch.h"
#include "kernels/cuda/kernels/attention_shape.h"
#include "kernels/cuda/kernels/attention_wide.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

// The state of the two rows that a lane holds of each tile of sixteen. Until the end, sums cover
// only the lane's own columns.
template <int kRowTiles>
struct SoftmaxState {
  float max[kRowTiles][2];  // in base 2; -inf: no key so far
  float sum[kRowTiles][2];
};

// Turns scores into weights and rescales the accumulated sums and outputs.
template <typename T, int kRowTiles, int kKeyColumns, int kColumns>
TROUPE_DEVICE void AddToSoftmax(FragmentC (&scores)[kRowTiles][kKeyColumns], float scale,
                                SoftmaxState<kRowTiles>& state,
                                FragmentC (&output)[kRowTiles][kColumns]) {
  TROUPE_UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float largest = -INFINITY;
      TROUPE_UNROLL
      for (int n = 0; n < kKeyColumns; ++n) {
        largest = fmaxf(largest, fmaxf(scores[m][n].of[2 * half], scores[m][n].of[2 * half + 1]));
      }
      largest = fmaxf(largest, ShuffleXor(largest, 1));
      largest = fmaxf(largest, ShuffleXor(largest, 2));
      float& max = state.max[m][half];
      const float before = max;
      max = fmaxf(before, largest * scale);
      const float base = max == -INFINITY ? 0.0f : max;
      const float rescale = Exp2<T>(before - base);
      float sum = 0;
      TROUPE_UNROLL
      for (int n = 0; n < kKeyColumns; ++n) {
        TROUPE_UNROLL
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const float weight = Exp2<T>(scores[m][n].of[i] * scale - base);
          scores[m][n].of[i] = weight;
          sum += weight;
        }
      }
      state.sum[m][half] = state.sum[m][half] * rescale + sum;
      TROUPE_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        output[m][n].of[2 * half] *= rescale;
        output[m][n].of[2 * half + 1] *= rescale;
      }
    }
  }
}

// Divides a warp's output by its sums, merges it with args.merged_o, if any, and stores it with the
// lse. `first_row`: the warp's first query; queries beyond `last` are not stored.
template <typename T, int kRowTiles, int kColumns>
TROUPE_DEVICE void StoreOutput(const AttentionLaunch<AttentionArgs>& launch,
                               const AttentionPlace& place, int first_row, int last,
                               const SoftmaxState<kRowTiles>& state,
                               const FragmentC (&output)[kRowTiles][kColumns]) {
  const AttentionArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const auto width = static_cast<int>(rows.head_dim);
  const int g = Lane() / 4, t = Lane() % 4;
  TROUPE_UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float max = state.max[m][half], sum = state.sum[m][half];
      sum += ShuffleXor(sum, 1);
      sum += ShuffleXor(sum, 2);
      const int row = first_row + 16 * m + 8 * half + g;
      if (row > last) continue;
      const int64_t at = (place.sample * rows.queries.rows + row) * rows.query_heads + place.head;
      // Weights of the output and of the merged output.
      float lse = max * kLn2 + logf(sum), share = 1, merged_share = 0;
      if (args.merged_lse != nullptr) {  // as one key whose value is the merged output
        const float merged_lse = args.merged_lse[at], merged_max = merged_lse * kLog2E;
        const float largest = fmaxf(max, merged_max);
        share = Exp2<T>(max - largest);
        merged_share = Exp2<T>(merged_max - largest);
        sum = sum * share + merged_share;
        lse = max == -INFINITY ? merged_lse : largest * kLn2 + logf(sum);
      }
      if (t == 0) args.lse[at] = lse;
      share /= sum;
      merged_share /= sum;
      TROUPE_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        const int column = 8 * n + 2 * t;
        float pair[2];
        TROUPE_UNROLL
        for (int i = 0; i < 2; ++i) {
          pair[i] = output[m][n].of[2 * half + i] * share;
          if (args.merged_lse != nullptr && column + i < width) {
            pair[i] += args.merged_o[at * rows.head_dim + column + i] * merged_share;
          }
        }
        if (args.wide_output) {
          StorePair(static_cast<float*>(args.o) + at * rows.head_dim, column, width, launch.packed,
                    pair[0], pair[1]);
        } else {
          StorePair(static_cast<T*>(args.o) + at * rows.head_dim, column, width, launch.packed,
                    pair[0], pair[1]);
        }
      }
    }
  }
}

template <typename T, int kWidth>
TROUPE_KERNEL void AttentionKernel(AttentionLaunch<AttentionArgs> launch) {
  constexpr AttentionTile kTile = TileOf(AttentionPass::kForward, kWidth, sizeof(T) == 2);
  constexpr int kRowTiles = kTile.row_tiles, kKeys = kTile.others, kQueries = kTile.rows();
  constexpr int kThreads = kTile.threads();
  using Tile = SharedTile<T, kWidth>;
  const AttentionArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const AttentionPlace place = PlaceOf(AttentionPass::kForward, rows, kQueries, BlockIndex().x);
  const auto all_queries = static_cast<int>(rows.queries.rows),
             all_keys = static_cast<int>(rows.keys.rows);
  const auto width = static_cast<int>(rows.head_dim);
  const int32_t* const documents = DocumentsOf(rows, place.sample);
  const int64_t kv_at = place.sample * rows.keys.rows * args.kv_stride +
                        place.head / (rows.query_heads / rows.key_value_heads) * rows.head_dim;
  const Rows<T> q = {static_cast<const T*>(args.q) +
                         place.sample * rows.queries.rows * args.q_stride +
                         place.head * rows.head_dim,
                     args.q_stride, width, launch.packed};
  const Rows<T> k = {static_cast<const T*>(args.k) + kv_at, args.kv_stride, width, launch.packed};
  const Rows<T> v = {static_cast<const T*>(args.v) + kv_at, args.kv_stride, width, launch.packed};
  const Tile queries{reinterpret_cast<T*>(DynamicShared())};
  const Tile keys = queries.Offset(kQueries), values = keys.Offset(2 * kKeys);
  auto* const visible =
      reinterpret_cast<KeyRange*>(values.Offset(2 * kKeys).base);  // one per query

  const int last =
      (place.first + kQueries < all_queries ? place.first + kQueries : all_queries) - 1;
  const KeyRange visible_to_first = VisibleKeys(rows, documents, place.first),
                 visible_to_last = VisibleKeys(rows, documents, last);
  FindVisibleKeys<kQueries, 16 * kTile.row_tiles>(rows, documents, place.first, last, visible);
  const int own = Warp() * 16 * kRowTiles;
  SoftmaxState<kRowTiles> state;
  TROUPE_UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
    state.max[m][0] = state.max[m][1] = -INFINITY;
    state.sum[m][0] = state.sum[m][1] = 0;
  }
  FragmentC output[kRowTiles][kWidth / 8] = {};

  const int begin = visible_to_first.begin / kKeys * kKeys, end = visible_to_last.end;
  const auto begin_keys = [&](int key, int stage) {
    BeginRows<kKeys, kThreads>(keys.Offset(stage * kKeys), k, key, all_keys);
    BeginRows<kKeys, kThreads>(values.Offset(stage * kKeys), v, key, all_keys);
    EndCopyGroup();
  };
  BeginRows<kQueries, kThreads>(queries, q, place.first, all_queries);
  EndCopyGroup();
  if (begin < end) begin_keys(begin, 0);
  int stage = 0;
  TROUPE_NO_UNROLL
  for (int key = begin; key < end; key += kKeys, stage ^= 1) {
    WaitForCopies<0>();
    SyncBlock();  // the copies are visible to all threads; the buffers of the next keys are free
    if (key + kKeys < end) begin_keys(key + kKeys, stage ^ 1);
    // The keys that this warp's queries attend to.
    const KeyRange first_own = visible[own], last_own = visible[own + 16 * kTile.row_tiles - 1];
    if (!AnyVisible(first_own, last_own, key, kKeys)) continue;
    FragmentC scores[kRowTiles][kKeys / 8] = {};
    MultiplyRows(scores, queries, own, keys.Offset(stage * kKeys));
    if (!AllVisible(first_own, last_own, key, kKeys)) MaskScores(scores, visible + own, key);
    AddToSoftmax<T>(scores, launch.scale * kLog2E, state, output);
    MultiplyResult(output, scores, values.Offset(stage * kKeys), 0);
  }
  WaitForCopies<0>();  // needed if there was no key
  StoreOutput<T>(launch, place, place.first + own, last, state, output);
}

template <typename T>
KernelLaunch AttentionOf(const AttentionArgs& args) {
  const auto launch = LaunchOf<T>(args, {args.q, args.k, args.v, args.o});
  const int padded = PaddedHeadDim(args.rows.head_dim);
  if (padded == 0) return WideAttention<T>(launch);
  const LaunchShape shape = AttentionShape(AttentionPass::kForward, args.rows, sizeof(T) == 2);
  return MakeLaunch("attention",
                    padded == 64    ? &AttentionKernel<T, 64>
                    : padded == 128 ? &AttentionKernel<T, 128>
                                    : &AttentionKernel<T, 256>,
                    shape, launch);
}

}  // namespace

KernelLaunch Attention(const AttentionArgs& args, bool bfloat16) {
  return bfloat16 ? AttentionOf<BFloat16>(args) : AttentionOf<float>(args);
}

}  // namespace troupe::kernels::cuda
