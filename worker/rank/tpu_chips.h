// The TPU chips of a host: how its worker announces them, and the variables by which libtpu gives a
// rank's process its chip. Pure.
#ifndef TROUPE_WORKER_RANK_TPU_CHIPS_H_
#define TROUPE_WORKER_RANK_TPU_CHIPS_H_

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/tpu_environment.h"
#include "plan/device/tpu_model.h"
#include "plan/device/tpu_slice.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct TpuChips {
  const TpuModel* model = nullptr;
  int count = 0;
};

// The chips among the host's PCI devices; none where no device is one of TpuModels(). A host has
// chips of one model.
std::optional<TpuChips> FindTpuChips(std::span<const kernels::xla::PciDevice> devices);

// A host among those of its slice.
struct TpuHost {
  std::string slice;     // the same on all hosts of the slice
  std::string address;   // at which other hosts reach this one
  TpuBounds chips{};     // each host of the slice has them
  TpuBounds position{};  // counted in hosts
};

// Returns the variable of this name in the environment of a process; absent: it is not set.
using FindVariable = std::function<std::optional<std::string>(const char* name)>;

// Reads the host's place from the variables that Google's machines have: TPU_WORKER_HOSTNAMES,
// TPU_WORKER_ID, TPU_HOST_BOUNDS, TPU_CHIPS_PER_HOST_BOUNDS. Where the first is absent or has one
// name, the host `host_name` is a slice of its own. FAILED_PRECONDITION, with variable, value and
// relation, if they contradict each other or the number of chips.
StatusOr<TpuHost> FindTpuHost(const TpuChips& chips, const std::string& host_name,
                              const FindVariable& find);

// Returns the first `count` devices of the host as its worker announces them, with memory and peak
// of their model. INVALID_ARGUMENT if the host has fewer chips; UNIMPLEMENTED for a model whose
// chips have two devices, because both belong to one process.
StatusOr<std::vector<v1::Device>> TpuDevices(const TpuChips& chips, const TpuHost& host,
                                             const v1::DeviceKind& kind, int count);

// A rank's process among those of its stage's slice.
struct ChipProcess {
  int chip = 0;                        // index on the host
  v1::SliceProcess process;            // the rank's
  std::vector<std::string> addresses;  // all processes of the slice have one, by task
};

// Reads the process of `rank` from its plan; absent if its device is no chip. REQUIRES: the plan is
// PlacePlan's.
std::optional<ChipProcess> ChipProcessOf(const v1::Plan& plan, int rank);

// Returns the variables that libtpu reads when it is loaded; one without a value is to be removed,
// because it describes the slice of the host and not that of the process.
std::map<std::string, std::optional<std::string>> ChipEnvironment(const ChipProcess& of);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TPU_CHIPS_H_
