#include "worker/session/core_division.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

namespace troupe::session {
namespace {

using JobKey = std::tuple<std::string, std::string, uint64_t>;  // cluster, job, group epoch

JobKey KeyOf(const v1::CoreClaim& claim) {
  return {claim.cluster(), claim.job(), claim.group_epoch()};
}

// Indices of `demands`: the oldest job first, its ranks in order.
std::vector<size_t> InOrder(const std::vector<CoreDemand>& demands) {
  std::map<JobKey, uint64_t> begin;  // of a job: that of its earliest rank
  for (const CoreDemand& demand : demands) {
    const auto [job, added] = begin.emplace(KeyOf(demand.claim), demand.claim.begin_ns());
    job->second = std::min<uint64_t>(job->second, demand.claim.begin_ns());
  }
  const auto key = [&](size_t index) {
    const v1::CoreClaim& claim = demands[index].claim;
    const JobKey job = KeyOf(claim);
    return std::make_tuple(begin.at(job), job, claim.rank());
  };
  std::vector<size_t> order(demands.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

// The cores of `host` as far as they are allowed; none of them empty.
std::vector<Core> AllowedPart(const std::vector<Core>& host, const std::vector<int>& allowed) {
  std::vector<Core> cores;
  for (const Core& core : host) {
    Core part;
    for (const int thread : core) {
      if (std::binary_search(allowed.begin(), allowed.end(), thread)) part.push_back(thread);
    }
    if (!part.empty()) cores.push_back(std::move(part));
  }
  return cores;
}

// How many of `cores` cores each rank gets. REQUIRES: 1 <= threads.size() <= cores.
std::vector<size_t> Shares(const std::vector<int>& threads, size_t cores) {
  std::vector<size_t> shares(threads.size(), 1);
  for (size_t left = cores - threads.size(); left > 0; --left) {
    size_t most = 0;
    for (size_t i = 1; i < threads.size(); ++i) {
      // threads[i] / shares[i] > threads[most] / shares[most]
      if (static_cast<size_t>(threads[i]) * shares[most] >
          static_cast<size_t>(threads[most]) * shares[i]) {
        most = i;
      }
    }
    ++shares[most];
  }
  return shares;
}

void Add(const Core& core, v1::CoreSet* set) {
  for (const int thread : core) set->add_cores(thread);
  std::sort(set->mutable_cores()->begin(), set->mutable_cores()->end());
}

// Into sets[members[i]], of `cores`. threads: of the members.
void DivideAmong(const std::vector<size_t>& members, const std::vector<int>& threads,
                 const std::vector<Core>& cores, std::vector<v1::CoreSet>* sets) {
  if (cores.empty()) return;
  if (members.size() <= cores.size()) {
    const std::vector<size_t> shares = Shares(threads, cores.size());
    size_t next = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      for (size_t taken = 0; taken < shares[i]; ++taken) Add(cores[next++], &(*sets)[members[i]]);
    }
    return;
  }
  std::vector<int> load(cores.size(), 0);
  for (size_t i = 0; i < members.size(); ++i) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += threads[i];
    Add(cores[static_cast<size_t>(least - load.begin())], &(*sets)[members[i]]);
  }
}

bool Overlap(const v1::CoreSet& a, const v1::CoreSet& b) {
  return std::find_first_of(a.cores().begin(), a.cores().end(), b.cores().begin(),
                            b.cores().end()) != a.cores().end();
}

}  // namespace

std::vector<v1::CoreSet> DivideCores(const std::vector<CoreDemand>& demands,
                                     const std::vector<Core>& host) {
  std::vector<v1::CoreSet> sets(demands.size());
  std::map<std::vector<int>, std::vector<size_t>> classes;  // by what is allowed
  for (const size_t index : InOrder(demands)) classes[demands[index].allowed].push_back(index);
  for (const auto& [allowed, members] : classes) {
    std::vector<int> threads;
    for (const size_t index : members)
      threads.push_back(std::max(1, demands[index].claim.threads()));
    DivideAmong(members, threads, AllowedPart(host, allowed), &sets);
  }
  for (v1::CoreSet& set : sets) {
    const auto sharing = std::count_if(
        sets.begin(), sets.end(), [&set](const v1::CoreSet& other) { return Overlap(set, other); });
    set.set_shared_by(static_cast<int32_t>(sharing));
  }
  return sets;
}

}  // namespace troupe::session
