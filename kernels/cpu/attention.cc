// Causal grouped-query attention without the T×T matrix: blocks of kQueries queries against blocks
// of kKeys keys.
//
// Forward keeps a running maximum and sum for each query and rescales its output when the maximum
// rises (the blockwise softmax recurrence of Milakov and Gimelshein 2018, Rabe and Staats 2021,
// FlashAttention). Backward recomputes the probabilities of a block from lse: dv += pᵀ do, ds = p
// (do vᵀ - do·o) / sqrt(D), dq += ds k, dk += dsᵀ q.
//
// One key-value head of one sample is the unit of work; its keys and values are packed once, and
// all query heads of its group use them. Every unit is computed by one thread in one order, so
// results do not depend on the number of threads. With a document mask, blocks of keys before the
// document of a block's first query are passed over.
#include "kernels/cpu/level_target.h"
#include "kernels/cpu/tile.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

constexpr int64_t kQueries = 64;  // a block of queries; even
constexpr int64_t kKeys = 64;     // a block of keys; a multiple of kLanes · kTileVectors
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

// Hands out pieces of a thread's scratch, 64-byte aligned. Without a base it only counts.
struct Scratch {
  char* base;
  int64_t used = 0;
  template <typename Element>
  Element* Take(int64_t count) {
    Element* piece = base == nullptr ? nullptr : reinterpret_cast<Element*>(base + used);
    used += RoundUp(count * static_cast<int64_t>(sizeof(Element)), 64);
    return piece;
  }
};

// Extents of one problem in words: a word is one float32 or a pair of bfloat16.
struct Extents {
  int64_t tokens, head_dim, pack;
  int64_t depth() const { return (head_dim + pack - 1) / pack; }  // words along D
  int64_t width() const { return RoundUp(head_dim, kLanes); }     // padded D
  int64_t padded_tokens() const { return RoundUp(tokens, kKeys); }
};

struct ForwardScratch {
  uint32_t *keys, *values, *queries, *probabilities;
  float *scores, *output, *max, *sum;
  ForwardScratch(Scratch& s, const Extents& e)
      : keys(s.Take<uint32_t>(e.padded_tokens() * e.depth())),
        values(s.Take<uint32_t>(e.padded_tokens() / e.pack * e.width())),
        queries(s.Take<uint32_t>(kQueries * e.depth())),
        probabilities(s.Take<uint32_t>(kQueries * kKeys / e.pack)),
        scores(s.Take<float>(kQueries * kKeys)),
        output(s.Take<float>(kQueries * e.width())),
        max(s.Take<float>(kQueries)),
        sum(s.Take<float>(kQueries)) {}
};

struct BackwardScratch {
  uint32_t *keys_transposed, *values_transposed, *keys;
  float *key_gradient, *value_gradient;
  uint32_t *queries, *output_gradient, *query_rows, *output_gradient_rows;
  uint32_t *probabilities, *score_gradient, *score_gradient_rows;
  float *scores, *products, *query_gradient, *delta;
  BackwardScratch(Scratch& s, const Extents& e)
      : keys_transposed(s.Take<uint32_t>(e.padded_tokens() * e.depth())),
        values_transposed(s.Take<uint32_t>(e.padded_tokens() * e.depth())),
        keys(s.Take<uint32_t>(e.padded_tokens() / e.pack * e.width())),
        key_gradient(s.Take<float>(e.padded_tokens() * e.width())),
        value_gradient(s.Take<float>(e.padded_tokens() * e.width())),
        queries(s.Take<uint32_t>(kQueries * e.depth())),
        output_gradient(s.Take<uint32_t>(kQueries * e.depth())),
        query_rows(s.Take<uint32_t>(kQueries / e.pack * e.width())),
        output_gradient_rows(s.Take<uint32_t>(kQueries / e.pack * e.width())),
        probabilities(s.Take<uint32_t>(kQueries / e.pack * kKeys)),
        score_gradient(s.Take<uint32_t>(kQueries / e.pack * kKeys)),
        score_gradient_rows(s.Take<uint32_t>(kQueries * kKeys / e.pack)),
        scores(s.Take<float>(kQueries * kKeys)),
        products(s.Take<float>(kQueries * kKeys)),
        query_gradient(s.Take<float>(kQueries * e.width())),
        delta(s.Take<float>(kQueries)) {}
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

// A as words [rows][depth].
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

// B = sourceᵀ in panels of kKeys columns: [padded rows / kKeys][depth][kKeys], zeros beyond `rows`.
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

// B = source: words [padded rows / pack][width], zeros beyond `rows` and beyond D.
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

// The mask of one row of scores: keys after the query and before the row's document become -inf.
TROUPE_INLINE F32 Masked(F32 scores, int64_t first_key, int64_t query, int64_t document) {
  const I32 keys = Iota();
  const F32 causal =
      keys > static_cast<int32_t>(query - first_key) ? Set(-__builtin_inff()) : scores;
  return keys < static_cast<int32_t>(document - first_key) ? Set(-__builtin_inff()) : causal;
}

// Where the document of a row of the sample begins; the sample is one document where there are
// none.
TROUPE_INLINE int64_t DocumentOf(const int32_t* documents, int64_t row) {
  return documents == nullptr ? 0 : documents[row];
}

struct Heads {
  int64_t stride, key_at, value_at, group;
};
template <typename Args>
TROUPE_INLINE Heads HeadsOf(const Args& args, int64_t key_value_head) {
  return {(args.query_heads + 2 * args.key_value_heads) * args.head_dim,
          (args.query_heads + key_value_head) * args.head_dim,
          (args.query_heads + args.key_value_heads + key_value_head) * args.head_dim,
          args.query_heads / args.key_value_heads};
}

// One block of queries of one head; keys and values are packed in `s`.
template <typename T>
void AttendBlock(const AttentionArgs& args, const Extents& e, const ForwardScratch& s,
                 const T* queries, int64_t stride, int64_t first_query, const int32_t* documents,
                 T* o, float* lse) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const int64_t rows = args.tokens - first_query < kQueries ? args.tokens - first_query : kQueries;
  const int64_t width = e.width();
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(e.head_dim));
  PackRows(queries + first_query * stride, stride, rows, e, s.queries);
  std::memset(s.output, 0, kQueries * width * sizeof(float));
  for (int64_t r = 0; r < rows; ++r) {
    s.max[r] = -__builtin_inff();
    s.sum[r] = 0.0f;
  }
  const int64_t first_key = DocumentOf(documents, first_query) / kKeys * kKeys;
  for (int64_t key = first_key; key < first_query + rows; key += kKeys) {
    Multiply<kPairs>(
        {s.queries, e.depth(), 1, s.keys + key * e.depth(), kKeys, s.scores, kKeys, e.depth()},
        rows, kKeys, false);
    for (int64_t r = 0; r < rows; ++r) {
      F32 scores[kKeyVectors];
      const int64_t query = first_query + r;
      const int64_t document = DocumentOf(documents, query);
      if (document >= key + kKeys) {
        // Nothing here is of the row's document.
        std::memset(s.probabilities + r * kKeys / e.pack, 0, kKeys / e.pack * sizeof(uint32_t));
        continue;
      }
      const bool masked = key + kKeys - 1 > query || document > key;
      F32 largest = Set(-__builtin_inff());
#pragma GCC unroll 16
      for (int v = 0; v < kKeyVectors; ++v) {
        scores[v] = Load(s.scores + r * kKeys + v * kLanes) * scale;
        if (masked) scores[v] = Masked(scores[v], key + v * kLanes, query, document);
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
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = first_query + r;
    const float inverse = 1.0f / s.sum[r];
    lse[row * args.query_heads] = s.max[r] + static_cast<float>(__builtin_log(s.sum[r]));
    T* out = o + row * args.query_heads * args.head_dim;
    for (int64_t d = 0; d < e.head_dim; d += kLanes) {
      StoreUpTo(out + d, e.head_dim - d, Load(s.output + r * width + d) * inverse);
    }
  }
}

template <typename T>
void Attention(const AttentionArgs& args, int thread, int threads) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const Extents e{args.tokens, args.head_dim, kPairs ? 2 : 1};
  Scratch scratch{args.scratch + thread * AttentionScratchBytes(
                                              {args.tokens, args.head_dim, sizeof(T) == 2, false})};
  const ForwardScratch s(scratch, e);
  // Where there are fewer heads than threads, the blocks of queries of a head are dealt out in
  // turn.
  const int64_t units = args.samples * args.key_value_heads;
  const int64_t deals = (threads + units - 1) / units;
  const Part part = PartOf(units * deals, thread, threads);
  for (int64_t task = part.begin; task < part.end; ++task) {
    const int64_t sample = task / deals / args.key_value_heads;
    const int64_t key_value_head = task / deals % args.key_value_heads;
    const Heads heads = HeadsOf(args, key_value_head);
    const int64_t row = sample * args.tokens;
    const int32_t* documents = args.documents == nullptr ? nullptr : args.documents + row;
    const T* qkv = static_cast<const T*>(args.qkv) + row * heads.stride;
    PackTransposed(qkv + heads.key_at, heads.stride, args.tokens, e, s.keys);
    PackNatural(qkv + heads.value_at, heads.stride, args.tokens, e.padded_tokens(), e, s.values);
    for (int64_t head = key_value_head * heads.group; head < (key_value_head + 1) * heads.group;
         ++head) {
      T* o = static_cast<T*>(args.o) + (row * args.query_heads + head) * args.head_dim;
      float* lse = args.lse + row * args.query_heads + head;
      for (int64_t first = task % deals * kQueries; first < args.tokens;
           first += deals * kQueries) {
        AttendBlock(args, e, s, qkv + head * args.head_dim, heads.stride, first, documents, o, lse);
      }
    }
  }
}

// Words of two neighbouring rows of float32: pairs of bfloat16, the even row low.
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

// Probabilities and score gradients of one block, in the forms that the three products after it
// read.
template <bool kPairs>
TROUPE_INLINE void ScoreGradients(const BackwardScratch& s, int64_t rows, int64_t first_query,
                                  int64_t key, float scale, const float* lse, int64_t lse_stride,
                                  const int32_t* documents) {
  constexpr int64_t kStep = kPairs ? 2 : 1;
  const int64_t padded = kPairs ? RoundUp(rows, 2) : rows;
  for (int64_t r = 0; r < padded; r += kStep) {
#pragma GCC unroll 16
    for (int v = 0; v < kKeyVectors; ++v) {
      F32 p[2] = {}, ds[2] = {};
      for (int64_t i = 0; i < kStep; ++i) {
        if (r + i >= rows) continue;
        const int64_t query = first_query + r + i;
        const int64_t at = (r + i) * kKeys + v * kLanes;
        F32 score = Load(s.scores + at) * scale;
        const int64_t document = DocumentOf(documents, query);
        if (key + kKeys - 1 > query || document > key) {
          score = Masked(score, key + v * kLanes, query, document);
        }
        p[i] = Exp(score - lse[query * lse_stride]);
        ds[i] = p[i] * (Load(s.products + at) - s.delta[r + i]) * scale;
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
                   const T* queries, const T* output_gradient, const T* o, int64_t stride,
                   int64_t first_query, const float* lse, const int32_t* documents,
                   T* query_gradient) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const int64_t rows = args.tokens - first_query < kQueries ? args.tokens - first_query : kQueries;
  const int64_t width = e.width();
  const int64_t out_stride = args.query_heads * args.head_dim;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(e.head_dim));
  const T* block_queries = queries + first_query * stride;
  const T* block_gradient = output_gradient + first_query * out_stride;
  PackRows(block_queries, stride, rows, e, s.queries);
  PackRows(block_gradient, out_stride, rows, e, s.output_gradient);
  PackNatural(block_queries, stride, rows, RoundUp(rows, e.pack), e, s.query_rows);
  PackNatural(block_gradient, out_stride, rows, RoundUp(rows, e.pack), e, s.output_gradient_rows);
  for (int64_t r = 0; r < rows; ++r) {
    const T* gradient_row = block_gradient + r * out_stride;
    const T* output_row = o + (first_query + r) * out_stride;
    F32 sum = {};
    for (int64_t d = 0; d < e.head_dim; d += kLanes) {
      sum += LoadUpTo(gradient_row + d, e.head_dim - d) * LoadUpTo(output_row + d, e.head_dim - d);
    }
    s.delta[r] = ReduceAdd(sum);
  }
  const int64_t row_words = (rows + e.pack - 1) / e.pack;
  const int64_t first_key = DocumentOf(documents, first_query) / kKeys * kKeys;
  for (int64_t key = first_key; key < first_query + rows; key += kKeys) {
    Multiply<kPairs>({s.queries, e.depth(), 1, s.keys_transposed + key * e.depth(), kKeys, s.scores,
                      kKeys, e.depth()},
                     rows, kKeys, false);
    Multiply<kPairs>({s.output_gradient, e.depth(), 1, s.values_transposed + key * e.depth(), kKeys,
                      s.products, kKeys, e.depth()},
                     rows, kKeys, false);
    ScoreGradients<kPairs>(s, rows, first_query, key, scale, lse, args.query_heads, documents);
    const uint32_t* ds_rows = kPairs ? s.score_gradient_rows : s.score_gradient;
    Multiply<kPairs>({ds_rows, kKeys / e.pack, 1, s.keys + key / e.pack * width, width,
                      s.query_gradient, width, kKeys / e.pack},
                     rows, width, key > first_key);
    Multiply<kPairs>({s.score_gradient, 1, kKeys, s.query_rows, width, s.key_gradient + key * width,
                      width, row_words},
                     kKeys, width, true);
    Multiply<kPairs>({s.probabilities, 1, kKeys, s.output_gradient_rows, width,
                      s.value_gradient + key * width, width, row_words},
                     kKeys, width, true);
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* out = query_gradient + (first_query + r) * stride;
    for (int64_t d = 0; d < e.head_dim; d += kLanes) {
      StoreUpTo(out + d, e.head_dim - d, Load(s.query_gradient + r * width + d));
    }
  }
}

template <typename T>
void AttentionGrad(const AttentionGradArgs& args, int thread, int threads) {
  constexpr bool kPairs = UsesPairs<T>::value;
  const Extents e{args.tokens, args.head_dim, kPairs ? 2 : 1};
  Scratch scratch{args.scratch + thread * AttentionScratchBytes(
                                              {args.tokens, args.head_dim, sizeof(T) == 2, true})};
  const BackwardScratch s(scratch, e);
  const int64_t width = e.width();
  const Part part = PartOf(args.samples * args.key_value_heads, thread, threads);
  for (int64_t task = part.begin; task < part.end; ++task) {
    const int64_t key_value_head = task % args.key_value_heads;
    const Heads heads = HeadsOf(args, key_value_head);
    const int64_t row = task / args.key_value_heads * args.tokens;
    const int32_t* documents = args.documents == nullptr ? nullptr : args.documents + row;
    const T* qkv = static_cast<const T*>(args.qkv) + row * heads.stride;
    T* dqkv = static_cast<T*>(args.dqkv) + row * heads.stride;
    PackTransposed(qkv + heads.key_at, heads.stride, args.tokens, e, s.keys_transposed);
    PackTransposed(qkv + heads.value_at, heads.stride, args.tokens, e, s.values_transposed);
    PackNatural(qkv + heads.key_at, heads.stride, args.tokens, e.padded_tokens(), e, s.keys);
    std::memset(s.key_gradient, 0, e.padded_tokens() * width * sizeof(float));
    std::memset(s.value_gradient, 0, e.padded_tokens() * width * sizeof(float));
    for (int64_t head = key_value_head * heads.group; head < (key_value_head + 1) * heads.group;
         ++head) {
      const int64_t out_at = (row * args.query_heads + head) * args.head_dim;
      for (int64_t first = 0; first < args.tokens; first += kQueries) {
        GradientBlock(args, e, s, qkv + head * args.head_dim,
                      static_cast<const T*>(args.output_gradient) + out_at,
                      static_cast<const T*>(args.o) + out_at, heads.stride, first,
                      args.lse + row * args.query_heads + head, documents,
                      dqkv + head * args.head_dim);
      }
    }
    for (int64_t t = 0; t < args.tokens; ++t) {
      for (int64_t d = 0; d < e.head_dim; d += kLanes) {
        const int64_t count = e.head_dim - d;
        StoreUpTo(dqkv + t * heads.stride + heads.key_at + d, count,
                  Load(s.key_gradient + t * width + d));
        StoreUpTo(dqkv + t * heads.stride + heads.value_at + d, count,
                  Load(s.value_gradient + t * width + d));
      }
    }
  }
}

template void Attention<float>(const AttentionArgs&, int, int);
template void Attention<BFloat16>(const AttentionArgs&, int, int);
template void AttentionGrad<float>(const AttentionGradArgs&, int, int);
template void AttentionGrad<BFloat16>(const AttentionGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE
