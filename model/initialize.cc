#include "model/initialize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/cpu_clones.h"
#include "base/random.h"

namespace troupe::model {
namespace {

// Normals computed at once: four from each of kLanes counters.
constexpr int kLanes = 32;
constexpr int kBlock = 4 * kLanes;

// sin(2πt) for |t| <= 1/4; the error is below 1e-7.
inline float SinTurns(float t) {
  const float x = t * 6.283185307179586f, y = x * x;
  float p = -2.5052108e-8f;
  p = p * y + 2.7557319e-6f;
  p = p * y - 1.9841270e-4f;
  p = p * y + 8.3333333e-3f;
  p = p * y - 1.6666667e-1f;
  return x + x * (y * p);
}

// -2·ln(u) for u in (0, 1].
inline float MinusTwoLog(float u) {
  const uint32_t bits = std::bit_cast<uint32_t>(u);
  // Normalises the mantissa to [sqrt(1/2), sqrt(2)).
  const uint32_t shifted = bits - 0x3F3504F3u;
  const float exponent = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u);
  const float s = (m - 1.0f) / (m + 1.0f), y = s * s;
  float p = 1.0f / 9;
  p = p * y + 1.0f / 7;
  p = p * y + 1.0f / 5;
  p = p * y + 1.0f / 3;
  p = p * y + 1.0f;
  return -2.0f * (exponent * 0.6931471805599453f + 2.0f * s * p);
}

// Box-Muller: two normals from two random words.
inline void NormalPair(uint32_t a, uint32_t b, float std, float* first, float* second) {
  const float u = std::max((static_cast<float>(a >> 8) + 0.5f) * 0x1.0p-24f, 0x1.0p-25f);
  const float radius = std * std::sqrt(std::max(MinusTwoLog(u), 0.0f));
  const float t = static_cast<float>(static_cast<int32_t>(b)) * 0x1.0p-32f;  // turns in [-1/2, 1/2]
  const float magnitude = std::fabs(t);
  const float folded = std::min(magnitude, 0.5f - magnitude);
  *first = radius * SinTurns(0.25f - magnitude);          // cosine
  *second = radius * SinTurns(std::copysign(folded, t));  // sine
}

// Normals 4c … 4c + kBlock - 1 for `key`: Philox4x32-10 (base/random.h) on kLanes consecutive
// counters.
TROUPE_CPU_CLONES void NormalBlock(uint64_t key, uint64_t counter, float std, float* out) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    c0[i] = static_cast<uint32_t>(counter + i);
    c1[i] = static_cast<uint32_t>((counter + i) >> 32);
    c2[i] = 2;  // differs from the counters of base/random.h
    c3[i] = 0;
  }
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t product0 = uint64_t{0xD2511F53} * c0[i];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * c2[i];
      const uint32_t n0 = static_cast<uint32_t>(product1 >> 32) ^ c1[i] ^ key0;
      const uint32_t n2 = static_cast<uint32_t>(product0 >> 32) ^ c3[i] ^ key1;
      c1[i] = static_cast<uint32_t>(product1);
      c3[i] = static_cast<uint32_t>(product0);
      c0[i] = n0;
      c2[i] = n2;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  float z[4][kLanes];
  for (int i = 0; i < kLanes; ++i) {
    NormalPair(c0[i], c1[i], std, &z[0][i], &z[1][i]);
    NormalPair(c2[i], c3[i], std, &z[2][i], &z[3][i]);
  }
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < 4; ++j) out[4 * i + j] = z[j][i];
  }
}

}  // namespace

void FillNormal(uint64_t seed, std::string_view name, int64_t first_index, double std,
                std::span<float> out) {
  const uint64_t key = RandomKey(seed, "init/" + std::string(name));
  float block[kBlock];
  size_t done = 0;
  while (done < out.size()) {
    const int64_t index = first_index + static_cast<int64_t>(done);
    const int64_t within = index % kBlock;
    const uint64_t counter = static_cast<uint64_t>(index - within) / 4;
    if (within == 0 && out.size() - done >= kBlock) {
      NormalBlock(key, counter, static_cast<float>(std), out.data() + done);
      done += kBlock;
      continue;
    }
    NormalBlock(key, counter, static_cast<float>(std), block);
    const size_t count = std::min<size_t>(static_cast<size_t>(kBlock - within), out.size() - done);
    std::copy_n(block + within, count, out.data() + done);
    done += count;
  }
}

void FillInitial(uint64_t seed, const InitialValue& initial, const ParameterPart& part,
                 int64_t first_element, std::span<float> out) {
  if (initial.kind != InitialValue::Kind::kNormal) {
    std::fill(out.begin(), out.end(), initial.kind == InitialValue::Kind::kOnes ? 1.0f : 0.0f);
    return;
  }
  const size_t dims = part.local_shape.size();
  TROUPE_CHECK(dims == 1 || dims == 2, "{} has {} dims", part.name, dims);
  const int64_t columns = part.local_shape[dims - 1], global_columns = part.global_shape[dims - 1];
  const int64_t row_offset = dims == 2 ? part.global_offset[0] : 0;
  const int64_t column_offset = part.global_offset[dims - 1];
  // Processes runs of elements that are consecutive in the global tensor: one row, or all of them
  // if the rows are whole.
  const bool whole_rows = columns == global_columns;
  int64_t local = first_element;
  size_t done = 0;
  while (done < out.size()) {
    const int64_t row = local / columns, column = local % columns;
    const size_t run =
        whole_rows ? out.size() - done
                   : std::min<size_t>(static_cast<size_t>(columns - column), out.size() - done);
    FillNormal(seed, part.name, (row_offset + row) * global_columns + column_offset + column,
               initial.std, out.subspan(done, run));
    done += run;
    local += static_cast<int64_t>(run);
  }
}

void FillInitial(uint64_t seed, const Program& program, const State& state, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const int64_t row_elements = program.value(state.value).row_elements();
  for (const ParameterPart& part : PartsOf(program, state)) {
    int64_t elements = 1;
    for (const int64_t extent : part.local_shape) elements *= extent;
    FillInitial(seed, state.initial, part, 0,
                out.subspan(static_cast<size_t>(part.row_begin * row_elements),
                            static_cast<size_t>(elements)));
  }
}

}  // namespace troupe::model
