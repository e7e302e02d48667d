#include "coordinator/faults/culprit.h"

#include <csignal>
#include <string_view>

namespace troupe {
namespace {

struct Rule {
  std::string_view cause;
  Culprit culprit;
};

constexpr Rule kRules[] = {
    // Caused by the job's values and its plan; it recurs wherever the job is placed.
    {"NONFINITE", {Charged::kAlways, Blamed::kNobody}},
    {"RESTORE_MISMATCH", {Charged::kAlways, Blamed::kNobody}},
    // The process ended by itself: a bug of the job, or a host where it cannot run.
    {"RANK_CRASHED", {Charged::kAlways, Blamed::kHost}},
    {"RANK_FAILED", {Charged::kAlways, Blamed::kHost}},
    {"DATA", {Charged::kIfRepeated, Blamed::kHost}},
    // A driver reports an illegal access by the job and a broken device in the same words.
    {"DEVICE_FAULT", {Charged::kIfRepeated, Blamed::kDevice}},
    // Names the rank that did not arrive (coordinator/faults/hang_blame.h), or none if no single
    // rank can
    // be blamed.
    {"HANG", {Charged::kIfRepeated, Blamed::kHost}},
    // Names a worker if only that one is awaited.
    {"START_TIMEOUT", {Charged::kIfRepeated, Blamed::kHost}},
    // The rank that reports it waits for another one. Workers with failed links are blamed by
    // LayBrokenLink (coordinator/faults/host_faults.h).
    {"COLLECTIVE", {Charged::kIfRepeated, Blamed::kNobody}},
    // Faults of hosts and their disks.
    {"WORKER_LOST", {Charged::kNever, Blamed::kHost}},
    {"RANK_LOST", {Charged::kNever, Blamed::kHost}},
    // A daemon that was asked to stop has sent a Goodbye.
    {"WORKER_STOPPED", {Charged::kNever, Blamed::kNobody}},
    {"CHECKPOINT_FAILED", {Charged::kDelayed, Blamed::kHost}},
    {"STORAGE", {Charged::kDelayed, Blamed::kHost}},
    // The next try restores an older commit, or the same one if no worker could read it again.
    // The host is blamed once another reading finds the commit intact (coordinator/job/doubts.h).
    {"BAD_CHECKPOINT", {Charged::kDelayed, Blamed::kNobody}},
    // The coordinator was absent for longer than a ticket's lifetime.
    {"TICKET_EXPIRED", {Charged::kNever, Blamed::kNobody}},
};

// Returns whether the signal comes from outside: no process sends these to itself, but the kernel
// (out of memory) or an operator does.
bool IsFromOutside(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

}  // namespace

Culprit CulpritOf(const v1::Failure& failure) {
  if (failure.cause() == "RANK_CRASHED" && IsFromOutside(failure.signal())) {
    return {Charged::kIfRepeated, Blamed::kHost};
  }
  for (const Rule& rule : kRules) {
    if (rule.cause == failure.cause()) return rule.culprit;
  }
  return {};
}

}  // namespace troupe
