// The gradient of attention, with the weights p recomputed from lse: delta = do · o, ds = p (do vᵀ
// - delta) / sqrt(D), dq = ds k, dk = dsᵀ q, dv = pᵀ do. There are three kernels, each with a fixed
// summation order and no atomics: delta; dq, by blocks of queries that iterate over their keys; dk
// and dv, by blocks of keys that iterate over the queries of every head of their group. The last
// two both compute the scores and do vᵀ, so there are 7 matmuls where a single kernel would need 5.
#include "kernels/cuda/device_code/shared_tile.h"
#include "kernels/cuda/kernels/attention_keys.h"
#include "kernels/cuda/kernels/attention_launch.h"
#include "kernels/cuda/kernels/attention_shape.h"
#include "kernels/cuda/kernels/attention_wide.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kDeltaWarps = 8;  // per block

// One warp per query of each head.
template <typename T, int N>
TROUPE_KERNEL void DeltaKernel(AttentionLaunch<AttentionGradArgs> launch) {
  const AttentionGradArgs& args = launch.args;
  const int64_t width = args.rows.head_dim;
  const int64_t count = args.rows.samples * args.rows.queries.rows * args.rows.query_heads;
  const int64_t at = int64_t{BlockIndex().x} * kDeltaWarps + Warp();
  if (at >= count) return;
  float sum = 0;
  for (int64_t d = int64_t{Lane()} * N; d < width; d += int64_t{kWarp} * N) {
    const auto o = Pack<T, N>::Load(static_cast<const T*>(args.o) + at * width + d);
    const auto d_output =
        Pack<T, N>::Load(static_cast<const T*>(args.output_gradient) + at * width + d);
    for (int i = 0; i < N; ++i) sum += o[i] * d_output[i];
  }
  sum = WarpSum(sum);
  if (Lane() == 0) launch.delta[at] = sum;
}

// Rows of one head: queries, output gradients, keys and values.
template <typename T>
struct HeadRows {
  Rows<T> q, d_output, k, v;
  int64_t lse_at, lse_stride;  // offset of the first query; stride between queries
};
template <typename T>
TROUPE_DEVICE HeadRows<T> RowsOfHead(const AttentionLaunch<AttentionGradArgs>& launch,
                                     int64_t sample, int64_t head) {
  const AttentionGradArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const int width = static_cast<int>(rows.head_dim);
  const int64_t query = sample * rows.queries.rows, lse_at = query * rows.query_heads + head;
  const int64_t kv_at = sample * rows.keys.rows * args.kv_stride +
                        head / (rows.query_heads / rows.key_value_heads) * rows.head_dim;
  return {{static_cast<const T*>(args.q) + query * args.q_stride + head * rows.head_dim,
           args.q_stride, width, launch.packed},
          {static_cast<const T*>(args.output_gradient) + lse_at * rows.head_dim,
           rows.query_heads * rows.head_dim, width, launch.packed},
          {static_cast<const T*>(args.k) + kv_at, args.kv_stride, width, launch.packed},
          {static_cast<const T*>(args.v) + kv_at, args.kv_stride, width, launch.packed},
          lse_at,
          rows.query_heads};
}

// Stores a warp's rows of a result, multiplied by `scale`, to the rows of `to` from `row` on that
// precede `end`.
template <typename T, int kColumns>
TROUPE_DEVICE void StoreGradient(const FragmentC (&gradient)[1][kColumns], float scale, T* to,
                                 int64_t stride, int row, int end, int column, int width,
                                 bool packed) {
  const int g = Lane() / 4, t = Lane() % 4;
  TROUPE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int own = row + 8 * half + g;
    if (own >= end) continue;
    TROUPE_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      StorePair(to + own * stride, column + 8 * n + 2 * t, width, packed,
                gradient[0][n].of[2 * half] * scale, gradient[0][n].of[2 * half + 1] * scale);
    }
  }
}

// The statistics of a lane's two rows of queries; lse in base 2.
struct RowStatistics {
  float lse[2], delta[2];
};

// `row`: the first row of the warp. Rows beyond `last` have its statistics.
template <typename T>
TROUPE_DEVICE RowStatistics StatisticsOf(const AttentionLaunch<AttentionGradArgs>& launch,
                                         const HeadRows<T>& of, int row, int last) {
  RowStatistics statistics;
  TROUPE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int own = row + 8 * half + Lane() / 4;
    const int64_t at = of.lse_at + (own < last ? own : last) * of.lse_stride;
    statistics.lse[half] = launch.args.lse[at] * kLog2E;
    statistics.delta[half] = launch.delta[at];
  }
  return statistics;
}

template <typename T, int kWidth>
TROUPE_KERNEL void QueryGradKernel(AttentionLaunch<AttentionGradArgs> launch) {
  constexpr AttentionTile kTile = TileOf(AttentionPass::kQueryGradient, kWidth, sizeof(T) == 2);
  constexpr int kKeys = kTile.others, kQueries = kTile.rows(), kThreads = kTile.threads();
  static_assert(kTile.row_tiles == 1 && kTile.columns == kWidth);
  using Tile = SharedTile<T, kWidth>;
  const AttentionGradArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const AttentionPlace place =
      PlaceOf(AttentionPass::kQueryGradient, rows, kQueries, BlockIndex().x);
  const auto all_queries = static_cast<int>(rows.queries.rows),
             all_keys = static_cast<int>(rows.keys.rows);
  const int32_t* const documents = DocumentsOf(rows, place.sample);
  const HeadRows<T> of = RowsOfHead<T>(launch, place.sample, place.head);
  const Tile queries{reinterpret_cast<T*>(DynamicShared())};
  const Tile d_outputs = queries.Offset(kQueries), keys = d_outputs.Offset(kQueries);
  const Tile values = keys.Offset(2 * kKeys);
  auto* const visible =
      reinterpret_cast<KeyRange*>(values.Offset(2 * kKeys).base);  // one per query

  const int last =
      (place.first + kQueries < all_queries ? place.first + kQueries : all_queries) - 1;
  const KeyRange visible_to_first = VisibleKeys(rows, documents, place.first),
                 visible_to_last = VisibleKeys(rows, documents, last);
  FindVisibleKeys<kQueries, 16 * kTile.row_tiles>(rows, documents, place.first, last, visible);
  const int own = Warp() * 16;
  const RowStatistics statistics = StatisticsOf(launch, of, place.first + own, last);

  const int begin = visible_to_first.begin / kKeys * kKeys, end = visible_to_last.end;
  const auto begin_keys = [&](int key, int stage) {
    BeginRows<kKeys, kThreads>(keys.Offset(stage * kKeys), of.k, key, all_keys);
    BeginRows<kKeys, kThreads>(values.Offset(stage * kKeys), of.v, key, all_keys);
    EndCopyGroup();
  };
  BeginRows<kQueries, kThreads>(queries, of.q, place.first, all_queries);
  BeginRows<kQueries, kThreads>(d_outputs, of.d_output, place.first, all_queries);
  EndCopyGroup();
  if (begin < end) begin_keys(begin, 0);
  FragmentC gradient[1][kWidth / 8] = {};
  int stage = 0;
  TROUPE_NO_UNROLL
  for (int key = begin; key < end; key += kKeys, stage ^= 1) {
    WaitForCopies<0>();
    SyncBlock();  // the copies are visible to all threads; the buffers of the next keys are free
    if (key + kKeys < end) begin_keys(key + kKeys, stage ^ 1);
    // The keys that this warp's queries attend to.
    const KeyRange first_own = visible[own], last_own = visible[own + 16 * kTile.row_tiles - 1];
    if (!AnyVisible(first_own, last_own, key, kKeys)) continue;
    FragmentC scores[1][kKeys / 8] = {}, d_weights[1][kKeys / 8] = {};
    MultiplyRows(scores, queries, own, keys.Offset(stage * kKeys));
    MultiplyRows(d_weights, d_outputs, own, values.Offset(stage * kKeys));
    if (!AllVisible(first_own, last_own, key, kKeys)) MaskScores(scores, visible + own, key);
    TROUPE_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      TROUPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float weight =
            Exp2<T>(scores[0][n].of[i] * (launch.scale * kLog2E) - statistics.lse[i / 2]);
        scores[0][n].of[i] = weight * (d_weights[0][n].of[i] - statistics.delta[i / 2]);
      }
    }
    MultiplyResult(gradient, scores, keys.Offset(stage * kKeys), 0);
  }
  WaitForCopies<0>();  // needed if there was no key
  StoreGradient(gradient, launch.scale,
                static_cast<T*>(args.dq) + (of.q.first - static_cast<const T*>(args.q)),
                args.q_stride, place.first + own, last + 1, 0, of.q.width, launch.packed);
}

// Here the rows of scores are keys and the columns queries. Block y computes kTile.columns columns
// of dk and dv.
template <typename T, int kWidth>
TROUPE_KERNEL void KeyGradKernel(AttentionLaunch<AttentionGradArgs> launch) {
  constexpr AttentionTile kTile = TileOf(AttentionPass::kKeyGradient, kWidth, sizeof(T) == 2);
  constexpr int kKeys = kTile.rows(), kQueries = kTile.others, kThreads = kTile.threads();
  static_assert(kTile.row_tiles == 1 && kQueries <= kThreads);
  using Tile = SharedTile<T, kWidth>;
  const AttentionGradArgs& args = launch.args;
  const AttentionRows& rows = args.rows;
  const AttentionPlace place = PlaceOf(AttentionPass::kKeyGradient, rows, kKeys, BlockIndex().x);
  const auto all_queries = static_cast<int>(rows.queries.rows),
             all_keys = static_cast<int>(rows.keys.rows);
  const int32_t* const documents = DocumentsOf(rows, place.sample);
  const auto group = static_cast<int>(rows.query_heads / rows.key_value_heads);
  const HeadRows<T> of = RowsOfHead<T>(launch, place.sample, place.head * group);
  const Tile keys{reinterpret_cast<T*>(DynamicShared())};
  const Tile values = keys.Offset(kKeys), queries = values.Offset(kKeys);
  const Tile d_outputs = queries.Offset(2 * kQueries);
  auto* const states =
      reinterpret_cast<QueryState*>(d_outputs.Offset(2 * kQueries).base);  // [2][kQueries]

  // Iterates over the blocks of queries of one head after another.
  const QueryRange attending =
      QueriesAttendingTo(rows, documents, place.first,
                         place.first + kKeys < all_keys ? place.first + kKeys : all_keys);
  const int of_head = attending.begin < attending.end
                          ? (attending.end - attending.begin + kQueries - 1) / kQueries
                          : 0;
  int head = 0, query = attending.begin;  // next block to load
  const auto begin_queries = [&](int stage) {
    const Rows<T> q = {of.q.first + head * rows.head_dim, of.q.stride, of.q.width, of.q.packed};
    const Rows<T> d_output = {of.d_output.first + head * rows.head_dim, of.d_output.stride,
                              of.d_output.width, of.d_output.packed};
    BeginRows<kQueries, kThreads>(queries.Offset(stage * kQueries), q, query, all_queries);
    BeginRows<kQueries, kThreads>(d_outputs.Offset(stage * kQueries), d_output, query, all_queries);
    EndCopyGroup();
  };
  // Loads one query's state of the next block; the load is in flight until the state is stored.
  // Queries beyond the last have zeros, which contribute nothing.
  const auto load_state = [&] {
    const int row = query + static_cast<int>(ThreadIndex());
    if (ThreadIndex() >= kQueries) return QueryState{};
    if (row >= all_queries) return QueryState{0, 0, VisibleKeys(rows, documents, all_queries - 1)};
    const int64_t at = of.lse_at + head + row * of.lse_stride;
    return QueryState{args.lse[at], launch.delta[at], VisibleKeys(rows, documents, row)};
  };
  const auto store_state = [&](const QueryState& state, int stage) {
    if (ThreadIndex() >= kQueries) return;
    states[stage * kQueries + static_cast<int>(ThreadIndex())] = {state.lse * kLog2E, state.delta,
                                                                  state.visible};
  };

  BeginRows<kKeys, kThreads>(keys, of.k, place.first, all_keys);
  BeginRows<kKeys, kThreads>(values, of.v, place.first, all_keys);
  EndCopyGroup();
  if (of_head > 0) {
    begin_queries(0);
    store_state(load_state(), 0);
  }
  const int own = Warp() * 16, first_key = place.first + own;
  const int g = Lane() / 4, t = Lane() % 4;
  const int column = static_cast<int>(BlockIndex().y) * kTile.columns;
  FragmentC d_keys[1][kTile.columns / 8] = {}, d_values[1][kTile.columns / 8] = {};
  int stage = 0;
  TROUPE_NO_UNROLL
  for (int left = of_head * group; left > 0; --left, stage ^= 1) {
    WaitForCopies<0>();
    SyncBlock();  // the copies are visible to all threads; the buffers of the next queries are free
    query += kQueries;
    if (query >= attending.end) {
      query = attending.begin;
      ++head;
    }
    QueryState next{};
    if (left > 1) {
      begin_queries(stage ^ 1);
      next = load_state();
    }
    const QueryState* const of_queries = states + stage * kQueries;
    if (AnyVisible(of_queries[0].visible, of_queries[kQueries - 1].visible, first_key, 16)) {
      FragmentC weights[1][kQueries / 8] = {}, d_scores[1][kQueries / 8] = {};
      MultiplyRows(weights, keys, own, queries.Offset(stage * kQueries));
      MultiplyRows(d_scores, values, own, d_outputs.Offset(stage * kQueries));
      TROUPE_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TROUPE_UNROLL
        for (int i = 0; i < 2; ++i) {
          const QueryState state = of_queries[8 * n + 2 * t + i];
          TROUPE_UNROLL
          for (int half = 0; half < 2; ++half) {
            const int key = first_key + 8 * half + g;
            const bool is_visible = key >= state.visible.begin && key < state.visible.end;
            float& weight = weights[0][n].of[2 * half + i];
            float& d_score = d_scores[0][n].of[2 * half + i];
            weight = is_visible ? Exp2<T>(weight * (launch.scale * kLog2E) - state.lse) : 0.0f;
            d_score = weight * (d_score - state.delta);
          }
        }
      }
      MultiplyResult(d_values, weights, d_outputs.Offset(stage * kQueries), column);
      MultiplyResult(d_keys, d_scores, queries.Offset(stage * kQueries), column);
    }
    if (left > 1) store_state(next, stage ^ 1);
  }
  WaitForCopies<0>();  // needed if no query attends to the keys
  const int64_t kv_at = of.k.first - static_cast<const T*>(args.k);
  StoreGradient(d_keys, launch.scale, static_cast<T*>(args.dk) + kv_at, args.kv_stride,
                place.first + own, all_keys, column, of.k.width, launch.packed);
  StoreGradient(d_values, 1.0f, static_cast<T*>(args.dv) + kv_at, args.kv_stride, place.first + own,
                all_keys, column, of.k.width, launch.packed);
}

template <typename T>
AttentionLaunch<AttentionGradArgs> GradLaunchOf(const AttentionGradArgs& args, void* scratch) {
  return LaunchOf<T>(
      args, {args.output_gradient, args.q, args.k, args.v, args.o, args.dq, args.dk, args.dv},
      static_cast<float*>(scratch));
}

template <typename T>
KernelLaunch DeltaOf(const AttentionGradArgs& args, void* scratch) {
  const auto launch = GradLaunchOf<T>(args, scratch);
  const int64_t count = args.rows.samples * args.rows.queries.rows * args.rows.query_heads;
  return MakeLaunch("attention_delta", launch.packed ? &DeltaKernel<T, 4> : &DeltaKernel<T, 1>,
                    ThreadsFor(count * kWarp, kDeltaWarps * kWarp), launch);
}

template <typename T>
KernelLaunch QueryGradOf(const AttentionGradArgs& args, void* scratch) {
  const auto launch = GradLaunchOf<T>(args, scratch);
  const int padded = PaddedHeadDim(args.rows.head_dim);
  if (padded == 0) return WideAttentionQueryGrad<T>(launch);
  return MakeLaunch("attention_query_grad",
                    padded == 64    ? &QueryGradKernel<T, 64>
                    : padded == 128 ? &QueryGradKernel<T, 128>
                                    : &QueryGradKernel<T, 256>,
                    AttentionShape(AttentionPass::kQueryGradient, args.rows, sizeof(T) == 2),
                    launch);
}

template <typename T>
KernelLaunch KeyGradOf(const AttentionGradArgs& args, void* scratch) {
  const auto launch = GradLaunchOf<T>(args, scratch);
  const int padded = PaddedHeadDim(args.rows.head_dim);
  if (padded == 0) return WideAttentionKeyGrad<T>(launch);
  return MakeLaunch("attention_key_grad",
                    padded == 64    ? &KeyGradKernel<T, 64>
                    : padded == 128 ? &KeyGradKernel<T, 128>
                                    : &KeyGradKernel<T, 256>,
                    AttentionShape(AttentionPass::kKeyGradient, args.rows, sizeof(T) == 2), launch);
}

}  // namespace

int64_t AttentionGradScratchBytes(const AttentionRows& rows) {
  return rows.samples * rows.queries.rows * rows.query_heads * static_cast<int64_t>(sizeof(float));
}

KernelLaunch AttentionDelta(const AttentionGradArgs& args, void* scratch, bool bfloat16) {
  return bfloat16 ? DeltaOf<BFloat16>(args, scratch) : DeltaOf<float>(args, scratch);
}

KernelLaunch AttentionQueryGrad(const AttentionGradArgs& args, void* scratch, bool bfloat16) {
  return bfloat16 ? QueryGradOf<BFloat16>(args, scratch) : QueryGradOf<float>(args, scratch);
}

KernelLaunch AttentionKeyGrad(const AttentionGradArgs& args, void* scratch, bool bfloat16) {
  return bfloat16 ? KeyGradOf<BFloat16>(args, scratch) : KeyGradOf<float>(args, scratch);
}

}  // namespace troupe::kernels::cuda
