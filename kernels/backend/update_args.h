// The elements that an optimizer's operation updates.
#ifndef TROUPE_KERNELS_BACKEND_UPDATE_ARGS_H_
#define TROUPE_KERNELS_BACKEND_UPDATE_ARGS_H_

#include <functional>
#include <vector>

#include "kernels/backend/arguments.h"
#include "model/program/program.h"

namespace troupe::kernels {

// The parameters of an optimizer's operation, cut into runs of rows that decay or do not. `address`
// returns where a value lies. Pure.
std::vector<UpdateArgs> UpdateArgsOf(const model::Program& program, const model::Op& op,
                                     const std::function<char*(model::ValueId)>& address);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_UPDATE_ARGS_H_
