#include "model/ops/kinds.h"

namespace troupe::model {

const OpRules& RulesOf(OpKind kind) {
  static const OpRules kRules[] = {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) Kind##Rules(),
#include "model/program/op_kinds.def"
  };
  return kRules[static_cast<int>(kind)];
}

}  // namespace troupe::model
