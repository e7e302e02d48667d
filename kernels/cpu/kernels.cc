#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

const KernelTable& KernelsOf(Level level) {
  switch (level) {
    case Level::kAvx512Bf16:
      return avx512_bf16::Kernels();
    case Level::kAvx512:
      return avx512::Kernels();
    case Level::kAvx2:
      return avx2::Kernels();
    case Level::kPortable:
      break;
  }
  return portable::Kernels();
}

}  // namespace troupe::kernels::cpu
