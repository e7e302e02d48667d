// Counts the collectives of a program that XLA has optimized. Pure.
#ifndef TROUPE_KERNELS_XLA_PJRT_HLO_COLLECTIVES_H_
#define TROUPE_KERNELS_XLA_PJRT_HLO_COLLECTIVES_H_

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe::kernels::xla {

// Returns the number of instructions of each kind of collective ("all-reduce") in all computations
// of an HloModuleProto (xla/service/hlo.proto); an asynchronous one counts where it starts. An
// instruction of a loop counts once. INVALID_ARGUMENT if the bytes are no protocol buffer.
StatusOr<std::map<std::string, int>> CountCollectives(std::string_view hlo_module);

// Returns the HloModuleProto in an HloModuleProtoWithConfig. INVALID_ARGUMENT likewise.
StatusOr<std::string_view> ModuleOf(std::string_view module_with_config);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_HLO_COLLECTIVES_H_
