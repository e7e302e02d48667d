#include "model/optimizers/optimizer_kind.h"

namespace troupe::model {

std::span<const OptimizerKind* const> OptimizerKinds() {
  static constexpr const OptimizerKind* kKinds[] = {
#define TROUPE_OPTIMIZER_KIND(kind) &kind,
#include "model/optimizers/optimizer_kinds.def"
  };
  return kKinds;
}

const OptimizerKind* FindOptimizer(std::string_view name) {
  for (const OptimizerKind* const kind : OptimizerKinds()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

}  // namespace troupe::model
