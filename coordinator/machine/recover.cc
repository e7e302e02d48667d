// Restores a starting coordinator's state from the catalog.
#include <algorithm>
#include <utility>

#include "coordinator/job/images.h"
#include "coordinator/job/job_creation.h"
#include "coordinator/machine/job_removal.h"
#include "coordinator/machine/machine.h"
#include "coordinator/state/job_state.h"

namespace troupe {

CoordinatorState Recover(CoordinatorOptions options, const CatalogImage& image,
                         uint64_t leader_epoch, MonotonicTime now) {
  CoordinatorState state;
  state.options = std::move(options);
  state.keep_ended_time = now;
  state.drains_time = now + state.options.limits.reconnect_grace;  // workers come back first
  state.leader_epoch = leader_epoch;
  state.epoch_floor = image.epoch_floor;
  state.fleet.leases = image.leases;
  state.requests = image.requests;
  state.request_digests = image.request_digests;
  state.used_requests = image.used_requests;
  // Burn-in answers to a former leader do not count for this one.
  state.fleet.last_burn_in = leader_epoch << 32;
  for (const auto& [worker, record] : image.blame) {
    state.fleet.blame[worker] = FromRecord(record, now);
  }
  state.fleet.drains = image.drains;
  // A worker that never comes back is forgotten like any other, together with its leases. Until
  // then, only the life that holds them can open a stream under its incarnation.
  for (const auto& [key, lease] : image.leases) {
    Worker& worker = state.fleet.workers[key.first];
    worker.name = key.first;
    if (lease.incarnation() < worker.incarnation) continue;
    // A life may have leases of an older coordinator too, which did not keep the digest.
    if (lease.incarnation() > worker.incarnation || worker.life_key_digest.empty())
      worker.life_key_digest = lease.life_key_digest();
    worker.incarnation = lease.incarnation();
    worker.last_message = now;
    worker.lost = true;
  }
  for (const auto& [id, stored] : image.jobs) {
    Job job = RecoverJob(stored.record, stored.spec, stored.plan, stored.group, stored.checkpoints,
                         state.options.limits, now);
    job.tally = stored.tally;
    job.data = stored.data;
    job.images = stored.images;
    job.smaller = stored.smaller;
    if (stored.last_step) job.last_loss = StepLossOf(*stored.last_step);
    BeginToLookForImages(job, now);
    state.last_sequence = std::max(state.last_sequence, job.record.sequence());
    state.index.Update(job, state.options.limits);
    AdoptRemoval(job, now, state);
    state.jobs.emplace(id, std::move(job));
  }
  return state;
}

}  // namespace troupe
