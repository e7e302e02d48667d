#include "cli/cluster/cluster_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/durable_write.h"
#include "base/file_system.h"
#include "cli/cluster/process.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxBytes = 1 << 20;

std::string PathOf(const std::string& folder) { return JoinPath(folder, "cluster.json"); }
std::string TargetsPathOf(const std::string& folder) {
  return JoinPath(folder, "prometheus_targets.json");
}

// Returns HOST:PORT of an address such as "http://127.0.0.1:7001/metrics".
std::string HostAndPort(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

Json TargetOf(const std::string& job, const std::string& url) {
  return {{"targets", Json::array({HostAndPort(url)})}, {"labels", {{"job", job}}}};
}

// Reads the member `key`, a text, a whole number of at least 0 or any value, of the object at
// `path` in the file. The error names the key.
template <typename T>
Status ReadMember(const Json& object, const std::string& path, const char* key, T* value) {
  if (!object.is_object())
    return InvalidArgument("{} is not an object", path.empty() ? "its content" : path);
  const std::string name = path.empty() ? key : fmt::format("{}.{}", path, key);
  const auto found = object.find(key);
  if (found == object.end()) return InvalidArgument("{} is missing", name);
  if constexpr (std::is_same_v<T, Json>) {
    *value = *found;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return InvalidArgument("{} is not a text", name);
    *value = found->template get<std::string>();
  } else {
    if (!found->is_number_unsigned() || !std::in_range<T>(found->template get<uint64_t>()))
      return InvalidArgument("{} is not a whole number", name);
    *value = found->template get<T>();
  }
  return OkStatus();
}

Status ReadProcess(const Json& object, const std::string& path, ProcessId* process) {
  TROUPE_RETURN_IF_ERROR(ReadMember(object, path, "pid", &process->pid));
  return ReadMember(object, path, "start_ticks", &process->start_ticks);
}

// Files of earlier versions state no host.
Status ReadHost(const Json& object, const std::string& path, HostId* host) {
  if (!object.contains("host")) return OkStatus();
  TROUPE_RETURN_IF_ERROR(ReadMember(object, path, "host", &host->name));
  return ReadMember(object, path, "boot_id", &host->boot_id);
}

bool IsSameFolder(const std::string& one, const std::string& other) {
  std::error_code error;
  return one == other || std::filesystem::equivalent(one, other, error);
}

// A process that the file names and that lives; none if there is none.
std::optional<ProcessId> AnyAlive(const ClusterFile& cluster) {
  std::vector<ProcessId> all = ProcessesOf(cluster);
  all.push_back(cluster.supervisor);
  const auto alive = std::find_if(all.begin(), all.end(), IsAlive);
  return alive == all.end() ? std::nullopt : std::optional(*alive);
}

}  // namespace

std::vector<ProcessId> ProcessesOf(const ClusterFile& cluster) {
  std::vector<ProcessId> all = {cluster.coordinator};
  for (const auto& worker : cluster.workers) all.push_back(worker.process);
  if (cluster.prometheus) all.push_back(cluster.prometheus->process);
  return all;
}

std::string ToJsonText(const ClusterFile& cluster) {
  Json workers = Json::array();
  for (const auto& worker : cluster.workers) {
    workers.push_back({{"name", worker.name},
                       {"pid", worker.process.pid},
                       {"metrics", worker.metrics},
                       {"start_ticks", worker.process.start_ticks}});
  }
  Json coordinator = {{"address", cluster.coordinator_address},
                      {"pid", cluster.coordinator.pid},
                      {"metrics", cluster.coordinator_metrics},
                      {"start_ticks", cluster.coordinator.start_ticks}};
  if (!cluster.coordinator_page.empty()) coordinator["page"] = cluster.coordinator_page;
  Json json = {{"folder", cluster.folder},
               {"coordinator", std::move(coordinator)},
               {"workers", std::move(workers)},
               {"supervisor",
                {{"pid", cluster.supervisor.pid},
                 {"start_ticks", cluster.supervisor.start_ticks},
                 {"host", cluster.host.name},
                 {"boot_id", cluster.host.boot_id}}}};
  if (cluster.prometheus) {
    json["prometheus"] = {{"pid", cluster.prometheus->process.pid},
                          {"url", cluster.prometheus->url},
                          {"start_ticks", cluster.prometheus->process.start_ticks}};
  }
  return json.dump(2) + "\n";
}

std::string ToTargetsText(const ClusterFile& cluster) {
  Json targets = Json::array({TargetOf("troupe-coordinator", cluster.coordinator_metrics)});
  for (const auto& worker : cluster.workers) {
    targets.push_back(TargetOf("troupe-worker", worker.metrics));
  }
  return targets.dump(2) + "\n";
}

StatusOr<ClusterFile> ParseClusterFile(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidArgument("it is not JSON");
  ClusterFile cluster;
  Json coordinator, supervisor, workers;
  TROUPE_RETURN_IF_ERROR(ReadMember(json, "", "coordinator", &coordinator));
  TROUPE_RETURN_IF_ERROR(ReadMember(json, "", "supervisor", &supervisor));
  TROUPE_RETURN_IF_ERROR(ReadMember(json, "", "workers", &workers));
  if (json.contains("folder"))
    TROUPE_RETURN_IF_ERROR(ReadMember(json, "", "folder", &cluster.folder));
  TROUPE_RETURN_IF_ERROR(
      ReadMember(coordinator, "coordinator", "address", &cluster.coordinator_address));
  TROUPE_RETURN_IF_ERROR(
      ReadMember(coordinator, "coordinator", "metrics", &cluster.coordinator_metrics));
  if (coordinator.contains("page")) {
    TROUPE_RETURN_IF_ERROR(
        ReadMember(coordinator, "coordinator", "page", &cluster.coordinator_page));
  }
  TROUPE_RETURN_IF_ERROR(ReadProcess(coordinator, "coordinator", &cluster.coordinator));
  TROUPE_RETURN_IF_ERROR(ReadProcess(supervisor, "supervisor", &cluster.supervisor));
  TROUPE_RETURN_IF_ERROR(ReadHost(supervisor, "supervisor", &cluster.host));
  if (json.contains("prometheus")) {
    ClusterFile::Prometheus& stated = cluster.prometheus.emplace();
    TROUPE_RETURN_IF_ERROR(ReadMember(json["prometheus"], "prometheus", "url", &stated.url));
    TROUPE_RETURN_IF_ERROR(ReadProcess(json["prometheus"], "prometheus", &stated.process));
  }
  if (!workers.is_array()) return InvalidArgument("workers is not a list");
  for (const Json& stated : workers) {
    const std::string path = fmt::format("workers[{}]", cluster.workers.size());
    ClusterFile::Worker& worker = cluster.workers.emplace_back();
    TROUPE_RETURN_IF_ERROR(ReadMember(stated, path, "name", &worker.name));
    TROUPE_RETURN_IF_ERROR(ReadMember(stated, path, "metrics", &worker.metrics));
    TROUPE_RETURN_IF_ERROR(ReadProcess(stated, path, &worker.process));
  }
  return cluster;
}

StatusOr<ClusterFile> ReadClusterFile(const std::string& folder) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, PathOf(folder), kMaxBytes, SymbolicLinks::kRefuse));
  auto cluster = ParseClusterFile(text);
  if (!cluster.ok()) {
    return InvalidArgument(
        "{} is damaged: {}; `troupe down --data-dir {}` stops the cluster and removes the file if "
        "the cluster's supervisor is running; if it is not, remove the file",
        PathOf(folder), Message(cluster.status()), folder);
  }
  if (const HostId self = ThisHost(); IsElsewhere(cluster->host, self)) {
    return FailedPrecondition(
        "{} is that of a cluster of the host {}, and this host is {}: use the cluster there, or "
        "give another --data-dir DIR; if the cluster has ended without `troupe down`, or the file "
        "is a copy, remove the file",
        PathOf(folder), cluster->host.name, self.name);
  }
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
  stated.host = ThisHost();
  TROUPE_RETURN_IF_ERROR(
      WriteFileDurably(files, TargetsPathOf(folder), AsBytes(ToTargetsText(cluster))));
  return WriteFileDurably(files, PathOf(folder), AsBytes(ToJsonText(stated)));
}

Status RemoveClusterFile(const std::string& folder) {
  PosixFileSystem files;
  const Status targets = files.Remove(TargetsPathOf(folder));
  TROUPE_RETURN_IF_ERROR(files.Remove(PathOf(folder)));
  // A cluster of an earlier version has no such file.
  return targets.code() == StatusCode::kNotFound ? OkStatus() : targets;
}

}  // namespace troupe
