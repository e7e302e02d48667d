#include "kernels/xla/pjrt/tpu_environment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/text_file.h"

namespace troupe::kernels::xla {
namespace {

// Reads a number such as "0x1ae0\n"; 0 if there is none.
uint32_t ReadId(const std::filesystem::path& file) {
  const StatusOr<std::string> text = ReadTextFile(file);
  return text.ok() ? std::strtoul(text->c_str(), nullptr, 16) : 0;
}

}  // namespace

std::vector<PciDevice> PciDevices(const std::string& folder) {
  std::vector<PciDevice> devices;
  std::error_code error;
  for (std::filesystem::directory_iterator device(folder, error), end; !error && device != end;
       device.increment(error)) {
    const uint32_t vendor = ReadId(device->path() / "vendor");
    if (vendor != 0) devices.push_back({vendor, ReadId(device->path() / "device")});
  }
  return devices;
}

bool SkipsMetadataQuery(std::span<const PciDevice> devices) {
  return std::ranges::find(devices, kPciVendorGoogle, &PciDevice::vendor) == devices.end();
}

void SetTpuEnvironment() {
  if (SkipsMetadataQuery(PciDevices(kPciFolder))) {
    setenv("TPU_SKIP_MDS_QUERY", "1", /*overwrite=*/0);
  }
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", /*overwrite=*/0);
}

}  // namespace troupe::kernels::xla
