// Begins the part of a file that is compiled once per level: from here to level_end.h, the last
// line of the file, the compiler may use the level's instructions. Every other header comes before.
// Otherwise the compiler could emit an inline function of it with instructions that older
// processors lack, and the linker could share it with code that runs there. For the same reason
// these files instantiate no templates of the standard library.
//
// The build sets TROUPE_LEVEL: 0 portable, 1 avx2, 2 avx512, 3 avx512_bf16.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/numerics/bfloat16.h"

// The next file of a batch of a unity build begins its own part, so there is no include guard.
#ifdef TROUPE_LEVEL_NAMESPACE
#error "the file before this one does not end with level_end.h"
#endif

#define TROUPE_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define TROUPE_BEGIN_LEVEL(features) \
  TROUPE_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TROUPE_END_LEVEL TROUPE_PRAGMA(clang attribute pop)
#else
#define TROUPE_BEGIN_LEVEL(features) \
  TROUPE_PRAGMA(GCC push_options) TROUPE_PRAGMA(GCC target(features))
#define TROUPE_END_LEVEL TROUPE_PRAGMA(GCC pop_options)
#endif

#if TROUPE_LEVEL == 3
#define TROUPE_LEVEL_NAMESPACE avx512_bf16
TROUPE_BEGIN_LEVEL("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c,bmi2")
#elif TROUPE_LEVEL == 2
#define TROUPE_LEVEL_NAMESPACE avx512
TROUPE_BEGIN_LEVEL("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,bmi2")
#elif TROUPE_LEVEL == 1
#define TROUPE_LEVEL_NAMESPACE avx2
TROUPE_BEGIN_LEVEL("avx2,fma,f16c,bmi2")
#else
#define TROUPE_LEVEL_NAMESPACE portable
TROUPE_BEGIN_LEVEL("sse2")
#endif

#include "kernels/cpu/simd.h"
