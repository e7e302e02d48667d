#include "kernels/backend/reduce_control_word.h"

#include <algorithm>

#include "model/program/control_word.h"

namespace troupe::kernels {
namespace {

// One element of the reduction is a whole control word, so that no algorithm splits a word.
void CombineControlWords(const void*, void* accumulator, const void* other, size_t count) {
  double* a = static_cast<double*>(accumulator);
  const double* b = static_cast<const double*>(other);
  for (size_t i = 0; i < count; ++i, a += model::kControlLanes, b += model::kControlLanes) {
    for (int lane = 0; lane < model::kControlLanes; ++lane) {
      if (lane <= model::kLastSum) {
        a[lane] += b[lane];
      } else if (lane <= model::kLastMax) {
        a[lane] = std::max(a[lane], b[lane]);
      } else {
        a[lane] = std::min(a[lane], b[lane]);
      }
    }
  }
}

}  // namespace

Status ReduceControlWord(Communicator* communicator, double* control) {
  if (communicator == nullptr) return OkStatus();
  const Reduction reduction{&CombineControlWords, nullptr, model::kControlLanes * sizeof(double),
                            "control_word"};
  return communicator->AllReduce(control, 1, reduction, Purpose::kControl);
}

}  // namespace troupe::kernels
