// Program over PJRT.
#ifndef TROUPE_KERNELS_XLA_PJRT_PROGRAM_H_
#define TROUPE_KERNELS_XLA_PJRT_PROGRAM_H_

#include <pjrt_c_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

class PjrtProgram final : public Program {
 public:
  // Takes `executable`, which was compiled for `devices`, or loaded from bytes of such a program.
  // UNIMPLEMENTED if a result has elements that are no whole bytes. REQUIRES: `api` outlives the
  // object.
  static StatusOr<std::unique_ptr<Program>> Make(const PJRT_Api& api,
                                                 PJRT_LoadedExecutable* executable,
                                                 std::vector<PJRT_Device*> devices, bool loaded);
  ~PjrtProgram() override;
  PjrtProgram(const PjrtProgram&) = delete;
  PjrtProgram& operator=(const PjrtProgram&) = delete;

  StatusOr<std::vector<std::unique_ptr<Buffer>>> Run(std::span<const Buffer* const> arguments,
                                                     const Launch& launch) override;
  StatusOr<std::string> Serialize() const override;
  bool loaded() const override { return loaded_; }

 private:
  PjrtProgram(const PJRT_Api& api, PJRT_LoadedExecutable* executable,
              std::vector<PJRT_Device*> devices, bool loaded)
      : api_(api), executable_(executable), devices_(std::move(devices)), loaded_(loaded) {}

  const PJRT_Api& api_;
  PJRT_LoadedExecutable* const executable_;
  const std::vector<PJRT_Device*> devices_;  // by partition
  const bool loaded_;
  std::vector<int64_t> result_bytes_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PROGRAM_H_
