// logits = x wᵀ and its gradients: same as matmul, with the router's own kinds.
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

void RouterLogits(const Operation& operation) { Matmul(operation); }
void RouterLogitsGradInput(const Operation& operation) { MatmulGradInput(operation); }
void RouterLogitsGradWeight(const Operation& operation) { MatmulGradWeight(operation); }

}  // namespace troupe::kernels::reference
