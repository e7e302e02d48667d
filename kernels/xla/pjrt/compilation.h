// Arguments and errors of compilations, through a client and through a topology.
#ifndef TROUPE_KERNELS_XLA_PJRT_COMPILATION_H_
#define TROUPE_KERNELS_XLA_PJRT_COMPILATION_H_

#include <pjrt_c_api.h>

#include <string_view>

#include "base/status.h"
#include "kernels/xla/pjrt/call.h"

namespace troupe::kernels::xla {

// Returns StableHLO text as the argument of a compilation. REQUIRES: `text` outlives the call.
inline PJRT_Program MlirProgram(std::string_view text) {
  constexpr std::string_view kFormat = "mlir";
  TROUPE_PJRT_ARGUMENTS(PJRT_Program, program);
  program.code = const_cast<char*>(text.data());  // the plugin writes to other calls' only
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  return program;
}

// Returns the status of a compilation. The plugin has many codes for a text or an option that it
// does not accept, which become INVALID_ARGUMENT.
inline Status CompileStatus(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInternal:
    case StatusCode::kNotFound:
    case StatusCode::kUnimplemented:
      return InvalidArgument("{}", Message(status));
    default:
      return status;
  }
}

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_COMPILATION_H_
