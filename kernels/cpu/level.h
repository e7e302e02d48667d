// The instruction sets that our kernels are compiled for, lowest first. One binary carries all; the
// processor decides.
#ifndef TROUPE_KERNELS_CPU_LEVEL_H_
#define TROUPE_KERNELS_CPU_LEVEL_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace troupe::kernels::cpu {

enum class Level : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Bf16 };
inline constexpr int kLevels = 4;

const char* Name(Level level);  // "portable" "avx2" "avx512" "avx512_bf16"

// INVALID_ARGUMENT lists the known names.
StatusOr<Level> ParseLevel(std::string_view name);

// The highest level that this processor and its operating system run.
Level HighestLevel();

// HighestLevel(), or what TROUPE_KERNEL_LEVEL in the environment says. INVALID_ARGUMENT where that
// is unknown or above the processor's.
StatusOr<Level> LevelFromEnvironment();

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_LEVEL_H_
