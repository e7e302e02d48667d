#include "coordinator/state/blame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {
namespace {

// Weight of a single fault after two half-lives.
constexpr double kSuspectWeight = 0.25;
// Faults of less weight are forgotten.
constexpr double kLeastWeight = 1.0 / 64;
constexpr double kOfDeviceOnHost = 0.5;
constexpr size_t kMostFaults = 16;
constexpr size_t kReasonFaults = 3;

double Decayed(const HostFault& fault, MonotonicTime now, Duration half_life) {
  return fault.weight * std::exp2(-ToSeconds(now - fault.time) / ToSeconds(half_life));
}

// Returns the texts of the newest faults of the device or host, newest first.
std::string ReasonFor(const HostBlame& blame, int device) {
  std::vector<std::string> texts;
  for (auto fault = blame.faults.rbegin(); fault != blame.faults.rend(); ++fault) {
    if (device != kWholeHost && fault->device != device) continue;
    if (texts.size() < kReasonFaults)
      texts.push_back(fmt::format("{} (job {})", fault->text, fault->job));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

bool HasPart(const HostBlame& blame, int device) {
  return std::any_of(blame.set_aside.begin(), blame.set_aside.end(),
                     [device](const SetAside& part) { return part.device == device; });
}

void SetBurnInTime(Duration wait, MonotonicTime now, int64_t wall_ns, SetAside* part) {
  part->wait = wait;
  part->burn_in_time = now + wait;
  part->burn_in_wall_ns =
      wall_ns + std::chrono::duration_cast<std::chrono::nanoseconds>(wait).count();
}

Duration NextWait(Duration last, const TimeLimits& limits) {
  return last == Duration{} ? limits.set_aside : std::min(2 * last, limits.set_aside_limit);
}

}  // namespace

double WeightOf(const HostBlame& blame, int device, MonotonicTime now, Duration half_life) {
  double sum = 0;
  for (const HostFault& fault : blame.faults) {
    const double weight = Decayed(fault, now, half_life);
    if (fault.device == device) {
      sum += weight;
    } else if (device == kWholeHost) {
      sum += kOfDeviceOnHost * weight;
    }
  }
  return sum;
}

bool IsSetAside(const HostBlame& blame, int device) {
  return HasPart(blame, device) || HasPart(blame, kWholeHost);
}

Standing StandingOf(const BlameBook& book, const std::string& worker, int device, MonotonicTime now,
                    Duration half_life) {
  const auto found = book.find(worker);
  if (found == book.end()) return Standing::kClean;
  const HostBlame& blame = found->second;
  if (IsSetAside(blame, device)) return Standing::kSetAside;
  const bool weighs = WeightOf(blame, device, now, half_life) >= kSuspectWeight ||
                      WeightOf(blame, kWholeHost, now, half_life) >= kSuspectWeight;
  return weighs ? Standing::kSuspect : Standing::kClean;
}

std::vector<std::string> LayFault(const std::string& worker, HostFault fault,
                                  const TimeLimits& limits, int64_t wall_ns, BlameBook* book) {
  HostBlame& blame = (*book)[worker];
  const MonotonicTime now = fault.time;
  const int device = fault.device;
  if (HasDecayed(blame, now, limits.blame_half_life)) blame = {};
  blame.faults.push_back(std::move(fault));
  while (blame.faults.size() > kMostFaults) blame.faults.pop_front();
  std::vector<std::string> added;
  for (const int part : std::vector<int>{device, kWholeHost}) {
    const double weight = WeightOf(blame, part, now, limits.blame_half_life);
    if (weight < kSetAsideWeight || HasPart(blame, part)) continue;
    SetAside& aside = blame.set_aside.emplace_back();
    aside.device = part;
    aside.reason = ReasonFor(blame, part);
    aside.since_wall_ns = wall_ns;
    blame.last_wait = NextWait(blame.last_wait, limits);
    SetBurnInTime(blame.last_wait, now, wall_ns, &aside);
    added.push_back(part == kWholeHost ? worker : fmt::format("device {} of {}", part, worker));
  }
  return added;
}

std::vector<std::string> WithdrawFaults(const std::string& job, const TimeLimits& limits,
                                        MonotonicTime now, BlameBook* book) {
  std::vector<std::string> changed;
  for (auto& [worker, blame] : *book) {
    const size_t before = blame.faults.size();
    std::erase_if(blame.faults, [&](const HostFault& fault) { return fault.job == job; });
    if (blame.faults.size() == before) continue;
    changed.push_back(worker);
    std::erase_if(blame.set_aside, [&, &host = blame](const SetAside& part) {
      return WeightOf(host, part.device, now, limits.blame_half_life) < kSetAsideWeight;
    });
  }
  return changed;
}

std::set<std::string> FoldersToTry(const HostBlame& blame, MonotonicTime now, Duration half_life) {
  std::set<std::string> folders;
  for (const HostFault& fault : blame.faults) {
    const bool counts = !fault.folder.empty() && Decayed(fault, now, half_life) >= kLeastWeight;
    if (counts) folders.insert(fault.folder);
  }
  return folders;
}

void LiftSetAside(HostBlame* blame) {
  blame->set_aside.clear();
  blame->burn_in = 0;
}

void PostponeBurnIn(const std::string& reason, const TimeLimits& limits, MonotonicTime now,
                    int64_t wall_ns, HostBlame* blame) {
  blame->burn_in = 0;
  blame->last_wait = NextWait(blame->last_wait, limits);
  for (SetAside& part : blame->set_aside) {
    part.reason = reason;
    SetBurnInTime(blame->last_wait, now, wall_ns, &part);
  }
}

bool HasDecayed(const HostBlame& blame, MonotonicTime now, Duration half_life) {
  return blame.set_aside.empty() &&
         std::all_of(blame.faults.begin(), blame.faults.end(), [&](const HostFault& fault) {
           return Decayed(fault, now, half_life) < kLeastWeight;
         });
}

v1::BlameRecord ToRecord(const std::string& worker, const HostBlame& blame, MonotonicTime now,
                         Duration half_life) {
  v1::BlameRecord record;
  record.set_worker(worker);
  for (const HostFault& fault : blame.faults) {
    v1::HostFaultRecord& row = *record.add_faults();
    row.set_job(fault.job);
    row.set_device(fault.device);
    row.set_weight(Decayed(fault, now, half_life));
    row.set_text(fault.text);
    row.set_folder(fault.folder);
  }
  for (const SetAside& part : blame.set_aside) {
    v1::SetAsideRecord& row = *record.add_set_aside();
    row.set_device(part.device);
    row.set_reason(part.reason);
    row.set_since_wall_time_ns(part.since_wall_ns);
    row.set_burn_in_wall_time_ns(part.burn_in_wall_ns);
    row.set_wait_seconds(ToSeconds(part.wait));
  }
  return record;
}

HostBlame FromRecord(const v1::BlameRecord& record, MonotonicTime now) {
  HostBlame blame;
  for (const v1::HostFaultRecord& row : record.faults()) {
    blame.faults.push_back({row.job(), row.device(), row.weight(), now, row.text(), row.folder()});
  }
  for (const v1::SetAsideRecord& row : record.set_aside()) {
    const Duration wait = FromSeconds(row.wait_seconds());
    blame.set_aside.push_back({row.device(), row.reason(), row.since_wall_time_ns(), now + wait,
                               row.burn_in_wall_time_ns(), wait});
    blame.last_wait = std::max(blame.last_wait, wait);
  }
  return blame;
}

}  // namespace troupe
