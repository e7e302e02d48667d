#include "plan/device/device_profile.h"

#include <cmath>
#include <string>

#include "plan/device/tpu_model.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

void Positive(const std::string& key, bool stated, double value, Violations& violations) {
  if (!stated) {
    violations.Add(key, "is absent");
  } else if (!(value > 0)) {
    violations.AddOutOfRange(key, value, "(0, ∞)");
  }
}

void NotNegative(const std::string& key, bool stated, double value, Violations& violations) {
  if (!stated) {
    violations.Add(key, "is absent");
  } else if (!(value >= 0)) {
    violations.AddOutOfRange(key, value, "[0, ∞)");
  }
}

void CheckLink(const std::string& key, const v1::LinkProfile& link, Violations& violations) {
  Positive(key + ".bytes_per_second", link.has_bytes_per_second(), link.bytes_per_second(),
           violations);
  NotNegative(key + ".latency_seconds", link.has_latency_seconds(), link.latency_seconds(),
              violations);
}

// Replaces the earlier name of matmul_efficiency, which files of earlier versions have.
std::string WithCurrentKeys(std::string_view text) {
  constexpr std::string_view kEarlier = "\nproduct_efficiency:", kNow = "\nmatmul_efficiency:";
  std::string lines = "\n" + std::string(text);
  if (const size_t at = lines.find(kEarlier); at != std::string::npos)
    lines.replace(at, kEarlier.size(), kNow);
  return lines.substr(1);
}

}  // namespace

Status CheckDeviceProfile(const v1::DeviceProfile& profile) {
  Violations violations;
  Positive("memory_bytes", profile.has_memory_bytes(), static_cast<double>(profile.memory_bytes()),
           violations);
  if (!profile.has_float32_flops_per_second() && !profile.has_bfloat16_flops_per_second()) {
    violations.Add("float32_flops_per_second", "is absent, and so is bfloat16_flops_per_second");
  }
  for (const auto& [key, stated, value] :
       {std::tuple("float32_flops_per_second", profile.has_float32_flops_per_second(),
                   profile.float32_flops_per_second()),
        std::tuple("bfloat16_flops_per_second", profile.has_bfloat16_flops_per_second(),
                   profile.bfloat16_flops_per_second())}) {
    if (stated) Positive(key, true, value, violations);
  }
  for (const auto& [key, share] :
       {std::pair("matmul_efficiency", profile.matmul_efficiency()),
        std::pair("attention_efficiency", AttentionEfficiency(profile))}) {
    if (!(share > 0) || share > 1) violations.AddOutOfRange(key, share, "(0, 1]");
  }
  Positive("memory_bytes_per_second", profile.has_memory_bytes_per_second(),
           profile.memory_bytes_per_second(), violations);
  NotNegative("launch_seconds", profile.has_launch_seconds(), profile.launch_seconds(), violations);
  Positive("devices_per_island", profile.has_devices_per_island(), profile.devices_per_island(),
           violations);
  if (profile.has_device_model() && FindTpuModel(profile.device_model()) == nullptr) {
    std::string known;
    for (const TpuModel& tpu : TpuModels())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", tpu.model);
    violations.AddUnknownWord("device_model", profile.device_model(), known);
  }
  CheckLink("island", profile.island(), violations);
  CheckLink("fabric", profile.fabric(), violations);
  return violations.ToStatus();
}

StatusOr<v1::DeviceProfile> ParseDeviceProfile(std::string_view text, std::string_view file_name) {
  v1::DeviceProfile profile;
  TROUPE_RETURN_IF_ERROR(ParseKeys(WithCurrentKeys(text), file_name, &profile));
  TROUPE_RETURN_IF_ERROR(Annotate(CheckDeviceProfile(profile), std::string(file_name)));
  return profile;
}

}  // namespace troupe
