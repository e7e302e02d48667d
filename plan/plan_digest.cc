#include "plan/plan_digest.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <map>

#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"

namespace troupe {
namespace {

constexpr DigestException kOfJob[] = {
    {"name", "a name"},
    {"priority", "it orders the queue"},
    {"model.preset", "its values are in the other keys of model"},
    {"model.from", "the initial state; its configuration is in the other keys of model"},
    {"model.initializer_range", "the initial state"},
    {"model.max_position_embeddings", "for exports only"},
    {"model.export_dtype", "for exports only"},
    {"model.export_config", "for exports only"},
    {"data.validation", "validation follows a step and is counted separately"},
    {"training.steps", "when training ends; a rate that depends on it has lr_schedule.decay_steps"},
    {"training.validation_interval", "validation follows a step and is counted separately"},
    {"training.validation_samples", "validation follows a step and is counted separately"},
    {"checkpoint",
     "steps next to a save are counted separately; initial_load is the initial state"},
    {"fault_tolerance", "what happens between steps"},
};

constexpr DigestException kOfPlan[] = {
    {"ranks.worker", "which of several equal devices; their hosts and islands are numbered"},
    {"ranks.device", "which of several equal devices"},
    {"ranks.slice_process.address", "likewise"},
    {"replication", "a result of the programs, which follow from job and layout"},
    {"traffic", "a result of the programs, which follow from job and layout"},
    {"memory", "a result of the programs, which follow from job and layout"},
    {"model_flops_per_step", "a result of the programs, which follow from job and layout"},
    {"attention_flops_per_step", "a result of the programs, which follow from job and layout"},
    {"recomputed_flops_per_step", "a result of the programs, which follow from job and layout"},
    {"parameters", "a result of the programs, which follow from job and layout"},
    {"trained_parameters", "a result of the programs, which follow from job and layout"},
    {"imbalance", "a result of the chunks"},
    {"data", "a copy of the job's data keys"},
    {"cannot_fix", "text"},
    {"warnings", "text"},
    {"ownership", "text"},
    {"schedule_choice", "text: the chosen schedule is part of the digest"},
    {"tensor_parts_choice", "text: the chosen parts are part of the digest"},
    {"device_profile", "the basis of choices, which are part of the digest themselves"},
    {"bucket_stated_for", "where numbers come from that are part of the digest themselves"},
    {"samples.version",
     "a schema with more channels changes nothing; the channels that are read are part of the "
     "digest"},
    {"digest", "the digest itself"},
};

// Replaces the names of hosts and islands by numbers in the order of their first rank: which ranks
// share one decides how messages are sent.
void NumberPlaces(v1::Plan* plan) {
  std::map<std::string, size_t> hosts, islands;
  const auto number = [](const std::string& name, std::map<std::string, size_t>& known) {
    return std::to_string(known.emplace(name, known.size()).first->second);
  };
  for (v1::RankPlacement& rank : *plan->mutable_ranks()) {
    if (rank.worker().empty()) continue;
    const std::string host = rank.host().empty() ? rank.worker() : rank.host();
    rank.set_island(number(rank.island().empty() ? host : rank.island(), islands));
    rank.set_host(number(host, hosts));
  }
}

}  // namespace

std::span<const DigestException> DigestExceptionsOfJob() { return kOfJob; }

std::span<const DigestException> DigestExceptionsOfPlan() { return kOfPlan; }

std::string PlanDigest(const v1::JobSpec& spec, const v1::Plan& plan) {
  const BucketEffects effects = BucketEffectsOf(spec);
  v1::JobSpec job = spec;
  ClearKeysWithoutEffect(&job);
  for (const DigestException& exception : kOfJob) ClearKey(exception.path, &job);
  ClearEmptyMessages(&job);
  v1::Plan part = plan;
  if (!effects.elements) ClearKey("bucket.elements", &part);
  if (!effects.alignment) ClearKey("bucket.alignment", &part);
  if (!effects.padding) ClearKey("bucket.padding", &part);
  NumberPlaces(&part);
  for (const DigestException& exception : kOfPlan) ClearKey(exception.path, &part);
  ClearEmptyMessages(&part);
  // Each part is preceded by its length, so that no two pairs give the same bytes.
  const std::string first = job.SerializeAsString();
  const std::string bytes = fmt::format("{}:", first.size()) + first + part.SerializeAsString();
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  std::string text = "sha256:";
  for (const unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace troupe
