#include "coordinator/state/fleet.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/check.h"
#include "base/deadline.h"
#include "base/flag_parser.h"
#include "checkpoint/format/digest.h"
#include "plan/device/device_profile.h"
#include "plan/layout/slice_placement.h"
#include "plan/layout/worker_name.h"

namespace troupe {
namespace {

constexpr int kProtocolVersion = 2;
constexpr int kMaxDevices = 1024;
constexpr double kLongestDrainSeconds = 86400;

// Others see these texts, in lists, logs and metrics.
Status CheckNames(const v1::Hello& hello) {
  TROUPE_RETURN_IF_ERROR(CheckText("host", hello.host()));
  TROUPE_RETURN_IF_ERROR(CheckText("island", hello.island()));
  TROUPE_RETURN_IF_ERROR(CheckText("metrics_address", hello.metrics_address()));
  for (const v1::Device& device : hello.devices()) {
    TROUPE_RETURN_IF_ERROR(CheckText("devices: kind", device.kind().kind()));
    TROUPE_RETURN_IF_ERROR(CheckText("devices: id", device.id()));
  }
  return OkStatus();
}

Status ValidateHello(const v1::Hello& hello, uint64_t leader_epoch) {
  if (hello.protocol_version() != kProtocolVersion) {
    return FailedPrecondition("protocol_version is {}, but this coordinator uses {}",
                              hello.protocol_version(), kProtocolVersion);
  }
  TROUPE_RETURN_IF_ERROR(CheckWorkerName(hello.name()));
  if (hello.incarnation() == 0) return InvalidArgument("incarnation must be positive");
  if (hello.devices_size() > kMaxDevices) {
    return InvalidArgument("devices: {} exceed the limit of {}", hello.devices_size(), kMaxDevices);
  }
  TROUPE_RETURN_IF_ERROR(CheckNames(hello));
  std::set<int32_t> indexes;
  for (const v1::Device& device : hello.devices()) {
    if (device.index() < 0 || !indexes.insert(device.index()).second) {
      return InvalidArgument("devices: index {} is negative or appears twice", device.index());
    }
    if (device.kind().kind().empty())
      return InvalidArgument("devices: kind of device {} is empty", device.index());
    if (device.has_chip()) {
      TROUPE_RETURN_IF_ERROR(Annotate(CheckTpuChip(device.chip()),
                                      fmt::format("devices: chip of device {}", device.index())));
    }
    if (!device.has_profile()) continue;
    TROUPE_RETURN_IF_ERROR(Annotate(CheckDeviceProfile(device.profile()),
                                    fmt::format("devices: profile of device {}", device.index())));
  }
  if (hello.leader_epoch_seen() > leader_epoch) {
    return FailedPrecondition(
        "leader_epoch_seen is {}, but this coordinator's is {}: it has lost its catalog or is not "
        "the worker's coordinator",
        hello.leader_epoch_seen(), leader_epoch);
  }
  return OkStatus();
}

std::string DigestOfKey(const std::string& life_key) {
  return Sha256Of(std::as_bytes(std::span(life_key)));
}

// Checks a Hello with the name of a known worker. ALREADY_EXISTS where a later one may succeed.
Status CheckTakesOver(const v1::Hello& hello, const Worker& old) {
  const bool same_process = old.hello.host() == hello.host() && old.hello.pid() == hello.pid();
  const bool same_life = hello.incarnation() == old.incarnation;
  if (old.session != 0 && same_life && !same_process) {
    return AlreadyExists(
        "worker {} is connected as incarnation {} from process {} on host {}, not process {} on "
        "host {}",
        hello.name(), old.incarnation, old.hello.pid(), old.hello.host(), hello.pid(),
        hello.host());
  }
  // Name, incarnation, host and process are known to everybody who may list the workers.
  if (same_life && !old.life_key_digest.empty() &&
      old.life_key_digest != DigestOfKey(hello.life_key())) {
    return AlreadyExists("worker {} has already connected as incarnation {} with another life_key",
                         hello.name(), old.incarnation);
  }
  if (hello.incarnation() < old.incarnation) {
    return FailedPrecondition(
        "worker {}: incarnation {} is older than {}, which has taken over "
        "the name",
        hello.name(), hello.incarnation(), old.incarnation);
  }
  // The old life may be alive if its stream is open or the new one is on another host, which cannot
  // vouch for its end; then the lease must expire first.
  const bool may_live = old.session != 0 || old.hello.host() != hello.host();
  if (!same_life && may_live && !old.lost) {
    return AlreadyExists("worker {} is still alive as incarnation {} on host {}", hello.name(),
                         old.incarnation, old.hello.host());
  }
  return OkStatus();
}

}  // namespace

HelloOutcome AcceptHello(const v1::Hello& hello, SessionId session, uint64_t leader_epoch,
                         const TimeLimits& limits, MonotonicTime now, Fleet* fleet) {
  HelloOutcome outcome;
  outcome.refused = ValidateHello(hello, leader_epoch);
  if (!outcome.refused.ok()) return outcome;
  if (const Worker* const bound = FindBySession(session, fleet);
      bound != nullptr && LifeOf(*bound) != WorkerLife{hello.name(), hello.incarnation()}) {
    outcome.refused = InvalidArgument(
        "this stream belongs to worker {}, incarnation {}, and cannot become that of {}, {}",
        bound->name, bound->incarnation, hello.name(), hello.incarnation());
    return outcome;
  }
  const auto known = fleet->workers.find(hello.name());
  if (known != fleet->workers.end()) {
    const Worker& old = known->second;
    outcome.refused = CheckTakesOver(hello, old);
    if (!outcome.refused.ok()) {
      outcome.retry = outcome.refused.code() == StatusCode::kAlreadyExists;
      return outcome;
    }
    outcome.new_life = hello.incarnation() > old.incarnation;
    outcome.replaced_session = old.session;
    fleet->sessions.erase(old.session);
  }
  Worker& worker = fleet->workers[hello.name()];
  worker.name = hello.name();
  worker.incarnation = hello.incarnation();
  worker.session = session;
  worker.hello = hello;
  worker.hello.clear_held();
  worker.hello.clear_images();
  worker.hello.clear_life_key();
  worker.hello.clear_draining();
  worker.life_key_digest = DigestOfKey(hello.life_key());
  if (worker.hello.island().empty()) worker.hello.set_island(hello.host());
  worker.last_message = now;
  worker.lost = false;
  worker.denied_messages = 0;
  worker.drain.reset();
  fleet->sessions[session] = hello.name();
  return outcome;
}

Worker* FindBySession(SessionId session, Fleet* fleet) {
  const auto name = fleet->sessions.find(session);
  return name == fleet->sessions.end() ? nullptr : &fleet->workers.at(name->second);
}

const Worker* FindWorker(const std::string& name, const Fleet& fleet) {
  const auto worker = fleet.workers.find(name);
  return worker == fleet.workers.end() ? nullptr : &worker->second;
}

void NoteDraining(const v1::Draining& draining, MonotonicTime now, int64_t wall_ns,
                  Worker* worker) {
  const double stated = draining.seconds_left();
  const Duration left = FromSeconds(stated > 0 ? std::min(stated, kLongestDrainSeconds) : 0);
  worker->drain = {Shortened(draining.reason()), now + left, wall_ns + left.count()};
}

bool IsDraining(const Worker& worker, const Fleet& fleet) {
  return worker.drain || fleet.drains.contains(worker.name);
}

bool AnyDrains(const Fleet& fleet) {
  return !fleet.drains.empty() ||
         std::any_of(fleet.workers.begin(), fleet.workers.end(),
                     [](const auto& entry) { return entry.second.drain.has_value(); });
}

std::string CloseSession(SessionId session, MonotonicTime now, Fleet* fleet) {
  Worker* const worker = FindBySession(session, fleet);
  if (worker == nullptr) return {};
  worker->session = 0;
  worker->last_message = now;
  fleet->sessions.erase(session);
  return worker->name;
}

namespace {

MonotonicTime ExpiryOf(const Worker& worker, const TimeLimits& limits) {
  if (worker.lost) return worker.last_message + limits.forget_worker;
  return worker.last_message + (worker.session != 0 ? limits.lease : limits.reconnect_grace);
}

}  // namespace

std::vector<std::string> ExpireWorkers(const TimeLimits& limits, MonotonicTime now, Fleet* fleet,
                                       std::vector<SessionId>* closed, CatalogBatch* writes) {
  std::vector<std::string> lost;
  for (auto it = fleet->workers.begin(); it != fleet->workers.end();) {
    Worker& worker = it->second;
    if (now < ExpiryOf(worker, limits)) {
      ++it;
      continue;
    }
    if (worker.lost) {
      for (auto lease = fleet->leases.lower_bound({worker.name, 0});
           lease != fleet->leases.end() && lease->first.first == worker.name;) {
        writes->DeleteLease(lease->first.first, lease->first.second);
        lease = fleet->leases.erase(lease);
      }
      it = fleet->workers.erase(it);
      continue;
    }
    worker.lost = true;
    worker.last_message = now;
    if (worker.session != 0) {
      closed->push_back(worker.session);
      fleet->sessions.erase(worker.session);
      worker.session = 0;
    }
    lost.push_back(worker.name);
    ++it;
  }
  return lost;
}

std::optional<MonotonicTime> NextExpiry(const TimeLimits& limits, const Fleet& fleet) {
  std::optional<MonotonicTime> next;
  for (const auto& [name, worker] : fleet.workers) next = EarlierOf(next, ExpiryOf(worker, limits));
  return next;
}

bool CondemnDevice(const v1::DeviceCondemned& message, Worker* worker) {
  for (v1::Device& device : *worker->hello.mutable_devices()) {
    if (device.index() != message.device()) continue;
    device.set_condemned(message.reason());
    return true;
  }
  return false;
}

namespace {

// Returns the usable devices for which `admits` accepts the lease (null if there is none).
template <typename Admits>
ClusterView DevicesWhere(const Fleet& fleet, Admits admits) {
  ClusterView view;
  for (const auto& [name, worker] : fleet.workers) {
    if (worker.session == 0 || IsDraining(worker, fleet)) continue;
    for (const v1::Device& device : worker.hello.devices()) {
      if (!device.condemned().empty()) continue;
      const auto lease = fleet.leases.find({name, device.index()});
      if (!admits(lease == fleet.leases.end() ? nullptr : &lease->second)) continue;
      view.free_devices.push_back({name, worker.hello.host(), worker.hello.island(), device});
    }
  }
  return view;
}

}  // namespace

ClusterView ListDevices(const Fleet& fleet, bool free_only) {
  return DevicesWhere(fleet,
                      [&](const v1::LeaseRecord* lease) { return !free_only || lease == nullptr; });
}

ClusterView ListDevicesFor(const Fleet& fleet, const std::string& job) {
  return DevicesWhere(
      fleet, [&](const v1::LeaseRecord* lease) { return lease == nullptr || lease->job() == job; });
}

bool HoldsDevices(const Fleet& fleet, const std::string& job) {
  return std::any_of(fleet.leases.begin(), fleet.leases.end(), [&](const auto& lease) {
    const Worker* const worker = FindWorker(lease.first.first, fleet);
    return lease.second.job() == job && worker != nullptr && worker->session != 0;
  });
}

void LeaseDevices(const v1::Plan& plan, const std::string& job, uint64_t group_epoch, Fleet* fleet,
                  CatalogBatch* writes) {
  for (const v1::RankPlacement& placement : plan.ranks()) {
    const Worker* const worker = FindWorker(placement.worker(), *fleet);
    TROUPE_CHECK(worker != nullptr && worker->session != 0, "rank {} is placed on absent worker {}",
                 placement.rank(), placement.worker());
    v1::LeaseRecord lease;
    lease.set_job(job);
    lease.set_group_epoch(group_epoch);
    lease.set_rank(placement.rank());
    lease.set_incarnation(worker->incarnation);
    lease.set_life_key_digest(worker->life_key_digest);
    writes->PutLease(placement.worker(), placement.device(), lease);
    const bool added =
        fleet->leases.emplace(LeaseKey(placement.worker(), placement.device()), std::move(lease))
            .second;
    TROUPE_CHECK(added, "device {} of {} is leased twice", placement.device(), placement.worker());
  }
}

bool ReleaseRank(const std::string& worker, const std::string& job, uint64_t group_epoch,
                 int32_t rank, Fleet* fleet, CatalogBatch* writes) {
  for (auto lease = fleet->leases.lower_bound({worker, 0});
       lease != fleet->leases.end() && lease->first.first == worker; ++lease) {
    const v1::LeaseRecord& record = lease->second;
    if (record.job() == job && record.group_epoch() == group_epoch && record.rank() == rank) {
      writes->DeleteLease(lease->first.first, lease->first.second);
      fleet->leases.erase(lease);
      return true;
    }
  }
  return false;
}

std::vector<v1::LeaseRecord> ReleaseNotHeld(const std::string& worker, const v1::Hello& hello,
                                            Fleet* fleet, CatalogBatch* writes) {
  std::vector<v1::LeaseRecord> released;
  for (auto lease = fleet->leases.lower_bound({worker, 0});
       lease != fleet->leases.end() && lease->first.first == worker;) {
    const v1::LeaseRecord& record = lease->second;
    const bool held =
        record.incarnation() == hello.incarnation() &&
        std::any_of(hello.held().begin(), hello.held().end(), [&](const v1::HeldGroup& group) {
          return group.job() == record.job() && group.group_epoch() == record.group_epoch() &&
                 std::find(group.ranks().begin(), group.ranks().end(), record.rank()) !=
                     group.ranks().end();
        });
    if (held) {
      ++lease;
      continue;
    }
    released.push_back(record);
    writes->DeleteLease(lease->first.first, lease->first.second);
    lease = fleet->leases.erase(lease);
  }
  return released;
}

std::string Shortened(const std::string& text) {
  constexpr size_t kNotedBytes = 100;
  std::string shown = text.substr(0, kNotedBytes);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return shown.size() < text.size() ? shown + "…" : shown;
}

}  // namespace troupe
