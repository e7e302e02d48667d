// The instruction sets that our kernels are compiled for, lowest first. One binary contains all
// levels and selects one at run time.
#ifndef TROUPE_KERNELS_CPU_LEVEL_H_
#define TROUPE_KERNELS_CPU_LEVEL_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace troupe::kernels::cpu {

enum class Level : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Bf16 };
inline constexpr int kLevels = 4;

const char* Name(Level level);  // "portable" "avx2" "avx512" "avx512_bf16"

// Errors: INVALID_ARGUMENT, with the known names.
StatusOr<Level> ParseLevel(std::string_view name);

// The highest level that this processor and its operating system support.
Level HighestLevel();

// HighestLevel(), or the level named by TROUPE_KERNEL_LEVEL in the environment. Errors:
// INVALID_ARGUMENT if that level is unknown or above the processor's.
StatusOr<Level> LevelFromEnvironment();

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_LEVEL_H_
