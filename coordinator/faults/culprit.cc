#include "coordinator/faults/culprit.h"

#include <csignal>
#include <string_view>

#include "base/failure_cause.h"

namespace troupe {
namespace {

struct Rule {
  std::string_view cause;
  Culprit culprit;
};

constexpr Rule kRules[] = {
    // Caused by the job's values and its plan; it recurs wherever the job is placed.
    {cause::kNonfinite, {Charged::kAlways, Blamed::kNobody}},
    {cause::kRestoreMismatch, {Charged::kAlways, Blamed::kNobody}},
    {cause::kPathOutsideRoot, {Charged::kAlways, Blamed::kNobody}},
    // The process ended by itself: a bug of the job, or a host where it cannot run.
    {cause::kRankCrashed, {Charged::kAlways, Blamed::kHost}},
    {cause::kRankFailed, {Charged::kAlways, Blamed::kHost}},
    {cause::kData, {Charged::kIfRepeated, Blamed::kHost}},
    // A driver reports an illegal access by the job and a broken device in the same words.
    {cause::kDeviceFault, {Charged::kIfRepeated, Blamed::kDevice}},
    // Names the rank that did not arrive (coordinator/faults/hang_blame.h), or none if no single
    // rank can be blamed.
    {cause::kHang, {Charged::kIfRepeated, Blamed::kHost}},
    // Names a worker if only that one is awaited.
    {cause::kStartTimeout, {Charged::kIfRepeated, Blamed::kHost}},
    // The rank that reports it waits for another one. Workers with failed links are blamed by
    // LayBrokenLink (coordinator/faults/host_faults.h).
    {cause::kCollective, {Charged::kIfRepeated, Blamed::kNobody}},
    // Faults of hosts and their disks.
    {cause::kWorkerLost, {Charged::kNever, Blamed::kHost}},
    {cause::kRankLost, {Charged::kNever, Blamed::kHost}},
    // A daemon that was asked to stop has sent a Goodbye.
    {cause::kWorkerStopped, {Charged::kNever, Blamed::kNobody}},
    {cause::kCheckpointFailed, {Charged::kDelayed, Blamed::kHost}},
    {cause::kStorage, {Charged::kDelayed, Blamed::kHost}},
    {cause::kSharedMemory, {Charged::kDelayed, Blamed::kHost}},
    // All hosts share the folder.
    {cause::kFolderFull, {Charged::kDelayed, Blamed::kNobody}},
    // The next try restores an older commit, or the same one if no worker could read it again.
    // The host is blamed once another reading finds the commit intact (coordinator/job/doubts.h).
    {cause::kBadCheckpoint, {Charged::kDelayed, Blamed::kNobody}},
    // The coordinator was absent for longer than a ticket's lifetime.
    {cause::kTicketExpired, {Charged::kNever, Blamed::kNobody}},
};

// Returns whether the cause of the signal is outside the process: no process sends these to itself,
// but the kernel (out of memory; SIGBUS: mapped data can no longer be read, because their disk or
// server is gone) or an operator does.
bool IsFromOutside(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
         signal == SIGBUS;
}

}  // namespace

Culprit CulpritOf(const v1::Failure& failure) {
  if (failure.cause() == cause::kRankCrashed && IsFromOutside(failure.signal())) {
    return {Charged::kIfRepeated, Blamed::kHost};
  }
  for (const Rule& rule : kRules) {
    if (rule.cause == failure.cause()) return rule.culprit;
  }
  return {};
}

}  // namespace troupe
