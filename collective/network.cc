#include "collective/network.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/log.h"
#include "collective/engine.h"
#include "collective/group.h"
#include "collective/handshake.h"
#include "collective/transport.h"

namespace troupe {
namespace {

constexpr int kRanksMax = 1 << 16;  // a tag has 16 bits for the sender
constexpr Duration kDestructionLimit = std::chrono::seconds(2);

// FNV-1a over the properties of the group that all members know.
uint32_t TagPrefix(const collective_internal::Group& group) {
  uint32_t value = 0x811c9dc5u;
  const auto add = [&value](std::string_view text) {
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x01000193u;
    value = (value ^ 0xFFu) * 0x01000193u;
  };
  add(group.axis);
  add(group.name);
  for (const int rank : group.global_ranks) add(std::to_string(rank));
  return value == 0 ? 1 : value;
}

}  // namespace

CollectiveNetwork::CollectiveNetwork(const NetworkOptions& options)
    : options_(options),
      seals_(options.ranks),
      connected_(static_cast<size_t>(options.ranks), false) {}

StatusOr<std::unique_ptr<CollectiveNetwork>> CollectiveNetwork::Make(
    const NetworkOptions& options, std::unique_ptr<Transport> transport) {
  if (options.ranks < 1 || options.ranks > kRanksMax) {
    return InvalidArgument("ranks is {}, must be from 1 to {}", options.ranks, kRanksMax);
  }
  if (options.rank < 0 || options.rank >= options.ranks) {
    return InvalidArgument("rank {} is not in [0, ranks {})", options.rank, options.ranks);
  }
  if (options.hang_limit <= Duration::zero()) {
    return InvalidArgument("hang_limit is {} s, must be above 0", ToSeconds(options.hang_limit));
  }
  if (options.ranks_on_host < 1 || options.cores_on_host < 1) {
    return InvalidArgument("ranks_on_host is {} and cores_on_host {}, both must be at least 1",
                           options.ranks_on_host, options.cores_on_host);
  }
  if (!options.islands.empty() && options.islands.size() != static_cast<size_t>(options.ranks)) {
    return InvalidArgument("{} islands for {} ranks", options.islands.size(), options.ranks);
  }
  if (options.recorded_operations < 1) {
    return InvalidArgument("recorded_operations is {}, must be at least 1",
                           options.recorded_operations);
  }
  std::unique_ptr<CollectiveNetwork> network(new CollectiveNetwork(options));
  network->engine_ = std::make_unique<collective_internal::Engine>(options, std::move(transport));
  return network;
}

CollectiveNetwork::~CollectiveNetwork() {
  if (const Status status = Close(kDestructionLimit); !status.ok()) {
    LogError("collective", "the network of rank {} could not be closed: {}", options_.rank,
             ToString(status));
  }
}

const std::string& CollectiveNetwork::address() const { return engine_->address(); }

StatusOr<Communicator*> CollectiveNetwork::MakeCommunicator(const std::string& axis,
                                                            Purpose purpose,
                                                            const std::vector<int>& global_ranks,
                                                            const std::string& name) {
  std::set<int> seen;
  for (const int rank : global_ranks) {
    if (rank < 0 || rank >= options_.ranks) {
      return InvalidArgument("group {}: rank {} is not in [0, {})", name, rank, options_.ranks);
    }
    if (!seen.insert(rank).second)
      return InvalidArgument("group {}: rank {} appears twice", name, rank);
    if (connect_called_ && rank != options_.rank && !connected_[static_cast<size_t>(rank)]) {
      return FailedPrecondition("group {}: rank {} is in no group that was made before Connect",
                                name, rank);
    }
  }
  const auto own = std::find(global_ranks.begin(), global_ranks.end(), options_.rank);
  if (own == global_ranks.end())
    return InvalidArgument("group {}: rank {} is not in it", name, options_.rank);

  auto group = std::make_unique<collective_internal::Group>(
      axis, name, purpose, global_ranks, static_cast<int>(own - global_ranks.begin()));
  group->scope = ScopeOf(options_.islands, global_ranks);
  group->seals = &seals_;
  group->tag_prefix = TagPrefix(*group);
  for (const auto& [prefix, other] : tag_prefixes_) {
    if (other == name) return InvalidArgument("group {}: the name is in use", name);
    // Members of both groups detect the collision, so all of them fail identically.
    if (prefix == group->tag_prefix)
      return InvalidArgument("group {}: choose another name: its tag equals that of group {}", name,
                             other);
  }
  tag_prefixes_.emplace_back(group->tag_prefix, name);
  groups_.push_back(group.get());
  communicators_.push_back(std::make_unique<Communicator>(engine_.get(), std::move(group)));
  return communicators_.back().get();
}

Status CollectiveNetwork::Connect(const std::vector<std::string>& addresses, Duration limit) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + limit;
  if (connect_called_) return FailedPrecondition("Connect was already called");
  connect_called_ = true;
  if (addresses.size() != static_cast<size_t>(options_.ranks)) {
    return InvalidArgument("{} addresses for {} ranks", addresses.size(), options_.ranks);
  }
  std::set<int> peers;
  for (const collective_internal::Group* group : groups_) {
    peers.insert(group->global_ranks.begin(), group->global_ranks.end());
  }
  peers.erase(options_.rank);
  handshake_ = std::make_unique<collective_internal::Handshake>(
      options_, std::vector<int>(peers.begin(), peers.end()));
  bool reached = false;
  const auto advance = [&](Transport& transport) -> StatusOr<bool> {
    if (!reached) {
      for (const int rank : peers) {
        TROUPE_RETURN_IF_ERROR(
            Annotate(transport.Connect(rank, addresses[static_cast<size_t>(rank)]),
                     fmt::format("rank {}", rank)));
      }
      reached = true;
    }
    TROUPE_ASSIGN_OR_RETURN(const bool proved, handshake_->Advance(transport));
    if (!proved) return false;
    seals_ = handshake_->Seals();
    for (const int rank : peers) links_[rank] = transport.LinkTo(rank);
    return true;
  };
  Status status = engine_->Drive(advance, deadline);
  if (status.code() == StatusCode::kDeadlineExceeded) {
    status = DeadlineExceeded(
        "rank {} did not complete the handshake of group epoch {} within {:.3f} s",
        fmt::join(handshake_->Unproved(), ", "), options_.group_epoch, ToSeconds(limit));
  }
  if (!status.ok()) {
    engine_->Abort(status);
    return status;
  }
  for (const int rank : peers) connected_[static_cast<size_t>(rank)] = true;
  engine_->Open();
  return OkStatus();
}

void CollectiveNetwork::SetSpinning(bool spins) { engine_->SetSpinning(spins); }

void CollectiveNetwork::Abort(Status status) { engine_->Abort(std::move(status)); }

bool CollectiveNetwork::aborted() const { return engine_->aborted(); }

Status CollectiveNetwork::status() const { return engine_->abort_status(); }

std::set<int> CollectiveNetwork::UnreachedRanks() const {
  std::set<int> ranks = engine_->UnreachedRanks();
  if (handshake_) {
    const std::vector<int> unreached = handshake_->Unreached();
    ranks.insert(unreached.begin(), unreached.end());
  }
  return ranks;
}

Status CollectiveNetwork::Close(Duration limit) { return engine_->Close(limit); }

std::string CollectiveNetwork::FlightRecorderJson(std::string_view device) const {
  return engine_->FlightRecorderJson(device);
}

std::vector<CollectiveStatistics> CollectiveNetwork::Statistics() const {
  std::vector<CollectiveStatistics> statistics;
  for (const collective_internal::Group* group : groups_)
    engine_->AddStatistics(*group, &statistics);
  return statistics;
}

std::vector<CollectiveFlight> CollectiveNetwork::Flights() const {
  std::vector<CollectiveFlight> flights;
  for (const collective_internal::Group* group : groups_) {
    if (group->size() > 1) flights.push_back(engine_->FlightOf(*group));
  }
  return flights;
}

std::array<PurposeSeconds, kPurposes> CollectiveNetwork::SecondsByPurpose() const {
  return engine_->SecondsByPurpose();
}

std::vector<RecordedOperation> CollectiveNetwork::RecordedOperations(bool* complete) const {
  return engine_->RecordedOperations(complete);
}

}  // namespace troupe
