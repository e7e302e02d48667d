#include "kernels/xla/pjrt/device_facts.h"

#include <span>
#include <string>
#include <string_view>

#include "kernels/xla/pjrt/call.h"

namespace troupe::kernels::xla {
namespace {

// Attributes of libtpu's devices.
constexpr std::string_view kMemoryLimit = "device_memory_bytes_limit", kCoordinates = "coords";

}  // namespace

StatusOr<DeviceFacts> ReadDeviceFacts(const PJRT_Api& api, PJRT_DeviceDescription* description) {
  TROUPE_PJRT_ARGUMENTS(PJRT_DeviceDescription_Kind_Args, kind);
  kind.device_description = description;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_DeviceDescription_Kind(&kind)));
  TROUPE_PJRT_ARGUMENTS(PJRT_DeviceDescription_Id_Args, id);
  id.device_description = description;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_DeviceDescription_Id(&id)));
  DeviceFacts facts;
  facts.kind.assign(kind.device_kind, kind.device_kind_size);
  facts.id = id.id;
  TROUPE_PJRT_ARGUMENTS(PJRT_DeviceDescription_Attributes_Args, get);
  get.device_description = description;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_DeviceDescription_Attributes(&get)));
  for (const PJRT_NamedValue& attribute : std::span(get.attributes, get.num_attributes)) {
    const std::string_view name(attribute.name, attribute.name_size);
    if (name == kMemoryLimit && attribute.type == PJRT_NamedValue_kInt64)
      facts.memory_bytes = attribute.int64_value;
    if (name == kCoordinates && attribute.type == PJRT_NamedValue_kInt64List) {
      facts.coordinates.assign(attribute.int64_array_value,
                               attribute.int64_array_value + attribute.value_size);
    }
  }
  return facts;
}

}  // namespace troupe::kernels::xla
