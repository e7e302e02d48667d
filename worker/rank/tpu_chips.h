// The TPU chips of a host, as its ranks use them: each rank is a process that has one chip for
// itself, as a slice of one chip. Pure.
#ifndef TROUPE_WORKER_RANK_TPU_CHIPS_H_
#define TROUPE_WORKER_RANK_TPU_CHIPS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/tpu_environment.h"
#include "plan/device/tpu_model.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct TpuChips {
  const TpuModel* model = nullptr;
  int count = 0;
};

// The chips among the host's PCI devices; none where no device is one of TpuModels(). A host has
// chips of one model.
std::optional<TpuChips> FindTpuChips(std::span<const kernels::xla::PciDevice> devices);

// Returns the first `count` devices of the host as its worker announces them, with memory and peak
// of their model. INVALID_ARGUMENT if the host has fewer chips; UNIMPLEMENTED for a model whose
// chips have two devices, because both belong to one process.
StatusOr<std::vector<v1::Device>> TpuDevices(const TpuChips& chips, const v1::DeviceKind& kind,
                                             int count);

// Returns the variables by which libtpu gives the process chip `chip` of the host, and no
// connection to other chips.
std::map<std::string, std::string> OneChipEnvironment(int chip);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TPU_CHIPS_H_
