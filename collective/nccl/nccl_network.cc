#include "collective/nccl/nccl_network.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace troupe {

NcclNetwork::NcclNetwork(const NcclLibrary& library, NcclDevice& device, CollectiveNetwork& host,
                         const NcclOptions& options)
    : host_(host),
      environment_{library, device, options, [this](const Status& status) { Abort(status); },
                   [this] { return this->status(); }},
      watcher_([this] { Watch(); }) {}

NcclNetwork::~NcclNetwork() {
  {
    const std::lock_guard lock(mutex_);
    TROUPE_CHECK(communicators_.empty(), "{} communicators were not destroyed before their network",
                 communicators_.size());
    ends_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

std::unique_ptr<DeviceCommunicator> NcclNetwork::Make(Communicator& group) {
  auto communicator = std::make_unique<NcclCommunicator>(
      environment_, group, [this](NcclCommunicator* ending) { Remove(ending); });
  const std::lock_guard lock(mutex_);
  communicators_.push_back(communicator.get());
  if (!status().ok()) communicator->Abort();
  return communicator;
}

void NcclNetwork::Remove(NcclCommunicator* communicator) {
  const std::lock_guard lock(mutex_);
  communicator->ledger().AddTo(&statistics_of_removed_);
  std::erase(communicators_, communicator);
}

void NcclNetwork::Abort(const Status& status) {
  {
    const std::lock_guard lock(status_mutex_);
    if (status_.ok()) status_ = status;
  }
  host_.Abort(status);
  const std::lock_guard lock(mutex_);
  if (!at_abort_) at_abort_ = {FlightsNow(), GroupsNow()};
  for (NcclCommunicator* const communicator : communicators_) communicator->Abort();
}

Status NcclNetwork::status() const {
  const std::lock_guard lock(status_mutex_);
  return status_;
}

Status NcclNetwork::Check() const {
  if (host_.aborted()) return Unavailable("the host's network was aborted");
  const std::lock_guard lock(mutex_);
  for (NcclCommunicator* const communicator : communicators_) {
    TROUPE_RETURN_IF_ERROR(communicator->Check());
  }
  return OkStatus();
}

void NcclNetwork::Watch() {
  // Ignored: without its device an abort may fail, and its own status reports that.
  environment_.device.Use().IgnoreError();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, environment_.options.watch_period, [this] { return ends_; })) {
    lock.unlock();
    if (status().ok()) {
      if (Status found = Check(); !found.ok()) Abort(found);
    }
    lock.lock();
  }
}

std::vector<DeviceCollectiveStatistics> NcclNetwork::Statistics() const {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceCollectiveStatistics> statistics = statistics_of_removed_;
  for (const NcclCommunicator* const communicator : communicators_) {
    communicator->ledger().AddTo(&statistics);
  }
  return statistics;
}

std::vector<CollectiveFlight> NcclNetwork::Flights() const {
  const std::lock_guard lock(mutex_);
  return at_abort_ ? at_abort_->flights : FlightsNow();
}

std::vector<CollectiveFlight> NcclNetwork::FlightsNow() const {
  const MonotonicTime now = std::chrono::steady_clock::now();
  std::vector<CollectiveFlight> flights;
  for (const NcclCommunicator* const communicator : communicators_) {
    flights.push_back(communicator->ledger().Flight(now));
  }
  return flights;
}

std::string NcclNetwork::GroupsNow() const {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const NcclCommunicator* const communicator : communicators_) {
    groups.push_back(communicator->ledger().ToJson());
  }
  return groups.dump();
}

std::string NcclNetwork::FlightRecorderJson() const {
  const std::lock_guard lock(mutex_);
  const std::string groups = at_abort_ ? at_abort_->groups : GroupsNow();
  const nlohmann::ordered_json json = {{"status", ToString(status())},
                                       {"groups", nlohmann::ordered_json::parse(groups)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace troupe
