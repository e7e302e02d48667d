// An optimizer as data: what it keeps of each parameter, and the operation of Update that changes
// both. A new optimizer is a file with its record and a row in optimizer_kinds.def, the rules and
// the kernels of its operation.
//
// Pure; thread-safe.
#ifndef TROUPE_MODEL_OPTIMIZERS_OPTIMIZER_KIND_H_
#define TROUPE_MODEL_OPTIMIZERS_OPTIMIZER_KIND_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/op.h"

namespace troupe::model {

struct OptimizerKind;
#define TROUPE_OPTIMIZER_KIND(kind) extern const OptimizerKind kind;
#include "model/optimizers/optimizer_kinds.def"

// The numbers of every optimizer; each reads those of its attributes.
struct OptimizerConfig {
  const OptimizerKind* kind = &kAdamWOptimizer;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0.1;
  double max_norm = 1.0;  // 0: gradients are not clipped
};

struct OptimizerKind {
  std::string_view name;  // the word of optimizer.name
  // The names of what it keeps of each parameter: float32 values of the master's shape and
  // placement, 0 before the first step. Checkpoints call them "exp_avg.model.norm.weight".
  std::vector<std::string> (*states)(const OptimizerConfig& config);
  // The operation of Update; its operands are UpdatedParameter (model/program/op_rules.h).
  OpKind op;
  Attributes (*attributes)(const OptimizerConfig& config);
};

std::span<const OptimizerKind* const> OptimizerKinds();
// Null for a name that no optimizer has.
const OptimizerKind* FindOptimizer(std::string_view name);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPTIMIZERS_OPTIMIZER_KIND_H_
