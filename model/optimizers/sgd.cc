// Stochastic gradient descent with momentum as torch.optim.SGD defines it (without dampening). The
// weight decay is coupled: it is added to the gradient.
#include "model/optimizers/optimizer_kind.h"

namespace troupe::model {
namespace {

std::vector<std::string> SgdStates(const OptimizerConfig& config) {
  if (config.momentum == 0) return {};
  return {"momentum_buffer"};
}

Attributes SgdAttributesOf(const OptimizerConfig& config) {
  return SgdAttributes{config.momentum, config.weight_decay, config.max_norm, config.nesterov};
}

}  // namespace

constinit const OptimizerKind kSgdOptimizer = {
    .name = "sgd", .states = SgdStates, .op = OpKind::kSgd, .attributes = SgdAttributesOf};

}  // namespace troupe::model
