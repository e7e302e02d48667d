// Causal grouped-query attention without the T×T matrix: blocks of kQueries queries against blocks
// of kKeys keys.
//
// Forward keeps a running maximum and sum for each query and rescales its output when the maximum
// rises (the blockwise softmax recurrence of Milakov and Gimelshein 2018, Rabe and Staats 2021,
// FlashAttention). Backward recomputes the probabilities of a block from lse: dv += pᵀ do, ds = p
// (do vᵀ - do·o) / sqrt(D), dq += ds k, dk += dsᵀ q.
//
// A unit of work is one key-value head of one sample. Its keys and values are packed once and used
// by all query heads of its group. One thread computes a unit in a fixed order, so results do not
// depend on the number of threads.
//
// Queries and keys are rows of the same samples, but not always the same rows (ring attention).
// Each query attends to the keys at positions from the start of its document to its own position,
// which are one range of the local keys. Blocks of keys outside the ranges of a block of queries
// are skipped. A query that attends to no local key keeps its merged result.
#include "kernels/cpu/level_target.h"

#include "kernels/cpu/key_range.h"
#include "kernels/cpu/tile.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

constexpr int kKeyVectors = kKeys / kLanes;

template <typename T>
struct UsesPairs {
  static constexpr bool value = false;
};
#if TROUPE_LEVEL == 3
template <>
struct UsesPairs<BFloat16> {
  static constexpr bool value = true;
};
#endif

TROUPE_INLINE int64_t RoundUp(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

// Allocates 64-byte aligned pieces of a thread's scratch. With a null base it only counts bytes.
struct Scratch {
  char* base;
  int64_t used = 0;
  template <typename Element>
  Element* Allocate(int64_t count) {
    Element* piece = base == nullptr ? nullptr : reinterpret_cast<Element*>(base + used);
    used += RoundUp(count * static_cast<int64_t>(sizeof(Element)), 64);
    return piece;
  }
};

// Extents of one problem in words; a word is one float32 or a pair of bfloat16.
struct Extents {
  int64_t tokens, head_dim, pack;  // tokens: number of keys in a sample
  int64_t depth() const { return (head_dim + pack - 1) / pack; }  // words along D
  int64_t width() const { return RoundUp(head_dim, kLanes); }     // padded D
  int64_t padded_tokens() const { return RoundUp(tokens, kKeys); }
};

struct ForwardScratch {
  uint32_t *keys, *values, *queries, *probabilities;
  float *scores, *output, *max, *sum;
  ForwardScratch(Scratch& s, const Extents& e)
      : keys(s.Allocate<uint32_t>(e.padded_tokens() * e.depth())),
        values(s.Allocate<uint32_t>(e.padded_tokens() / e.pack * e.width())),
        queries(s.Allocate<uint32_t>(kQueries * e.depth())),
        probabilities(s.Allocate<uint32_t>(kQueries * kKeys / e.pack)),
        scores(s.Allocate<float>(kQueries * kKeys)),
        output(s.Allocate<float>(kQueries * e.width())),
        max(s.Allocate<float>(kQueries)),
        sum(s.Allocate<float>(kQueries)) {}
};

struct BackwardScratch {
  uint32_t *keys_transposed, *values_transposed, *keys;
  float *key_gradient, *value_gradient;
  uint32_t *queries, *output_gradient, *query_rows, *output_gradient_rows;
  uint32_t *probabilities, *score_gradient, *score_gradient_rows;
  float *scores, *probability_gradient, *query_gradient, *delta;
  BackwardScratch(Scratch& s, const Extents& e)
      : keys_transposed(s.Allocate<uint32_t>(e.padded_tokens() * e.depth())),
        values_transposed(s.Allocate<uint32_t>(e.padded_tokens() * e.depth())),
        keys(s.Allocate<uint32_t>(e.padded_tokens() / e.pack * e.width())),
        key_gradient(s.Allocate<float>(e.padded_tokens() * e.width())),
        value_gradient(s.Allocate<float>(e.padded_tokens() * e.width())),
        queries(s.Allocate<uint32_t>(kQueries * e.depth())),
        output_gradient(s.Allocate<uint32_t>(kQueries * e.depth())),
        query_rows(s.Allocate<uint32_t>(kQueries / e.pack * e.width())),
        output_gradient_rows(s.Allocate<uint32_t>(kQueries / e.pack * e.width())),
        probabilities(s.Allocate<uint32_t>(kQueries / e.pack * kKeys)),
        score_gradient(s.Allocate<uint32_t>(kQueries / e.pack * kKeys)),
        score_gradient_rows(s.Allocate<uint32_t>(kQueries * kKeys / e.pack)),
        scores(s.Allocate<float>(kQueries * kKeys)),
        probability_gradient(s.Allocate<float>(kQueries * kKeys)),
        query_gradient(s.Allocate<float>(kQueries * e.width())),
        delta(s.Allocate<float>(kQueries)) {}
};

int64_t AttentionScratchBytes(const AttentionShape& shape) {
  const bool pairs = shape.bfloat16 && UsesPairs<BFloat16>::value;
  const Extents extents{shape.tokens, shape.head_dim, pairs ? 2 : 1};
  Scratch scratch{nullptr};
  if (shape.backward) {
    BackwardScratch measured(scratch, extents);
  } else {
    ForwardScratch measured(scratch, extents);
  }
  return scratch.used;
}

TROUPE_INLINE uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
TROUPE_INLINE uint32_t WidenedBits(const float* p) { return Bits(*p); }
TROUPE_INLINE uint32_t WidenedBits(const BFloat16* p) {
  return static_cast<uint32_t>(p->bits) << 16;
}

// Word `d` of a row of D elements.
template <typename T>
TROUPE_INLINE uint32_t WordOf(const T* row, int64_t d, int64_t head_dim) {
  if constexpr (UsesPairs<T>::value) {
    const uint32_t low = row[2 * d].bits;
    const uint32_t high = 2 * d + 1 < head_dim ? row[2 * d + 1].bits : 0;
    return low | high << 16;
  } else {
    return WidenedBits(row + d);
  }
}

// Packs A as words [rows][depth].
template <typename T>
void PackRows(const T* source, int64_t stride, int64_t rows, const Extents& e, uint32_t* packed) {
  for (int64_t r = 0; r < rows; ++r, source += stride, packed += e.depth()) {
    if constexpr (UsesPairs<T>::value) {
      std::memcpy(packed, source, e.head_dim / 2 * sizeof(uint32_t));
      if (e.head_dim % 2 != 0) packed[e.depth() - 1] = source[e.head_dim - 1].bits;
    } else {
      for (int64_t d = 0; d < e.head_dim; d += kLanes) {
        const int64_t count = e.head_dim - d;
        StoreUpTo(reinterpret_cast<float*>(packed) + d, count, LoadUpTo(source + d, count));
      }
    }
  }
}

// Packs B = sourceᵀ in panels of kKeys columns: [padded rows / kKeys][depth][kKeys], zeros beyond
// `rows`.
template <typename T>
void PackTransposed(const T* source, int64_t stride, int64_t rows, const Extents& e,
                    uint32_t* packed) {
  for (int64_t first = 0; first < rows; first += kKeys, packed += e.depth() * kKeys) {
    const int64_t present = rows - first < kKeys ? rows - first : kKeys;
    if (present < kKeys) std::memset(packed, 0, e.depth() * kKeys * sizeof(uint32_t));
    for (int64_t d = 0; d < e.depth(); ++d) {
      const T* column = source + first * stride;
      for (int64_t r = 0; r < present; ++r) {
        packed[d * kKeys + r] = WordOf(column + r * stride, d, e.head_dim);
      }
    }
  }
}

// Packs B = source as words [padded rows / pack][width], zeros beyond `rows` and beyond D.
template <typename T>
void PackNatural(const T* source, int64_t stride, int64_t rows, int64_t padded_rows,
                 const Extents& e, uint32_t* packed) {
  for (int64_t r = 0; r < padded_rows; r += e.pack, packed += e.width()) {
    if (r >= rows) {
      std::memset(packed, 0, e.width() * sizeof(uint32_t));
      continue;
    }
    const T* even = source + r * stride;
    for (int64_t d = 0; d < e.width(); d += kLanes) {
      const int64_t count = e.head_dim - d;
      U32 words = reinterpret_cast<U32>(LoadUpTo(even + d, count));
      if constexpr (UsesPairs<T>::value) {
        words >>= 16;
        if (r + 1 < rows) words |= reinterpret_cast<U32>(LoadUpTo(even + stride + d, count));
      }
      *reinterpret_cast<U32Unaligned*>(packed + d) = words;
    }
  }
}

// Sets maxima, sums and outputs of the rows before the first key.
void BeginRows(const AttentionArgs& args, const Extents& e, const ForwardScratch& s,
               int64_t first_query, int64_t rows, int64_t o_at, int64_t lse_at) {
  const int64_t query_heads = args.rows.query_heads, o_stride = query_heads * e.head_dim;
  std::memset(s.output, 0, kQueries * e.width() * sizeof(float));
  for (int64_t r = 0; r < rows; ++r) {
    s.max[r] = -__builtin_inff();
    s.sum[r] = 0.0f;
    if (args.merged_lse == nullptr) continue;
    // Treats the merged keys as one key whose value is the merged o.
    s.max[r] = args.merged_lse[lse_at + (first_query + r) * query_heads];
    s.sum[r] = 1.0f;
    std::memcpy(s.output + r * e.width(), args.merged_o + o_at + (first_query + r) * o_stride,
                e.head_dim * sizeof(float));
  }
}

// Stores lse and output of the rows after the last key.
template <typename T>
void StoreRows(const AttentionArgs& args, const Extents& e, const ForwardScratch& s,
               int64_t first_query, int64_t rows, int64_t o_at, int64_t lse_at) {
  const int64_t query_heads = args.rows.query_heads, o_stride = query_heads * e.head_dim;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = first_query + r;
    const float inverse = 1.0f / s.sum[r];
    args.lse[lse_at + row * query_heads] = s.max[r] + static_cast<float>(__builtin_log(s.sum[r]));
    const int64_t out = o_at + row * o_stride;
    for (int64_t d = 0; d < e.head_dim; d += kLanes) {
      const F32 values = Load(s.output + r * e.width() + d) * inverse;
      if (args.wide_output) {
        StoreUpTo(static_cast<float*>(args.o) + out + d, e.head_dim - d, values);
      } else {
        StoreUpTo(static_cast<T*>(args.o) + out + d, e.head_dim - d, values);
      }
    }
  }
}

// Computes one block of queries of one head. The keys and values are already packed in `s`.
template <typename T>
void AttendBlock(const AttentionArgs& args, const Extents& e, const ForwardScratch& s,
                 const T* queries, int64_t first_query, const int32_t* documents, int64_t o_at,
                 int64_t lse_at) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const int64_t left = args.rows.queries.rows - first_query;
  const int64_t rows = left < kQueries ? left : kQueries;
  const int64_t width = e.width();
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(e.head_dim));
  BlockRanges ranges;
  FindRanges(args.rows, documents, first_query, rows, &ranges);
  PackRows(queries + first_query * args.q_stride, args.q_stride, rows, e, s.queries);
  BeginRows(args, e, s, first_query, rows, o_at, lse_at);
  for (int64_t key = ranges.all.begin; key < ranges.all.end; key += kKeys) {
    Multiply<kPairs>(
        {s.queries, e.depth(), 1, s.keys + key * e.depth(), kKeys, s.scores, kKeys, e.depth()},
        rows, kKeys, false);
    for (int64_t r = 0; r < rows; ++r) {
      F32 scores[kKeyVectors];
      const KeyRange& visible = ranges.of[r];
      if (!AnyVisible(visible, key)) {
        std::memset(s.probabilities + r * kKeys / e.pack, 0, kKeys / e.pack * sizeof(uint32_t));
        continue;
      }
      const bool masked = !AllVisible(visible, key);
      F32 largest = Set(-__builtin_inff());
#pragma GCC unroll 16
      for (int v = 0; v < kKeyVectors; ++v) {
        scores[v] = Load(s.scores + r * kKeys + v * kLanes) * scale;
        if (masked) scores[v] = Masked(scores[v], key + v * kLanes, visible);
        largest = Max(scores[v], largest);
      }
      const float block_max = ReduceMax(largest);
      const float old_max = s.max[r];
      const float new_max = block_max > old_max ? block_max : old_max;
      F32 total = {};
#pragma GCC unroll 16
      for (int v = 0; v < kKeyVectors; ++v) {
        const F32 probability = Exp(scores[v] - new_max);
        total += probability;
        if constexpr (kPairs) {
          Store(reinterpret_cast<BFloat16*>(s.probabilities) + r * kKeys + v * kLanes, probability);
        } else {
          Store(reinterpret_cast<float*>(s.probabilities) + r * kKeys + v * kLanes, probability);
        }
      }
      if (new_max > old_max) {
        const float rescale = Exp(Set(old_max - new_max))[0];
        s.max[r] = new_max;
        s.sum[r] *= rescale;
        for (int64_t d = 0; d < width; d += kLanes) {
          Store(s.output + r * width + d, Load(s.output + r * width + d) * rescale);
        }
      }
      s.sum[r] += ReduceAdd(total);
    }
    Multiply<kPairs>({s.probabilities, kKeys / e.pack, 1, s.values + key / e.pack * width, width,
                      s.output, width, kKeys / e.pack},
                     rows, width, true);
  }
  StoreRows<T>(args, e, s, first_query, rows, o_at, lse_at);
}

template <typename T>
void Attention(const AttentionArgs& args, int thread, int threads) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const AttentionRows& rows = args.rows;
  const int64_t keys = rows.keys.rows, queries = rows.queries.rows, head_dim = rows.head_dim;
  const Extents e{keys, head_dim, kPairs ? 2 : 1};
  Scratch scratch{args.scratch +
                  thread * AttentionScratchBytes({keys, head_dim, sizeof(T) == 2, false})};
  const ForwardScratch s(scratch, e);
  // If there are fewer heads than threads, the blocks of queries of a head are distributed over
  // threads round-robin.
  const int64_t units = rows.samples * rows.key_value_heads;
  const int64_t deals = (threads + units - 1) / units;
  const int64_t group = rows.query_heads / rows.key_value_heads;
  const Part part = PartOf(units * deals, thread, threads);
  for (int64_t task = part.begin; task < part.end; ++task) {
    const int64_t sample = task / deals / rows.key_value_heads;
    const int64_t key_value_head = task / deals % rows.key_value_heads;
    const int32_t* documents =
        rows.documents == nullptr ? nullptr : rows.documents + sample * rows.tokens;
    const int64_t kv_at = sample * keys * args.kv_stride + key_value_head * head_dim;
    PackTransposed(static_cast<const T*>(args.k) + kv_at, args.kv_stride, keys, e, s.keys);
    PackNatural(static_cast<const T*>(args.v) + kv_at, args.kv_stride, keys, e.padded_tokens(), e,
                s.values);
    const T* q = static_cast<const T*>(args.q) + sample * queries * args.q_stride;
    for (int64_t head = key_value_head * group; head < (key_value_head + 1) * group; ++head) {
      const int64_t lse_at = sample * queries * rows.query_heads + head;
      for (int64_t first = task % deals * kQueries; first < queries; first += deals * kQueries) {
        AttendBlock(args, e, s, q + head * head_dim, first, documents, lse_at * head_dim, lse_at);
      }
    }
  }
}

// Packs two adjacent rows of float32 into words: pairs of bfloat16, the even row in the low half.
TROUPE_INLINE U32 PairOf(F32 even, F32 odd) {
#if TROUPE_LEVEL == 3
  const U32 low = (U32)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)even));
  const U32 high = (U32)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)odd));
#else
  const U32 low = RoundToBFloat16(even);
  const U32 high = RoundToBFloat16(odd);
#endif
  return low | high << 16;
}

// Computes the probabilities and score gradients of one block, in the layouts that the three
// following matmuls read.
template <bool kPairs>
TROUPE_INLINE void ScoreGradients(const BackwardScratch& s, int64_t rows, const BlockRanges& ranges,
                                  int64_t key, float scale, const float* lse, int64_t lse_stride) {
  constexpr int64_t kStep = kPairs ? 2 : 1;
  const int64_t padded = kPairs ? RoundUp(rows, 2) : rows;
  for (int64_t r = 0; r < padded; r += kStep) {
#pragma GCC unroll 16
    for (int v = 0; v < kKeyVectors; ++v) {
      F32 p[2] = {}, ds[2] = {};
      for (int64_t i = 0; i < kStep; ++i) {
        if (r + i >= rows) continue;
        const int64_t at = (r + i) * kKeys + v * kLanes;
        F32 score = Load(s.scores + at) * scale;
        const KeyRange& visible = ranges.of[r + i];
        if (!AllVisible(visible, key)) score = Masked(score, key + v * kLanes, visible);
        p[i] = Exp(score - lse[(r + i) * lse_stride]);
        ds[i] = p[i] * (Load(s.probability_gradient + at) - s.delta[r + i]) * scale;
        if constexpr (kPairs) {
          Store(reinterpret_cast<BFloat16*>(s.score_gradient_rows) + at, ds[i]);
        }
      }
      const int64_t at = r / kStep * kKeys + v * kLanes;
      const U32 p_words = kPairs ? PairOf(p[0], p[1]) : reinterpret_cast<U32>(p[0]);
      const U32 ds_words = kPairs ? PairOf(ds[0], ds[1]) : reinterpret_cast<U32>(ds[0]);
      *reinterpret_cast<U32Unaligned*>(s.probabilities + at) = p_words;
      *reinterpret_cast<U32Unaligned*>(s.score_gradient + at) = ds_words;
    }
  }
}

template <typename T>
void GradientBlock(const AttentionGradArgs& args, const Extents& e, const BackwardScratch& s,
                   int64_t q_at, int64_t o_at, int64_t lse_at, int64_t first_query,
                   const int32_t* documents) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const int64_t left = args.rows.queries.rows - first_query;
  const int64_t rows = left < kQueries ? left : kQueries;
  const int64_t width = e.width();
  const int64_t stride = args.q_stride, query_heads = args.rows.query_heads;
  const int64_t out_stride = query_heads * e.head_dim;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(e.head_dim));
  BlockRanges ranges;
  FindRanges(args.rows, documents, first_query, rows, &ranges);
  q_at += first_query * stride;
  o_at += first_query * out_stride;
  const T* block_queries = static_cast<const T*>(args.q) + q_at;
  const T* block_gradient = static_cast<const T*>(args.output_gradient) + o_at;
  const float* lse = args.lse + lse_at + first_query * query_heads;
  PackRows(block_queries, stride, rows, e, s.queries);
  PackRows(block_gradient, out_stride, rows, e, s.output_gradient);
  PackNatural(block_queries, stride, rows, RoundUp(rows, e.pack), e, s.query_rows);
  PackNatural(block_gradient, out_stride, rows, RoundUp(rows, e.pack), e, s.output_gradient_rows);
  for (int64_t r = 0; r < rows; ++r) {
    const T* gradient_row = block_gradient + r * out_stride;
    const T* output_row = static_cast<const T*>(args.o) + o_at + r * out_stride;
    F32 sum = {};
    for (int64_t d = 0; d < e.head_dim; d += kLanes) {
      sum += LoadUpTo(gradient_row + d, e.head_dim - d) * LoadUpTo(output_row + d, e.head_dim - d);
    }
    s.delta[r] = ReduceAdd(sum);
  }
  const int64_t row_words = (rows + e.pack - 1) / e.pack;
  if (ranges.all.begin >= ranges.all.end) {
    std::memset(s.query_gradient, 0, rows * width * sizeof(float));
  }
  for (int64_t key = ranges.all.begin; key < ranges.all.end; key += kKeys) {
    Multiply<kPairs>({s.queries, e.depth(), 1, s.keys_transposed + key * e.depth(), kKeys, s.scores,
                      kKeys, e.depth()},
                     rows, kKeys, false);
    Multiply<kPairs>({s.output_gradient, e.depth(), 1, s.values_transposed + key * e.depth(), kKeys,
                      s.probability_gradient, kKeys, e.depth()},
                     rows, kKeys, false);
    ScoreGradients<kPairs>(s, rows, ranges, key, scale, lse, query_heads);
    const uint32_t* ds_rows = kPairs ? s.score_gradient_rows : s.score_gradient;
    Multiply<kPairs>({ds_rows, kKeys / e.pack, 1, s.keys + key / e.pack * width, width,
                      s.query_gradient, width, kKeys / e.pack},
                     rows, width, key > ranges.all.begin);
    Multiply<kPairs>({s.score_gradient, 1, kKeys, s.query_rows, width, s.key_gradient + key * width,
                      width, row_words},
                     kKeys, width, true);
    Multiply<kPairs>({s.probabilities, 1, kKeys, s.output_gradient_rows, width,
                      s.value_gradient + key * width, width, row_words},
                     kKeys, width, true);
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* out = static_cast<T*>(args.dq) + q_at + r * stride;
    for (int64_t d = 0; d < e.head_dim; d += kLanes) {
      StoreUpTo(out + d, e.head_dim - d, Load(s.query_gradient + r * width + d));
    }
  }
}

template <typename T>
void AttentionGrad(const AttentionGradArgs& args, int thread, int threads) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const AttentionRows& rows = args.rows;
  const int64_t keys = rows.keys.rows, queries = rows.queries.rows, head_dim = rows.head_dim;
  const Extents e{keys, head_dim, kPairs ? 2 : 1};
  Scratch scratch{args.scratch +
                  thread * AttentionScratchBytes({keys, head_dim, sizeof(T) == 2, true})};
  const BackwardScratch s(scratch, e);
  const int64_t width = e.width();
  const int64_t group = rows.query_heads / rows.key_value_heads;
  const Part part = PartOf(rows.samples * rows.key_value_heads, thread, threads);
  for (int64_t task = part.begin; task < part.end; ++task) {
    const int64_t sample = task / rows.key_value_heads;
    const int64_t key_value_head = task % rows.key_value_heads;
    const int32_t* documents =
        rows.documents == nullptr ? nullptr : rows.documents + sample * rows.tokens;
    const int64_t kv_at = sample * keys * args.kv_stride + key_value_head * head_dim;
    const T* k = static_cast<const T*>(args.k) + kv_at;
    PackTransposed(k, args.kv_stride, keys, e, s.keys_transposed);
    PackTransposed(static_cast<const T*>(args.v) + kv_at, args.kv_stride, keys, e,
                   s.values_transposed);
    PackNatural(k, args.kv_stride, keys, e.padded_tokens(), e, s.keys);
    std::memset(s.key_gradient, 0, e.padded_tokens() * width * sizeof(float));
    std::memset(s.value_gradient, 0, e.padded_tokens() * width * sizeof(float));
    for (int64_t head = key_value_head * group; head < (key_value_head + 1) * group; ++head) {
      const int64_t lse_at = sample * queries * rows.query_heads + head;
      for (int64_t first = 0; first < queries; first += kQueries) {
        GradientBlock<T>(args, e, s, sample * queries * args.q_stride + head * head_dim,
                         lse_at * head_dim, lse_at, first, documents);
      }
    }
    T *dk = static_cast<T*>(args.dk) + kv_at, *dv = static_cast<T*>(args.dv) + kv_at;
    for (int64_t t = 0; t < keys; ++t) {
      for (int64_t d = 0; d < e.head_dim; d += kLanes) {
        const int64_t count = e.head_dim - d;
        StoreUpTo(dk + t * args.kv_stride + d, count, Load(s.key_gradient + t * width + d));
        StoreUpTo(dv + t * args.kv_stride + d, count, Load(s.value_gradient + t * width + d));
      }
    }
  }
}

template void Attention<float>(const AttentionArgs&, int, int);
template void Attention<BFloat16>(const AttentionArgs&, int, int);
template void AttentionGrad<float>(const AttentionGradArgs&, int, int);
template void AttentionGrad<BFloat16>(const AttentionGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
