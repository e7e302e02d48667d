// The environment that libtpu reads when it is loaded.
#ifndef TROUPE_KERNELS_XLA_PJRT_TPU_ENVIRONMENT_H_
#define TROUPE_KERNELS_XLA_PJRT_TPU_ENVIRONMENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::kernels::xla {

// Returns the vendor ids of the PCI devices that Linux lists in `folder`; none if there is no such
// folder.
std::vector<uint32_t> PciVendors(const std::string& folder);

// Returns whether libtpu must not ask Google Cloud's metadata server about its host. Elsewhere the
// server does not exist, and libtpu waits for it for minutes. Every TPU is a PCI device of Google.
bool SkipsMetadataQuery(std::span<const uint32_t> pci_vendors);

// Sets TPU_SKIP_MDS_QUERY for this host, unless the environment has it. Call it before libtpu is
// loaded.
void SetTpuEnvironment();

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_TPU_ENVIRONMENT_H_
