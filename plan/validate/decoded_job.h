// A job with everything typed, decoded once from its JobSpec: words as enums, degrees as a mesh,
// sizes as the model's configuration, and the rules that follow from several keys. Planner, search
// and ranks read it; they take from the spec only keys that need no decoding. Pure.
#ifndef TROUPE_PLAN_VALIDATE_DECODED_JOB_H_
#define TROUPE_PLAN_VALIDATE_DECODED_JOB_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/blocks/config.h"
#include "model/optimizers/optimizer_kind.h"
#include "model/program/trained_parameters.h"
#include "plan/device/device_traits.h"
#include "plan/job/job_choices.h"
#include "plan/job/key_effects.h"
#include "plan/layout/mesh.h"
#include "plan/validate/batch.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A value; thread-safe.
struct DecodedJob {
  v1::JobSpec spec;  // defaults filled in
  JobChoices choices;
  model::ModelConfig model;
  model::TrainedParameters trained;
  model::OptimizerConfig optimizer;
  Mesh mesh;  // an absent degree is 1
  BatchGeometry batch;
  const DeviceTraits* devices = nullptr;  // not null

  // None: the job leaves the number to its schedule.
  std::optional<int> chunks_per_stage;
  bool chooses_schedule = false;  // pipeline_parallel_schedule: auto
  int tensor_parts = 1;           // 1 too where the job leaves the number to the planner
  bool recomputes_all = false;    // every layer

  // The optimizer state and, from 2 and 3 on, gradients and parameters are sharded.
  int zero_stage = 0;
  // The number of neighbouring ranks over which forward and backward gather parameters; 0: all.
  int shard_run = 0;
  // Parameters are gathered once a step and kept until its end.
  bool keeps_gathered = false;
  bool splits_rows_over_tensor = false;
  bool spreads_experts_over_tensor = false;
  BucketEffects bucket_effects;

  bool computes_in_bfloat16() const { return choices.compute_dtype == model::DType::kBFloat16; }
  // The rows of the microbatch of a rank.
  int64_t rows_per_microbatch() const {
    return batch.tokens_per_microbatch() / mesh.degree(model::Axis::kContext);
  }
  // The stage by which programs are built: parameters that are kept once gathered are gathered once
  // a step, as under ZeRO-2.
  int stage_of_programs() const { return keeps_gathered && zero_stage > 2 ? 2 : zero_stage; }
  // Whether ranks copy their state at a checkpoint and write the copy while they go on. A job that
  // states no folder gets one.
  bool SavesInBackground() const;
  // The traits of the devices that `plan`, a plan of this job, is made for.
  const DeviceTraits& DevicesOf(const v1::Plan& plan) const { return TraitsIn(plan, *devices); }
};

// INVALID_ARGUMENT where the pattern does not parse, the job has too many ranks, or its globs train
// what the model does not have. REQUIRES:
// ValidateKeys accepts `spec`, its defaults are filled in.
StatusOr<DecodedJob> DecodeJob(v1::JobSpec spec);

// The model of a job; INVALID_ARGUMENT where the pattern does not parse. REQUIRES: defaults are
// filled in.
StatusOr<model::ModelConfig> MakeModelConfig(const v1::ModelSpec& spec);

// A list of globs over tensors' names, as model/ takes it.
std::vector<std::string> GlobsOf(const google::protobuf::RepeatedPtrField<std::string>& globs);

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_DECODED_JOB_H_
