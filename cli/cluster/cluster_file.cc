#include "cli/cluster/cluster_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file_system.h"
#include "cli/cluster/process.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxBytes = 1 << 20;

std::string PathOf(const std::string& folder) { return JoinPath(folder, "cluster.json"); }

ProcessId ProcessOf(const Json& json) {
  return {.pid = json.at("pid").get<pid_t>(),
          .start_ticks = json.at("start_ticks").get<uint64_t>()};
}

bool IsSameFolder(const std::string& one, const std::string& other) {
  std::error_code error;
  return one == other || std::filesystem::equivalent(one, other, error);
}

// A process that the file names and that lives; none if there is none.
std::optional<ProcessId> AnyAlive(const ClusterFile& cluster) {
  std::vector<ProcessId> all = {cluster.supervisor, cluster.coordinator};
  for (const auto& worker : cluster.workers) all.push_back(worker.process);
  const auto alive = std::find_if(all.begin(), all.end(), IsAlive);
  return alive == all.end() ? std::nullopt : std::optional(*alive);
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
      {"folder", cluster.folder},
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
    cluster.folder = json.value("folder", "");
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
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, PathOf(folder), kMaxBytes, SymbolicLinks::kRefuse));
  auto cluster = ParseClusterFile(text);
  if (!cluster.ok()) return Annotate(cluster.status(), PathOf(folder));
  if (cluster->folder.empty() || IsSameFolder(cluster->folder, folder)) return cluster;
  if (const std::optional<ProcessId> alive = AnyAlive(*cluster)) {
    return FailedPrecondition(
        "{} is a copy of the file of the cluster in {}, whose processes do not belong to this "
        "folder: process {} is alive; remove the copy, or run `troupe down` for that cluster first",
        PathOf(folder), cluster->folder, alive->pid);
  }
  return cluster;
}

Status WriteClusterFile(const std::string& folder, const ClusterFile& cluster) {
  PosixFileSystem files;
  ClusterFile stated = cluster;
  stated.folder = folder;
  return WriteFileDurably(files, PathOf(folder), AsBytes(ToJsonText(stated)));
}

}  // namespace troupe
