#include "cli/cluster/cluster_file.h"

#include <nlohmann/json.hpp>

#include "base/file_system.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxBytes = 1 << 20;

std::string PathOf(const std::string& folder) { return JoinPath(folder, "cluster.json"); }

ProcessId ProcessOf(const Json& json) {
  return {.pid = json.at("pid").get<pid_t>(), .start_ticks = json.at("start_ticks").get<uint64_t>()};
}

}  // namespace

std::string ToJsonText(const ClusterFile& cluster) {
  Json workers = Json::array();
  for (const auto& worker : cluster.workers) {
    workers.push_back({{"name", worker.name},
                       {"pid", worker.process.pid},
                       {"metrics", worker.metrics},
                       {"start_ticks", worker.process.start_ticks}});
  }
  const Json json = {
      {"coordinator",
       {{"address", cluster.coordinator_address},
        {"pid", cluster.coordinator.pid},
        {"metrics", cluster.coordinator_metrics},
        {"start_ticks", cluster.coordinator.start_ticks}}},
      {"workers", std::move(workers)},
      {"supervisor",
       {{"pid", cluster.supervisor.pid}, {"start_ticks", cluster.supervisor.start_ticks}}}};
  return json.dump(2) + "\n";
}

StatusOr<ClusterFile> ParseClusterFile(const std::string& text) {
  // nlohmann throws on a wrong type or an absent key.
  try {
    const Json json = Json::parse(text);
    ClusterFile cluster;
    const Json& coordinator = json.at("coordinator");
    cluster.coordinator_address = coordinator.at("address").get<std::string>();
    cluster.coordinator_metrics = coordinator.at("metrics").get<std::string>();
    cluster.coordinator = ProcessOf(coordinator);
    cluster.supervisor = ProcessOf(json.at("supervisor"));
    for (const Json& worker : json.at("workers")) {
      cluster.workers.push_back({.name = worker.at("name").get<std::string>(),
                                 .process = ProcessOf(worker),
                                 .metrics = worker.at("metrics").get<std::string>()});
    }
    return cluster;
  } catch (const std::exception& error) {
    return InvalidArgument("{}", error.what());
  }
}

StatusOr<ClusterFile> ReadClusterFile(const std::string& folder) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, PathOf(folder), kMaxBytes,
                                                           SymbolicLinks::kRefuse));
  auto cluster = ParseClusterFile(text);
  if (!cluster.ok()) return Annotate(cluster.status(), PathOf(folder));
  return cluster;
}

Status WriteClusterFile(const std::string& folder, const ClusterFile& cluster) {
  PosixFileSystem files;
  return WriteFileDurably(files, PathOf(folder), AsBytes(ToJsonText(cluster)));
}

}  // namespace troupe
