// The mix of faults of one run: which faults, how often, and the traits of its jobs and hosts.
// Drawn from the seed, so that some runs have a few of every kind and others many of a few kinds.
#ifndef TROUPE_TESTS_SIMULATION_MIX_H_
#define TROUPE_TESTS_SIMULATION_MIX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actor/sim/faults.h"
#include "coordinator/state/options.h"

namespace troupe::simulation {

// The way in which a bad host fails its ranks, in every run.
enum class HostFault {
  kNone,
  kCrash,         // its ranks die in their first steps
  kDevice,        // its device fails in their first steps
  kCannotWrite,   // it writes no shard
  kReadsWrongly,  // its reads of a commit return damaged data
  kNeverReady,    // its ranks never state an address
};

struct Mix {
  int workers = 64;
  FaultOptions::Weights weights;
  int max_leavers = 0;
  // The mean time between two faults, in detection times.
  double mean_between = 0.5;
  int longest_fault = 3;  // in detection times
  double crash_per_step = 0.001;
  double hang_per_step = 0.0002;
  double shard_failure = 0.01;
  double unreadable_commit = 0.05;
  bool corruption = false;         // a committed shard is corrupted on disk
  int bad_hosts = 0;               // they stay bad after the faults
  int lost_mounts = 0;             // times that a host loses the mount of the shared folder
  int hung_writes = 0;             // times that the writes of a host's ranks hang
  int planned_stops = 0;           // times that a worker is asked to stop
  bool drains = false;             // such a worker first has time to let its jobs move
  bool slow_saves = false;         // more requests for checkpoints, and slow writes of them
  bool short_final_saves = false;  // jobs soon fall back to images of their ranks' states
  bool private_folders = false;    // some jobs have a folder that is private to each host
  bool stranger = false;           // a worker sends answers without a request
  bool layout_changes = false;     // some jobs may change their layout
  bool small_budgets = false;      // some jobs have few restarts
  bool resumes = false;            // some jobs are resumed after their end
  bool catalog_loss = false;       // the coordinator's disk is lost once
  bool altered_requests = false;   // some request ids are reused with another job
  bool deletions = false;          // some jobs are deleted as soon as they have ended
  bool quotas = false;             // the jobs may not use all devices that they ask for at a time
  KeepEnded keep_ended;            // setting of the coordinator

  // Returns "64 workers, 2 bad hosts, …", for the story.
  std::string Text() const;
};

Mix DrawMix(uint64_t seed);

// Returns the usual faults and one trait only, by its name ("bad-hosts", "stranger"; "plain": no
// trait). Absent if there is no such trait.
std::optional<Mix> MixOf(std::string_view trait);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_MIX_H_
