// The environment that libtpu reads when it is loaded.
#ifndef TROUPE_KERNELS_XLA_PJRT_TPU_ENVIRONMENT_H_
#define TROUPE_KERNELS_XLA_PJRT_TPU_ENVIRONMENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::kernels::xla {

struct PciDevice {
  uint32_t vendor = 0, device = 0;
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};
inline constexpr uint32_t kPciVendorGoogle = 0x1ae0;
inline constexpr const char* kPciFolder = "/sys/bus/pci/devices";

// Returns the PCI devices that Linux lists in `folder`; none if there is no such folder. Any thread
// may call it.
std::vector<PciDevice> PciDevices(const std::string& folder);

// Returns whether libtpu must not ask Google Cloud's metadata server about its host. Elsewhere the
// server does not exist, and libtpu waits for it for minutes. Every TPU is a PCI device of Google.
// Pure.
bool SkipsMetadataQuery(std::span<const PciDevice> devices);

// Sets TPU_SKIP_MDS_QUERY for this host, and ALLOW_MULTIPLE_LIBTPU_LOAD, unless the environment has
// them. Without the latter, a second process that loads libtpu fails, even if it only compiles or
// uses other chips. Call it before libtpu is loaded, and while no other thread reads or writes the
// environment; later calls change nothing.
void SetTpuEnvironment();

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_TPU_ENVIRONMENT_H_
