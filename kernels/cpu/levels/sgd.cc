// Stochastic gradient descent as torch.optim.SGD. Memory-bound; every element is read once.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

void Sgd(const SgdArgs& args, const UpdateArgs& of, int thread, int threads) {
  const Part part = PartOf(of.count, thread, threads, 64);
  float* const buffer = args.momentum != 0 ? of.states[0] : nullptr;
  BFloat16* copy = static_cast<BFloat16*>(of.copy);
  const float decay = of.decays ? args.decay : 0.0f;
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    F32 parameter = LoadUpTo(of.parameter + i, count);
    F32 step = LoadUpTo(of.gradient + i, count) * args.gradient_scale + parameter * decay;
    if (buffer != nullptr) {
      const F32 sum = LoadUpTo(buffer + i, count) * args.momentum + step;
      StoreUpTo(buffer + i, count, sum);
      step = args.nesterov ? step + sum * args.momentum : sum;
    }
    parameter = parameter - step * args.rate;
    StoreUpTo(of.parameter + i, count, parameter);
    if (copy != nullptr) StoreUpTo(copy + i, count, parameter);
  }
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
