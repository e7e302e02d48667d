#include "worker/session/cores.h"

#include <google/protobuf/util/message_differencer.h>

#include <set>
#include <tuple>
#include <utility>

#include "worker/session/outbox.h"

namespace troupe::session {
namespace {

using google::protobuf::util::MessageDifferencer;
using RankKey = std::tuple<std::string, std::string, uint64_t, int>;

RankKey RankKeyOf(const v1::CoreClaim& claim) {
  return {claim.cluster(), claim.job(), claim.group_epoch(), claim.rank()};
}

v1::CoreClaim ClaimOf(const State& state, const std::string& job, const Group& group, int rank) {
  v1::CoreClaim claim;
  claim.set_cluster(state.config.cluster);
  claim.set_job(job);
  claim.set_group_epoch(group.epoch);
  claim.set_rank(rank);
  claim.set_threads(group.threads);
  claim.set_begin_ns(group.begin_ns);
  return claim;
}

v1::CoreClaims OwnClaims(const State& state) {
  v1::CoreClaims own;
  own.mutable_allowed()->Assign(state.config.allowed_cores.begin(),
                                state.config.allowed_cores.end());
  for (const auto& [job, group] : state.groups) {
    for (const auto& [rank, record] : group.ranks)
      *own.add_claims() = ClaimOf(state, job, group, rank);
  }
  return own;
}

// Own claims come first, in their order.
std::vector<CoreDemand> AllDemands(const State& state, const v1::CoreClaims& own) {
  std::vector<CoreDemand> demands;
  std::set<RankKey> known;
  const auto add = [&](const v1::CoreClaim& claim, const auto& allowed) {
    if (known.insert(RankKeyOf(claim)).second)
      demands.push_back({claim, {allowed.begin(), allowed.end()}});
  };
  for (const v1::CoreClaim& claim : own.claims()) add(claim, own.allowed());
  for (const v1::CoreClaims& other : state.other_claims) {
    for (const v1::CoreClaim& claim : other.claims()) add(claim, other.allowed());
  }
  // The daemons of these ranks may not have claimed cores yet.
  for (const auto& [job, group] : state.groups) {
    if (group.ranks.empty()) continue;
    for (const int rank : group.ranks_on_host) add(ClaimOf(state, job, group, rank), own.allowed());
  }
  return demands;
}

}  // namespace

void DivideHostCores(State& state, Effects& effects) {
  state.cores_stale = false;
  if (state.config.host_cores.empty()) return;
  v1::CoreClaims own = OwnClaims(state);
  const std::vector<CoreDemand> demands = AllDemands(state, own);
  const std::vector<v1::CoreSet> sets = DivideCores(demands, state.config.host_cores);
  for (int i = 0; i < own.claims_size(); ++i) {
    const v1::CoreClaim& claim = own.claims(i);
    const v1::CoreSet& cores = sets[static_cast<size_t>(i)];
    RankRecord& record = state.groups.at(claim.job()).ranks.at(claim.rank());
    if (MessageDifferencer::Equals(record.cores, cores)) continue;
    record.cores = cores;
    const Device& device = state.devices[record.device];
    // A rank that has not begun learns its cores when it begins.
    if (device.job != claim.job() || device.group_epoch != claim.group_epoch()) continue;
    v1::RankCommand command;
    *command.mutable_cores() = cores;
    effects.push_back(SendToRank{record.device, std::move(command)});
    SendCores(state, effects, claim.job(), claim.group_epoch(), claim.rank(), cores);
  }
  if (MessageDifferencer::Equals(state.published_claims, own)) return;
  state.published_claims = own;
  effects.push_back(PublishClaims{std::move(own)});
}

}  // namespace troupe::session
