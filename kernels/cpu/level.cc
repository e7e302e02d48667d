#include "kernels/cpu/level.h"

#include <cstdlib>

namespace troupe::kernels::cpu {

const char* Name(Level level) {
  switch (level) {
    case Level::kPortable:
      return "portable";
    case Level::kAvx2:
      return "avx2";
    case Level::kAvx512:
      return "avx512";
    case Level::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

StatusOr<Level> ParseLevel(std::string_view name) {
  for (int i = 0; i < kLevels; ++i) {
    if (name == Name(static_cast<Level>(i))) return static_cast<Level>(i);
  }
  return InvalidArgument("kernel level \"{}\" is not one of portable, avx2, avx512, avx512_bf16",
                         name);
}

Level HighestLevel() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Level::kPortable;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    return Level::kAvx2;
  }
  return __builtin_cpu_supports("avx512bf16") ? Level::kAvx512Bf16 : Level::kAvx512;
}

StatusOr<Level> LevelFromEnvironment() {
  const char* name = std::getenv("TROUPE_KERNEL_LEVEL");
  if (name == nullptr || *name == '\0') return HighestLevel();
  TROUPE_ASSIGN_OR_RETURN(const Level level, ParseLevel(name));
  if (level > HighestLevel()) {
    return InvalidArgument("TROUPE_KERNEL_LEVEL={} is above this processor's level {}", name,
                           Name(HighestLevel()));
  }
  return level;
}

}  // namespace troupe::kernels::cpu
