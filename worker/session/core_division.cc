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

// Returns the indices of `demands` in order: the oldest job first, its ranks in order.
std::vector<size_t> InOrder(const std::vector<CoreDemand>& demands) {
  std::map<JobKey, uint64_t> begin;  // begin of a job: that of its earliest rank
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

// The allowed part of each core of `host`; cores without allowed threads are omitted.
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

// The number of cores that each rank gets out of `cores`. REQUIRES: 1 <= threads.size() <= cores.
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

// Divides `cores` among `members`: adds the share of member i, which has threads[i] threads, to
// sets[members[i]].
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

// Divides cores among ranks with masks that overlap without being equal. As many ranks as possible
// get a core of their own, found by augmenting paths; the other ranks share.
class OverlapDivision {
 public:
  // cores[i] has the indices in `host` of the cores that member i may use.
  OverlapDivision(std::vector<std::vector<size_t>> cores, std::vector<int> threads, size_t host)
      : cores_(std::move(cores)), threads_(std::move(threads)), owner_(host, kNobody) {}

  // Returns the indices of each member's cores.
  std::vector<std::vector<size_t>> Divide() {
    std::vector<size_t> without;
    for (size_t i = 0; i < cores_.size(); ++i) {
      std::vector<bool> tried(owner_.size(), false);
      if (!Match(i, &tried)) without.push_back(i);
    }
    std::vector<std::vector<size_t>> result(cores_.size());
    std::vector<int> load(owner_.size(), 0);
    for (size_t core = 0; core < owner_.size(); ++core) {
      if (owner_[core] == kNobody) continue;
      result[owner_[core]].push_back(core);
      load[core] = threads_[owner_[core]];
    }
    for (const size_t i : without) {
      const auto least = std::min_element(cores_[i].begin(), cores_[i].end(),
                                          [&](size_t a, size_t b) { return load[a] < load[b]; });
      if (least == cores_[i].end()) continue;
      result[i].push_back(*least);
      load[*least] += threads_[i];
    }
    AssignFreeCores(&result);
    return result;
  }

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  bool Match(size_t member, std::vector<bool>* tried) {
    for (const size_t core : cores_[member]) {
      if ((*tried)[core]) continue;
      (*tried)[core] = true;
      if (owner_[core] != kNobody && !Match(owner_[core], tried)) continue;
      owner_[core] = member;
      return true;
    }
    return false;
  }

  // Gives each core without an owner to the member with the most threads per core among those that
  // may use it.
  void AssignFreeCores(std::vector<std::vector<size_t>>* result) {
    for (size_t core = 0; core < owner_.size(); ++core) {
      if (owner_[core] != kNobody) continue;
      size_t most = kNobody;
      for (size_t i = 0; i < cores_.size(); ++i) {
        if (!std::binary_search(cores_[i].begin(), cores_[i].end(), core)) continue;
        if (most == kNobody || static_cast<size_t>(threads_[i]) * (*result)[most].size() >
                                   static_cast<size_t>(threads_[most]) * (*result)[i].size()) {
          most = i;
        }
      }
      if (most != kNobody) (*result)[most].push_back(core);
    }
  }

  const std::vector<std::vector<size_t>> cores_;
  const std::vector<int> threads_;
  std::vector<size_t> owner_;
};

bool Overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

bool Overlap(const v1::CoreSet& a, const v1::CoreSet& b) {
  return std::find_first_of(a.cores().begin(), a.cores().end(), b.cores().begin(),
                            b.cores().end()) != a.cores().end();
}

// `members` are in the order of InOrder.
void DividePart(const std::vector<CoreDemand>& demands, const std::vector<size_t>& members,
                const std::vector<Core>& host, std::vector<v1::CoreSet>* sets) {
  std::vector<int> threads;
  for (const size_t index : members) threads.push_back(std::max(1, demands[index].claim.threads()));
  const std::vector<int>& first = demands[members[0]].allowed;
  const bool uniform = std::all_of(members.begin(), members.end(),
                                   [&](size_t index) { return demands[index].allowed == first; });
  if (uniform) return DivideAmong(members, threads, AllowedPart(host, first), sets);
  std::vector<std::vector<size_t>> cores(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t core = 0; core < host.size(); ++core) {
      if (Overlap(host[core], demands[members[i]].allowed)) cores[i].push_back(core);
    }
  }
  const auto divided = OverlapDivision(std::move(cores), threads, host.size()).Divide();
  for (size_t i = 0; i < members.size(); ++i) {
    for (const size_t core : divided[i]) {
      const std::vector<Core> allowed = AllowedPart({host[core]}, demands[members[i]].allowed);
      Add(allowed[0], &(*sets)[members[i]]);
    }
  }
}

}  // namespace

std::vector<v1::CoreSet> DivideCores(const std::vector<CoreDemand>& demands,
                                     const std::vector<Core>& host) {
  std::vector<v1::CoreSet> sets(demands.size());
  // Demands that have a core in common, directly or through others, are divided together.
  std::vector<std::vector<size_t>> parts;
  for (const size_t index : InOrder(demands)) {
    std::vector<size_t> joined;
    for (std::vector<size_t>& part : parts) {
      const bool meets = std::any_of(part.begin(), part.end(), [&](size_t other) {
        return Overlap(demands[other].allowed, demands[index].allowed);
      });
      if (!meets) continue;
      joined.insert(joined.end(), part.begin(), part.end());
      part.clear();
    }
    joined.push_back(index);
    std::erase_if(parts, [](const std::vector<size_t>& part) { return part.empty(); });
    parts.push_back(std::move(joined));
  }
  for (const std::vector<size_t>& members : parts) DividePart(demands, members, host, &sets);
  for (v1::CoreSet& set : sets) {
    const auto sharing = std::count_if(
        sets.begin(), sets.end(), [&set](const v1::CoreSet& other) { return Overlap(set, other); });
    set.set_shared_by(static_cast<int32_t>(sharing));
  }
  return sets;
}

}  // namespace troupe::session
