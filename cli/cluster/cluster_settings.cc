#include "cli/cluster/cluster_settings.h"

#include <nlohmann/json.hpp>

#include "base/durable_write.h"
#include "base/file_system.h"
#include "plan/device/device_kind.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string ClusterSettingsPath(const std::string& folder) {
  return JoinPath(folder, "settings.json");
}

StatusOr<ClusterSettings> ReadClusterSettings(const std::string& folder) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, ClusterSettingsPath(folder),
                                                           1 << 20, SymbolicLinks::kRefuse));
  // nlohmann throws on a wrong type or an absent key.
  try {
    const Json json = Json::parse(text);
    return ClusterSettings{
        // The key is absent from files of an earlier version, which supported CPU devices only.
        .devices = {.kind = json.value("device_kind", std::string(kDefaultDeviceKind)),
                    .count = json.at("devices_per_worker").get<int>()},
        .detection_seconds = json.at("detection_seconds").get<double>(),
        .log_bytes = json.value("log_bytes", ClusterSettings{}.log_bytes),
        .log_files = json.value("log_files", ClusterSettings{}.log_files),
        .keep_ended = json.value("keep_ended", ClusterSettings{}.keep_ended),
        .coordinator_port = json.at("coordinator_port").get<int>(),
        .coordinator_metrics_port = json.at("coordinator_metrics_port").get<int>(),
        .coordinator_page_port = json.value("coordinator_page_port", 0),
        .worker_metrics_ports = json.at("worker_metrics_ports").get<std::vector<int>>(),
        .prometheus = json.value("prometheus", ClusterSettings{}.prometheus),
        .prometheus_port = json.value("prometheus_port", 0)};
  } catch (const std::exception& error) {
    return InvalidArgument("{}: {}", ClusterSettingsPath(folder), error.what());
  }
}

Status WriteClusterSettings(const std::string& folder, const ClusterSettings& settings) {
  const Json json = {{"device_kind", settings.devices.kind},
                     {"devices_per_worker", settings.devices.count},
                     {"detection_seconds", settings.detection_seconds},
                     {"log_bytes", settings.log_bytes},
                     {"log_files", settings.log_files},
                     {"keep_ended", settings.keep_ended},
                     {"coordinator_port", settings.coordinator_port},
                     {"coordinator_metrics_port", settings.coordinator_metrics_port},
                     {"coordinator_page_port", settings.coordinator_page_port},
                     {"worker_metrics_ports", settings.worker_metrics_ports},
                     {"prometheus", settings.prometheus},
                     {"prometheus_port", settings.prometheus_port}};
  PosixFileSystem files;
  return WriteFileDurably(files, ClusterSettingsPath(folder), AsBytes(json.dump(2) + "\n"));
}

}  // namespace troupe
