// The LAST include of every file that is compiled once per level: after it the compiler may use the
// level's instructions. All other headers must come first. Otherwise the compiler could emit an
// inline function of theirs with instructions that older processors lack, and the linker could
// share it with code that runs there. For the same reason these files instantiate no templates of
// the standard library.
//
// The build sets TROUPE_LEVEL: 0 portable, 1 avx2, 2 avx512, 3 avx512_bf16.
#ifndef TROUPE_KERNELS_CPU_LEVEL_TARGET_H_
#define TROUPE_KERNELS_CPU_LEVEL_TARGET_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/numerics/bfloat16.h"

#if TROUPE_LEVEL == 3
#define TROUPE_LEVEL_NAMESPACE avx512_bf16
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c,bmi2")
#elif TROUPE_LEVEL == 2
#define TROUPE_LEVEL_NAMESPACE avx512
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,bmi2")
#elif TROUPE_LEVEL == 1
#define TROUPE_LEVEL_NAMESPACE avx2
#pragma GCC target("avx2,fma,f16c,bmi2")
#else
#define TROUPE_LEVEL_NAMESPACE portable
#endif

#include "kernels/cpu/simd.h"

#endif  // TROUPE_KERNELS_CPU_LEVEL_TARGET_H_
