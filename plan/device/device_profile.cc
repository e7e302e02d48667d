#include "plan/device/device_profile.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "plan/device/tpu_model.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"
#include "plan/job/yaml_document.h"
#include "troupe/v1/job.pb.h"

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

// Returns the keys of the outermost level of a file: those of YAML or JSON, and the words with
// which lines begin as fields of a protobuf's text do, "model {" or "name: 3".
std::vector<std::string> OutermostKeys(std::string_view text) {
  std::vector<std::string> keys;
  const StatusOr<YAML::Node> root = LoadYaml(text, {});
  if (root.ok() && root->IsMap()) {
    for (const auto& entry : *root)
      if (entry.first.IsScalar()) keys.push_back(entry.first.Scalar());
  }
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
    const size_t mark = line.find_first_not_of(' ', end);
    if (end == 0 || mark == std::string::npos) continue;
    if (line[mark] == ':' || line[mark] == '{') keys.push_back(line.substr(0, end));
  }
  return keys;
}

// Returns a key of `text` that jobs have and profiles do not; empty if there is none, or if another
// one is that of a profile only.
std::string KeyOfJob(std::string_view text) {
  std::string found;
  for (const std::string& key : OutermostKeys(text)) {
    const bool is_of_job = v1::JobSpec::descriptor()->FindFieldByName(key) != nullptr;
    const bool is_of_profile = v1::DeviceProfile::descriptor()->FindFieldByName(key) != nullptr;
    if (is_of_profile && !is_of_job) return "";
    if (is_of_job && !is_of_profile && found.empty()) found = key;
  }
  return found;
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
  const std::string& model = profile.device_model();
  if (profile.has_device_model() && model.empty()) violations.Add("device_model", "is empty");
  // Plans for a TPU depend on its model.
  if (model.starts_with(kTpuModelsBegin) && FindTpuModel(model) == nullptr) {
    std::string known;
    for (const TpuModel& tpu : TpuModels())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", tpu.model);
    violations.AddUnknownWord("device_model", model, known);
  }
  CheckLink("island", profile.island(), violations);
  CheckLink("fabric", profile.fabric(), violations);
  return violations.ToStatus();
}

StatusOr<v1::DeviceProfile> ParseDeviceProfile(std::string_view text, std::string_view file_name) {
  v1::DeviceProfile profile;
  const Status parsed = ParseKeys(WithCurrentKeys(text), file_name, &profile);
  if (!parsed.ok() && text.size() <= kMaxJobFileBytes) {
    if (const std::string key = KeyOfJob(text); !key.empty()) {
      return InvalidArgument(
          "{}: looks like a job file, for it has the key {}; a device profile is expected, a YAML "
          "file of a device's rates with keys such as memory_bytes (docs/planning.md)",
          file_name, key);
    }
  }
  TROUPE_RETURN_IF_ERROR(parsed);
  TROUPE_RETURN_IF_ERROR(Annotate(CheckDeviceProfile(profile), std::string(file_name)));
  return profile;
}

}  // namespace troupe
