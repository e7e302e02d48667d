#include "collective/device_communicator.h"

namespace troupe {

size_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 4;
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kFloat64:
      return 8;
  }
  return 0;
}

}  // namespace troupe
