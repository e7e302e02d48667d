// The numbers of the optimizers' operations (model/program/op_kinds.def). Host code and kernels
// share them.
#ifndef TROUPE_MODEL_PROGRAM_OPTIMIZER_ATTRIBUTES_H_
#define TROUPE_MODEL_PROGRAM_OPTIMIZER_ATTRIBUTES_H_

namespace troupe::model {

struct AdamWAttributes {
  double beta1, beta2, eps, weight_decay;
  double max_norm;  // 0: gradients are not clipped
};
struct SgdAttributes {
  double momentum, weight_decay;
  double max_norm;  // as above
  bool nesterov;
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_OPTIMIZER_ATTRIBUTES_H_
