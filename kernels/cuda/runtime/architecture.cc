#include "kernels/cuda/runtime/architecture.h"

namespace troupe::kernels::cuda {

bool Runs(std::string_view architecture, int major, int minor) {
  int number = 0;
  size_t digits = 0;
  while (digits < architecture.size() && architecture[digits] >= '0' &&
         architecture[digits] <= '9') {
    number = 10 * number + (architecture[digits++] - '0');
  }
  const bool alone = digits < architecture.size();  // a letter follows the digits
  const int of_major = number / 10, of_minor = number % 10;
  return major == of_major && (alone ? minor == of_minor : minor >= of_minor);
}

}  // namespace troupe::kernels::cuda
