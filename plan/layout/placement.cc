#include "plan/layout/placement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/layout/mesh.h"
#include "plan/layout/slice_placement.h"

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
  if (!device.island.empty()) return device.island;
  if (device.device.has_chip()) return "slice:" + device.device.chip().slice();
  return "host:" + HostOf(device);
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

// Chooses the devices of a gang, rank by rank, from the islands.
//
// All tensor groups are runs of consecutive ranks of the same size. Filling one island after
// another, the one with the most room first, therefore uses the fewest islands and wastes no room
// for a whole group. The same holds for runs of shards, which consist of whole tensor groups.
class DeviceChoice {
 public:
  // `shard_run`: 0 where data_shard is not cut into runs. REQUIRES: `devices` has at least as many
  // entries as the mesh has ranks.
  DeviceChoice(const Mesh& mesh, const std::vector<const ClusterDevice*>& devices, int shard_run)
      : chosen_(static_cast<size_t>(mesh.ranks())),
        group_size_(mesh.degree(model::Axis::kTensor)),
        run_size_(shard_run * mesh.degree(model::Axis::kContext) *
                  mesh.degree(model::Axis::kExpert) * group_size_) {
    for (const ClusterDevice* device : devices) islands_[IslandOf(*device)].Add(device);
    for (auto& [name, island] : islands_) island.Sort();
    for (int first = 0; first < mesh.ranks(); first += group_size_) ChooseGroup(first);
  }

  const std::vector<const ClusterDevice*>& chosen() const { return chosen_; }  // by rank
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // Chooses for the tensor group that begins at rank `first`.
  void ChooseGroup(int first) {
    const bool begins_run = run_size_ > 0 && first % run_size_ == 0;
    if (begins_run && (current_ == nullptr || current_->free() < run_size_)) {
      Island* const roomy = WithRoom(run_size_);
      if (roomy != nullptr) {
        current_ = roomy;
      } else {
        warnings_.push_back(fmt::format(
            "the run of data_shard of ranks {}-{} crosses islands: no island has {} free devices",
            first, first + run_size_ - 1, run_size_));
      }
    }
    if (current_ == nullptr || current_->free() < group_size_) current_ = WithRoom(group_size_);
    if (current_ == nullptr) {
      warnings_.push_back(fmt::format(
          "the tensor group of ranks {}-{} crosses islands: no island has {} free devices", first,
          first + group_size_ - 1, group_size_));
    }
    for (int rank = first; rank < first + group_size_; ++rank) {
      Island& source = current_ != nullptr ? *current_ : *WithRoom(1);
      chosen_[static_cast<size_t>(rank)] = source.Allocate(&ranks_on_worker_);
    }
  }

  // The island with the most free devices; null where it has fewer than `ranks`.
  Island* WithRoom(int ranks) {
    Island* most = nullptr;
    for (auto& [name, island] : islands_) {
      if (island.free() >= ranks && (most == nullptr || island.free() > most->free()))
        most = &island;
    }
    return most;
  }

  std::map<std::string, Island> islands_;
  std::map<std::string, int> ranks_on_worker_;
  std::vector<const ClusterDevice*> chosen_;
  std::vector<std::string> warnings_;
  const int group_size_, run_size_;
  Island* current_ = nullptr;  // the island that is being filled
};

// The devices of a gang, by rank, with the process of each where they are chips of TPUs.
struct Chosen {
  std::vector<const ClusterDevice*> devices;
  std::vector<v1::SliceProcess> processes;  // empty: the devices are no chips
  std::vector<std::string> warnings;
};

StatusOr<Chosen> ChooseDevices(const Mesh& mesh, const std::vector<const ClusterDevice*>& devices,
                               int shard_run) {
  const auto has_chip = [](const ClusterDevice* device) { return device->device.has_chip(); };
  if (!std::ranges::all_of(devices, has_chip)) {
    const DeviceChoice choice(mesh, devices, shard_run);
    return Chosen{choice.chosen(), {}, choice.warnings()};
  }
  const int stages = mesh.degree(model::Axis::kPipe), ranks = mesh.ranks() / stages;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<StageSlice> slices,
                          PlaceStages(devices, stages, ranks));
  Chosen chosen;
  for (const StageSlice& stage : slices) {
    chosen.devices.insert(chosen.devices.end(), stage.chips.begin(), stage.chips.end());
    for (int rank = 0; rank < ranks; ++rank) chosen.processes.push_back(ToProto(stage, rank));
  }
  return chosen;
}

// The cores of a rank: those of the host with the fewest for each of its ranks. 1 where no rank has
// a worker.
int ThreadsPerRank(const std::vector<const ClusterDevice*>& chosen) {
  struct Host {
    int ranks = 0, cores = 0;
  };
  std::map<std::string, Host> hosts;
  for (const ClusterDevice* device : chosen) {
    if (device->worker.empty()) continue;
    Host& host = hosts[HostOf(*device)];
    ++host.ranks;
    host.cores = std::max(host.cores, device->device.cores());
  }
  int threads = hosts.empty() ? 1 : 1 << 16;
  for (const auto& [name, host] : hosts) threads = std::min(threads, host.cores / host.ranks);
  return std::max(threads, 1);
}

}  // namespace

StatusOr<GangPlacement> PlaceGang(const v1::MeshDegrees& degrees, const std::string& device_kind,
                                  const ClusterView& cluster, const v1::DeviceKind* frozen,
                                  int shard_run) {
  const Mesh mesh(degrees);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<const ClusterDevice*> devices,
                          ChooseKind(cluster, device_kind, frozen, mesh.ranks()));
  TROUPE_ASSIGN_OR_RETURN(Chosen chosen, ChooseDevices(mesh, devices, shard_run));
  GangPlacement placement;
  placement.device = devices.front()->device.kind();
  if (mesh.ranks() == 1) placement.device.clear_nccl();
  placement.warnings = std::move(chosen.warnings);
  placement.threads_per_rank = ThreadsPerRank(chosen.devices);
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const ClusterDevice& device = *chosen.devices[static_cast<size_t>(rank)];
    v1::RankPlacement& entry = placement.ranks.emplace_back();
    entry.set_rank(rank);
    *entry.mutable_coordinates() = Mesh::ToProto(mesh.CoordinatesOf(rank));
    entry.set_worker(device.worker);
    entry.set_device(device.device.index());
    entry.set_host(device.worker.empty() ? "" : HostOf(device));
    entry.set_island(device.worker.empty() ? "" : IslandOf(device));
    if (!chosen.processes.empty())
      *entry.mutable_slice_process() = std::move(chosen.processes[static_cast<size_t>(rank)]);
  }
  return placement;
}

}  // namespace troupe
