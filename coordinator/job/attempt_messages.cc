#include "coordinator/job/attempt_messages.h"

#include <google/protobuf/util/json_util.h>

#include <string>

#include "checkpoint/format/manifest.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"

namespace troupe {
namespace {

std::string SpecJson(const v1::JobSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // Cannot fail: the message has no Any, and parsing has ensured valid UTF-8.
  const auto status = google::protobuf::util::MessageToJsonString(spec, &json, options);
  return status.ok() ? json : std::string();
}

}  // namespace

bool ThenStop(const Job& job, const Attempt& attempt) {
  const v1::CheckpointRecord& record = attempt.record;
  return (!attempt.asked && record.step() == job.steps()) ||
         (record.attempt() == StopAttempt(job.record) && record.attempt() > 0);
}

v1::CheckpointIntent IntentOf(const Job& job, const Attempt& attempt) {
  v1::CheckpointIntent intent;
  intent.set_attempt(attempt.record.attempt());
  intent.set_step(attempt.asked ? 0 : attempt.record.step());
  intent.set_path(attempt.record.path());
  intent.set_then_stop(ThenStop(job, attempt));
  intent.set_folder_id(attempt.record.folder_id());
  return intent;
}

v1::CoordinatorMessage RequestOf(const Job& job, const Attempt& attempt) {
  v1::CoordinatorMessage message;
  v1::CheckpointRequest* const request = message.mutable_checkpoint_request();
  request->set_job(job.id());
  request->set_group_epoch(job.group->epoch);
  *request->mutable_intent() = IntentOf(job, attempt);
  return message;
}

v1::CheckpointManifest ManifestOf(const Job& job, const Attempt& attempt) {
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  manifest.set_job(job.id());
  manifest.set_attempt(attempt.record.attempt());
  manifest.set_group_epoch(attempt.record.group_epoch());
  *manifest.mutable_state() = attempt.votes.begin()->second.state();
  *manifest.mutable_layout() = job.plan.mesh();
  manifest.set_plan_digest(job.plan.digest());
  if (job.plan.has_samples()) *manifest.mutable_samples() = job.plan.samples();
  if (job.data.has_value() && job.data->has_base()) *manifest.mutable_base() = job.data->base();
  for (const auto& [rank, vote] : attempt.votes) {
    for (const v1::ShardFile& shard : vote.shards()) *manifest.add_shards() = shard;
  }
  manifest.set_job_spec_json(SpecJson(job.spec));
  manifest.set_wall_time_ns(attempt.record.intent_wall_time_ns());
  manifest.set_job_create_wall_time_ns(job.record.create_wall_time_ns());
  return manifest;
}

v1::CoordinatorMessage FinalizedOf(const Job& job, uint64_t group_epoch, int64_t attempt,
                                   bool committed) {
  v1::CoordinatorMessage message;
  v1::CheckpointFinalized* const finalized = message.mutable_checkpoint_finalized();
  finalized->set_job(job.id());
  finalized->set_group_epoch(group_epoch);
  finalized->set_attempt(attempt);
  finalized->set_committed(committed);
  return message;
}

}  // namespace troupe
