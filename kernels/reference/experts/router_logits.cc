// logits = x wᵀ and its gradients: same as matmul, with the router's own kinds.
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status RouterLogits(const Operation& operation) { return Matmul(operation); }
Status RouterLogitsGradInput(const Operation& operation) { return MatmulGradInput(operation); }
Status RouterLogitsGradWeight(const Operation& operation) { return MatmulGradWeight(operation); }

}  // namespace troupe::kernels::reference
