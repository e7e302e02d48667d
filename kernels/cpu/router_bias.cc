#include "kernels/update_decision.h"
#include "kernels/cpu/update.h"

namespace troupe::kernels::cpu {
namespace {

class RouterBias : public Instruction {
 public:
  RouterBias(const double* control, const double* routed, int64_t experts, double rate, float* bias)
      : control_(control), routed_(routed), experts_(experts), rate_(rate), bias_(bias) {}

  Status Run(const RunOptions&) override {
    if (!DecideUpdate(control_, 0).apply) return OkStatus();
    double sum = 0;
    for (int64_t e = 0; e < experts_; ++e) sum += routed_[e];
    const auto experts = static_cast<double>(experts_);
    const auto rate = static_cast<float>(rate_);
    for (int64_t e = 0; e < experts_; ++e) {
      // Whole numbers: equal to the mean where it is.
      const double all = routed_[e] * experts;
      if (sum > all) bias_[e] += rate;
      if (sum < all) bias_[e] -= rate;
    }
    return OkStatus();
  }

 private:
  const double* const control_;
  const double* const routed_;
  const int64_t experts_;
  const double rate_;
  float* const bias_;
};

}  // namespace

std::unique_ptr<Instruction> MakeRouterBias(const double* control, const double* routed,
                                            int64_t experts, double rate, float* bias) {
  return std::make_unique<RouterBias>(control, routed, experts, rate, bias);
}

}  // namespace troupe::kernels::cpu
