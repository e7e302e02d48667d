#include "coordinator/culprit.h"

#include <csignal>
#include <string_view>

namespace troupe {
namespace {

struct Rule {
  std::string_view cause;
  Culprit culprit;
};

constexpr Rule kRules[] = {
    // The job's numbers and its plan: wherever it is placed, the same comes of them.
    {"NONFINITE", {Charged::kAlways, Blamed::kNobody}},
    {"RESTORE_MISMATCH", {Charged::kAlways, Blamed::kNobody}},
    // A process that ended by itself: a bug of the job, or a host where it cannot run.
    {"RANK_CRASHED", {Charged::kAlways, Blamed::kHost}},
    {"RANK_FAILED", {Charged::kAlways, Blamed::kHost}},
    {"DATA", {Charged::kIfRepeated, Blamed::kHost}},
    // A driver tells of an illegal access of the job's and of a broken device in the same words.
    {"DEVICE_FAULT", {Charged::kIfRepeated, Blamed::kDevice}},
    // Its rank is the one that did not arrive (coordinator/hang_blame.h); none where nobody is
    // alone.
    {"HANG", {Charged::kIfRepeated, Blamed::kHost}},
    // It names a worker where that one alone is awaited.
    {"START_TIMEOUT", {Charged::kIfRepeated, Blamed::kHost}},
    // It does not say who: a rank that waits notices, not the one that is awaited.
    {"COLLECTIVE", {Charged::kIfRepeated, Blamed::kNobody}},
    // Hosts and their disks.
    {"WORKER_LOST", {Charged::kNever, Blamed::kHost}},
    {"RANK_LOST", {Charged::kNever, Blamed::kHost}},
    {"CHECKPOINT_FAILED", {Charged::kDelayed, Blamed::kHost}},
    {"STORAGE", {Charged::kDelayed, Blamed::kHost}},
    // The next try takes an older commit, or the same one where nobody could read it a second time.
    // Its host is blamed once another reading finds the commit whole (coordinator/doubts.h).
    {"BAD_CHECKPOINT", {Charged::kDelayed, Blamed::kNobody}},
    // The coordinator was away for longer than a ticket lives.
    {"TICKET_EXPIRED", {Charged::kNever, Blamed::kNobody}},
};

// No process sends these to itself: the kernel for want of memory, or somebody from outside.
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
