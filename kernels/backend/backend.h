// The interface between stage programs and devices: a backend prepares a program for its device
// (kernels/backend/executable.h).
#ifndef TROUPE_KERNELS_BACKEND_BACKEND_H_
#define TROUPE_KERNELS_BACKEND_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_statistics.h"
#include "kernels/backend/compilation.h"
#include "kernels/backend/executable.h"
#include "kernels/backend/executed_matmuls.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// Returns the communicator of a collective op's group, or null if the group has one rank.
using FindCommunicator = std::function<Communicator*(const model::CollectiveGroup&)>;

// Work that preparation has done; a count is absent where the device has no such work.
struct PreparationCounts {
  std::optional<int64_t> tuning_cache_hits;  // implementations chosen from a tuning cache
  std::optional<int64_t> graph_captures;     // captured graphs of parts of a step
};

class Backend {
 public:
  virtual ~Backend() = default;
  // "avx512_bf16", "reference" …; recorded in a frozen plan.
  virtual std::string kernel_level() const = 0;
  // REQUIRES: `program` and `plan` outlive the executable. Errors: RESOURCE_EXHAUSTED, with the
  // number of bytes that could not be allocated.
  virtual StatusOr<std::unique_ptr<Executable>> Prepare(
      const model::Program& program, const model::MemoryPlan& plan,
      const FindCommunicator& find_communicator) = 0;
  // Operations that run on a slower implementation than the best one: "OPERATION WHERE: WHY". The
  // list may grow during an executable's first steps.
  virtual const std::vector<std::string>& fallbacks() const = 0;
  // Cost so far of the collectives that run on the device, over all executables; excludes those of
  // the host network.
  virtual std::vector<DeviceCollectiveStatistics> CollectiveStatistics() const { return {}; }
  // The device's own collectives in flight, and its part of the rank's flight record as JSON text;
  // empty if collectives run on the host. May be called from any thread.
  virtual std::vector<CollectiveFlight> Flights() const { return {}; }
  virtual std::string FlightRecorderJson() const { return ""; }
  // Whether the process can make another backend on this device after this one is destroyed; false
  // if it holds a device resource that cannot be released. Call it after its executables are
  // destroyed.
  virtual bool releases_device() const { return true; }
  // The implementation chosen for each operation that has several: "OPERATION: IMPLEMENTATION",
  // without duplicates.
  virtual const std::vector<std::string>& implementations() const = 0;
  // The operand types with which the matmuls of the most recently prepared program are computed.
  virtual std::vector<ExecutedMatmul> executed_matmuls() const = 0;
  virtual PreparationCounts preparation_counts() const = 0;
  // The work so far of the device's compiler; none on a device whose kernels were compiled
  // beforehand. A program that is made after Prepare stalls a step.
  virtual std::optional<Compilation> compilation() const { return std::nullopt; }
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_BACKEND_H_
