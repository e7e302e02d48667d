// Counts the collectives of a program that XLA has optimized. Pure.
#ifndef TROUPE_KERNELS_XLA_PJRT_HLO_COLLECTIVES_H_
#define TROUPE_KERNELS_XLA_PJRT_HLO_COLLECTIVES_H_

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "xla/hlo.pb.h"

namespace troupe::kernels::xla {

// Parses the bytes of an HloModuleProto, whose other fields are ignored. INVALID_ARGUMENT if the
// bytes are no such message.
StatusOr<xla_messages::HloModule> ParseHloModule(std::string_view bytes);

// Returns the module in the bytes of an HloModuleProtoWithConfig. INVALID_ARGUMENT likewise, and if
// they have no module.
StatusOr<xla_messages::HloModule> ParseHloModuleWithConfig(std::string_view bytes);

// Returns the number of instructions of each kind of collective ("all-reduce") in all computations;
// an asynchronous one counts where it starts. An instruction of a loop counts once.
std::map<std::string, int> CountCollectives(const xla_messages::HloModule& module);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_HLO_COLLECTIVES_H_
