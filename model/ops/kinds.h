// The rules of each kind of model/program/op_kinds.def; each is defined in the file with its name.
#ifndef TROUPE_MODEL_OPS_KINDS_H_
#define TROUPE_MODEL_OPS_KINDS_H_

#include "model/program/op_rules.h"

namespace troupe::model {

#define TROUPE_OP(Kind, name, attributes, cpu, cuda) OpRules Kind##Rules();
#include "model/program/op_kinds.def"

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPS_KINDS_H_
