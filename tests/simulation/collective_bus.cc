#include "tests/simulation/collective_bus.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace troupe::simulation {
namespace {

constexpr Duration kMaxSkew = std::chrono::milliseconds(5);

}  // namespace

template <typename Body>
void CollectiveBus::Notify(const Member& member, Duration limit, Body body) {
  system_.Schedule(random_.Between(Duration(0), limit), [this, to = member.worker, body] {
    // NOT_FOUND: the worker is gone, and its rank with it.
    system_.Deliver(to, AnyMessage(body)).IgnoreError();
  });
}

void CollectiveBus::Join(const GroupName& name, int rank, int ranks, Address worker,
                         uint64_t number) {
  Group& group = groups_[name];
  if (group.members.empty()) group.members.resize(static_cast<size_t>(ranks));
  TROUPE_CHECK(static_cast<int>(group.members.size()) == ranks);
  Member& member = group.members[static_cast<size_t>(rank)];
  truth_.Check(!member.present, 14,
               fmt::format("rank {} of {} epoch {} exists twice", rank, name.job, name.epoch));
  member = {.present = true, .worker = worker, .number = number};
  ++group.present;
  if (group.broken) {
    Notify(member, kMaxSkew, GroupBroken{number});
  } else if (group.present == ranks) {
    for (const Member& each : group.members) Notify(each, kMaxSkew, GroupFormed{each.number});
  }
}

void CollectiveBus::Arrive(const GroupName& name, int rank, const Contribution& contribution) {
  Group& group = groups_[name];
  if (group.broken) return;
  Member& member = group.members[static_cast<size_t>(rank)];
  TROUPE_CHECK(member.present && !member.arrived);
  member.arrived = contribution;
  if (++group.arrived < static_cast<int>(group.members.size())) return;
  Word word{.step = contribution.step,
            .min_ticket_end = INT64_MAX,
            .min_highest_request = INT64_MAX,
            .all_know_intent = true};
  for (const Member& each : group.members) {
    const Contribution& one = *each.arrived;
    truth_.Check(one.step == word.step, 5,
                 fmt::format("{} epoch {}: ranks reduce steps {} and {} together", name.job,
                             name.epoch, one.step, word.step));
    word.gradient += one.gradient;
    word.min_ticket_end = std::min(word.min_ticket_end, one.ticket_end);
    word.min_highest_request = std::min(word.min_highest_request, one.highest_request);
    word.all_know_intent = word.all_know_intent && one.knows_intent;
  }
  truth_.Check(word.step <= word.min_ticket_end, 5,
               fmt::format("{} epoch {}: step {} runs, but one rank's ticket ends at {}", name.job,
                           name.epoch, word.step, word.min_ticket_end));
  group.arrived = 0;
  for (Member& each : group.members) {
    each.arrived.reset();
    Notify(each, kMaxSkew, Reduced{each.number, word});
  }
}

bool CollectiveBus::Waits(const std::string& job, uint64_t epoch, int rank) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const auto& entry) {
    const auto& [name, group] = entry;
    const auto member = static_cast<size_t>(rank);
    return name.job == job && name.epoch == epoch && member < group.members.size() &&
           group.members[member].arrived.has_value();
  });
}

void CollectiveBus::Leave(const GroupName& name, int rank, Duration limit) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return;
  Group& group = found->second;
  Member& member = group.members[static_cast<size_t>(rank)];
  if (!member.present) return;
  member.present = false;
  --group.present;
  if (!group.broken) {
    group.broken = true;
    for (const Member& each : group.members) {
      if (each.present) Notify(each, limit, GroupBroken{each.number});
    }
  }
}

}  // namespace troupe::simulation
