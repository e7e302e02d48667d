#include "cli/cluster/cluster_settings.h"

#include <nlohmann/json.hpp>

#include "base/file_system.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

std::string PathOf(const std::string& folder) { return JoinPath(folder, "settings.json"); }

}  // namespace

StatusOr<ClusterSettings> ReadClusterSettings(const std::string& folder) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, PathOf(folder), 1 << 20, SymbolicLinks::kRefuse));
  // nlohmann throws on a wrong type or an absent key.
  try {
    const Json json = Json::parse(text);
    return ClusterSettings{
        .devices_per_worker = json.at("devices_per_worker").get<int>(),
        .detection_seconds = json.at("detection_seconds").get<double>(),
        .coordinator_port = json.at("coordinator_port").get<int>(),
        .coordinator_metrics_port = json.at("coordinator_metrics_port").get<int>(),
        .worker_metrics_ports = json.at("worker_metrics_ports").get<std::vector<int>>()};
  } catch (const std::exception& error) {
    return InvalidArgument("{}: {}", PathOf(folder), error.what());
  }
}

Status WriteClusterSettings(const std::string& folder, const ClusterSettings& settings) {
  const Json json = {{"devices_per_worker", settings.devices_per_worker},
                     {"detection_seconds", settings.detection_seconds},
                     {"coordinator_port", settings.coordinator_port},
                     {"coordinator_metrics_port", settings.coordinator_metrics_port},
                     {"worker_metrics_ports", settings.worker_metrics_ports}};
  PosixFileSystem files;
  return WriteFileDurably(files, PathOf(folder), AsBytes(json.dump(2) + "\n"));
}

}  // namespace troupe
