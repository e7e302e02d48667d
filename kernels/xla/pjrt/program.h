// Program over PJRT.
#ifndef TROUPE_KERNELS_XLA_PJRT_PROGRAM_H_
#define TROUPE_KERNELS_XLA_PJRT_PROGRAM_H_

#include <pjrt_c_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

class PjrtProgram final : public Program {
 public:
  // Takes `executable`, which was compiled for `devices`. UNIMPLEMENTED if a result has elements
  // that are no whole bytes. REQUIRES: `api` outlives the object.
  static StatusOr<std::unique_ptr<Program>> Make(const PJRT_Api& api,
                                                 PJRT_LoadedExecutable* executable,
                                                 std::vector<PJRT_Device*> devices);
  ~PjrtProgram() override;
  PjrtProgram(const PjrtProgram&) = delete;
  PjrtProgram& operator=(const PjrtProgram&) = delete;

  StatusOr<std::vector<std::unique_ptr<Buffer>>> Run(std::span<const Buffer* const> arguments,
                                                     const Launch& launch) override;

 private:
  PjrtProgram(const PJRT_Api& api, PJRT_LoadedExecutable* executable,
              std::vector<PJRT_Device*> devices)
      : api_(api), executable_(executable), devices_(std::move(devices)) {}

  const PJRT_Api& api_;
  PJRT_LoadedExecutable* const executable_;
  const std::vector<PJRT_Device*> devices_;  // by partition
  std::vector<int64_t> result_bytes_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PROGRAM_H_
