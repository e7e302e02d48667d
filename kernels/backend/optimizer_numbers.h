// The numbers that all elements of an optimizer's step share. Host code and kernels compute them
// with the same functions. Pure.
#ifndef TROUPE_KERNELS_BACKEND_OPTIMIZER_NUMBERS_H_
#define TROUPE_KERNELS_BACKEND_OPTIMIZER_NUMBERS_H_

#include <cmath>

#include "kernels/backend/arguments.h"
#include "kernels/numerics/anywhere.h"
#include "model/program/optimizer_attributes.h"

namespace troupe::kernels {

// `scale` multiplies the gradient (UpdateDecision); `rate` is the learning rate; `step` is the
// number of applied steps, with this one.
TROUPE_ANYWHERE inline AdamWArgs NumbersOf(const model::AdamWAttributes& of, double scale,
                                           double rate, double step) {
  return {static_cast<float>(scale),
          static_cast<float>(of.beta1),
          static_cast<float>(of.beta2),
          static_cast<float>(of.eps),
          static_cast<float>(1.0 - rate * of.weight_decay),
          static_cast<float>(rate / (1.0 - std::pow(of.beta1, step))),
          static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(of.beta2, step)))};
}

TROUPE_ANYWHERE inline SgdArgs NumbersOf(const model::SgdAttributes& of, double scale, double rate,
                                         double /*step*/) {
  return {static_cast<float>(scale), static_cast<float>(rate), static_cast<float>(of.momentum),
          static_cast<float>(of.weight_decay), of.nesterov};
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_OPTIMIZER_NUMBERS_H_
