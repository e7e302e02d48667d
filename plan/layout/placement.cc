#include "plan/layout/placement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/layout/mesh.h"

namespace troupe {
namespace {

using KindKey = std::tuple<std::string, std::string, std::string, std::string>;

KindKey KeyOf(const v1::DeviceKind& kind) {
  return {kind.kind(), kind.model(), kind.kernel_level(), kind.versions()};
}

// Whether the worker searched for NCCL and found none.
bool HasNoNccl(const v1::DeviceKind& kind) { return kind.has_nccl() && kind.nccl().empty(); }

// Whether a gang of several ranks with the kind `frozen` (null: not fixed yet) may use a device of
// `kind`.
bool ReachesOthers(const v1::DeviceKind& kind, const v1::DeviceKind* frozen) {
  if (HasNoNccl(kind)) return false;
  return frozen == nullptr || !frozen->has_nccl() || kind.nccl() == frozen->nccl();
}

std::string TextOf(const v1::DeviceKind& kind) {
  return fmt::format("{} {} ({}; {}{}{})", kind.kind(), kind.model(), kind.kernel_level(),
                     kind.versions(),
                     !kind.has_nccl()      ? ""
                     : kind.nccl().empty() ? "; no NCCL"
                                           : "; NCCL ",
                     kind.nccl());
}

const std::string& HostOf(const ClusterDevice& device) {
  return device.host.empty() ? device.worker : device.host;
}

std::string IslandOf(const ClusterDevice& device) {
  return device.island.empty() ? "host:" + HostOf(device) : device.island;
}

// The free devices of one island, by worker.
class Island {
 public:
  void Add(const ClusterDevice* device) {
    workers_[device->worker].push_back(device);
    ++free_;
  }
  void Sort() {
    for (auto& [name, devices] : workers_) {
      std::sort(devices.begin(), devices.end(),
                [](const auto* a, const auto* b) { return a->device.index() > b->device.index(); });
    }
  }
  int free() const { return free_; }
  // Removes and returns the device with the lowest index on the worker that has the fewest ranks of
  // the gang so far.
  const ClusterDevice* Allocate(std::map<std::string, int>* ranks_on_worker) {
    std::vector<const ClusterDevice*>* least = nullptr;
    int least_ranks = 0;
    for (auto& [name, devices] : workers_) {
      const int ranks = (*ranks_on_worker)[name];
      if (!devices.empty() && (least == nullptr || ranks < least_ranks)) {
        least = &devices;
        least_ranks = ranks;
      }
    }
    const ClusterDevice* device = least->back();
    least->pop_back();
    ++(*ranks_on_worker)[device->worker];
    --free_;
    return device;
  }

 private:
  std::map<std::string, std::vector<const ClusterDevice*>> workers_;
  int free_ = 0;
};

// ": 3 of cpu M (avx512; 1), 2 of cpu M (avx512; 2)": why at most `available` of the free devices
// may be used; empty where all may.
std::string KindsThere(const ClusterView& cluster, const std::string& device_kind,
                       size_t available) {
  std::map<std::string, size_t> kinds;
  size_t all = 0;
  for (const ClusterDevice& device : cluster.free_devices) {
    if (device.device.kind().kind() != device_kind) continue;
    ++kinds[TextOf(device.device.kind())];
    ++all;
  }
  std::string text;
  if (all == available) return text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{} {} of {}", text.empty() ? ":" : ",", count, kind);
  return text;
}

// Returns devices of one kind, enough for the gang. Kinds are tried by number of free devices, then
// by text.
StatusOr<std::vector<const ClusterDevice*>> ChooseKind(const ClusterView& cluster,
                                                       const std::string& device_kind,
                                                       const v1::DeviceKind* frozen, int ranks) {
  std::map<std::pair<KindKey, std::string>, std::vector<const ClusterDevice*>> kinds;
  for (const ClusterDevice& device : cluster.free_devices) {
    const v1::DeviceKind& kind = device.device.kind();
    if (kind.kind() != device_kind) continue;
    if (frozen != nullptr && KeyOf(kind) != KeyOf(*frozen)) continue;
    if (ranks > 1 && !ReachesOthers(kind, frozen)) continue;
    kinds[{KeyOf(kind), ranks > 1 ? kind.nccl() : ""}].push_back(&device);
  }
  const std::vector<const ClusterDevice*>* most = nullptr;
  for (const auto& [key, devices] : kinds) {
    if (most == nullptr || devices.size() > most->size()) most = &devices;
  }
  const size_t available = most == nullptr ? 0 : most->size();
  if (available < static_cast<size_t>(ranks)) {
    return FailedPrecondition("needs {} free devices of one kind, {}; {} free{}", ranks,
                              frozen != nullptr ? TextOf(*frozen) : device_kind,
                              available == 1 ? "1 is" : fmt::format("{} are", available),
                              KindsThere(cluster, device_kind, available));
  }
  return *most;
}

}  // namespace

ClusterView ImaginedCluster(int count, const std::string& device_kind) {
  ClusterView cluster;
  cluster.free_devices.resize(count);
  for (int i = 0; i < count; ++i) {
    cluster.free_devices[i].device.set_index(i);
    cluster.free_devices[i].device.mutable_kind()->set_kind(device_kind);
  }
  return cluster;
}

StatusOr<GangPlacement> PlaceGang(const v1::MeshDegrees& degrees, const std::string& device_kind,
                                  const ClusterView& cluster, const v1::DeviceKind* frozen,
                                  int shard_run) {
  const Mesh mesh(degrees);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<const ClusterDevice*> devices,
                          ChooseKind(cluster, device_kind, frozen, mesh.ranks()));
  std::map<std::string, Island> islands;
  for (const ClusterDevice* device : devices) islands[IslandOf(*device)].Add(device);
  for (auto& [name, island] : islands) island.Sort();

  GangPlacement placement;
  placement.device = devices.front()->device.kind();
  if (mesh.ranks() == 1) placement.device.clear_nccl();
  std::map<std::string, int> ranks_on_worker;
  std::vector<const ClusterDevice*> chosen(mesh.ranks());
  // All tensor groups are runs of consecutive ranks of the same size. Filling one island after
  // another, the one with the most room first, therefore uses the fewest islands and wastes no room
  // for a whole group.
  const int group_size = mesh.degree(model::Axis::kTensor);
  const int run_size = std::max(shard_run, 1) * mesh.degree(model::Axis::kContext) *
                       mesh.degree(model::Axis::kExpert) * group_size;
  const auto with_room = [&islands](int ranks) {
    Island* most = nullptr;
    for (auto& [name, island] : islands) {
      if (island.free() >= ranks && (most == nullptr || island.free() > most->free()))
        most = &island;
    }
    return most;
  };
  Island* current = nullptr;
  for (int first = 0; first < mesh.ranks(); first += group_size) {
    // The same holds for runs of shards, which consist of whole tensor groups.
    if (shard_run > 0 && first % run_size == 0 &&
        (current == nullptr || current->free() < run_size)) {
      Island* const roomy = with_room(run_size);
      if (roomy != nullptr) {
        current = roomy;
      } else {
        placement.warnings.push_back(fmt::format(
            "the run of data_shard of ranks {}-{} crosses islands: no island has {} free devices",
            first, first + run_size - 1, run_size));
      }
    }
    if (current == nullptr || current->free() < group_size) current = with_room(group_size);
    if (current == nullptr) {
      placement.warnings.push_back(fmt::format(
          "the tensor group of ranks {}-{} crosses islands: no island has {} free devices", first,
          first + group_size - 1, group_size));
    }
    for (int rank = first; rank < first + group_size; ++rank) {
      Island* source = current;
      if (source == nullptr) {
        source =
            &std::max_element(islands.begin(), islands.end(), [](const auto& a, const auto& b) {
               return a.second.free() < b.second.free();
             })->second;
      }
      chosen[rank] = source->Allocate(&ranks_on_worker);
    }
  }

  std::map<std::string, int> ranks_on_host;
  std::map<std::string, int> cores_of_host;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const ClusterDevice& device = *chosen[rank];
    v1::RankPlacement entry;
    entry.set_rank(rank);
    *entry.mutable_coordinates() = Mesh::ToProto(mesh.CoordinatesOf(rank));
    entry.set_worker(device.worker);
    entry.set_device(device.device.index());
    entry.set_host(device.worker.empty() ? "" : HostOf(device));
    entry.set_island(device.worker.empty() ? "" : IslandOf(device));
    placement.ranks.push_back(std::move(entry));
    if (device.worker.empty()) continue;
    ++ranks_on_host[HostOf(device)];
    int& cores = cores_of_host[HostOf(device)];
    cores = std::max(cores, device.device.cores());
  }
  int threads = ranks_on_host.empty() ? 1 : 1 << 16;
  for (const auto& [host, ranks] : ranks_on_host) {
    threads = std::min(threads, cores_of_host[host] / ranks);
  }
  placement.threads_per_rank = std::max(threads, 1);
  return placement;
}

}  // namespace troupe
