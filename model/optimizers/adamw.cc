// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
#include "model/optimizers/optimizer_kind.h"

namespace troupe::model {
namespace {

std::vector<std::string> AdamWStates(const OptimizerConfig&) { return {"exp_avg", "exp_avg_sq"}; }

Attributes AdamWAttributesOf(const OptimizerConfig& config) {
  return AdamWAttributes{config.beta1, config.beta2, config.eps, config.weight_decay,
                         config.max_norm};
}

}  // namespace

constinit const OptimizerKind kAdamWOptimizer = {
    .name = "adamw", .states = AdamWStates, .op = OpKind::kAdamW, .attributes = AdamWAttributesOf};

}  // namespace troupe::model
