#include "kernels/xla/pjrt/tpu_environment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/text_file.h"

namespace troupe::kernels::xla {
namespace {

constexpr uint32_t kGoogle = 0x1ae0;

}  // namespace

std::vector<uint32_t> PciVendors(const std::string& folder) {
  std::vector<uint32_t> vendors;
  std::error_code error;
  for (std::filesystem::directory_iterator device(folder, error), end; !error && device != end;
       device.increment(error)) {
    const StatusOr<std::string> vendor = ReadTextFile(device->path() / "vendor");  // "0x1ae0\n"
    if (vendor.ok()) vendors.push_back(std::strtoul(vendor->c_str(), nullptr, 16));
  }
  return vendors;
}

bool SkipsMetadataQuery(std::span<const uint32_t> pci_vendors) {
  return std::ranges::find(pci_vendors, kGoogle) == pci_vendors.end();
}

void SetTpuEnvironment() {
  if (SkipsMetadataQuery(PciVendors("/sys/bus/pci/devices"))) {
    setenv("TPU_SKIP_MDS_QUERY", "1", /*overwrite=*/0);
  }
}

}  // namespace troupe::kernels::xla
