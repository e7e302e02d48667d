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
    {"priority", "orders the queue"},
    {"model.preset", "its values are in the other keys of model"},
    {"model.from", "the state to begin with; its configuration is in the other keys of model"},
    {"model.max_position_embeddings", "for exports alone"},
    {"model.export_dtype", "for exports alone"},
    {"model.export_config", "for exports alone"},
    {"data.validation", "validation comes after a step, which is counted apart"},
    {"training.steps", "when training ends; a rate that depends on it has lr_schedule.decay_steps"},
    {"training.validation_interval", "validation comes after a step, which is counted apart"},
    {"training.validation_samples", "validation comes after a step, which is counted apart"},
    {"checkpoint",
     "steps next to a save are counted apart; initial_load is the state to begin with"},
    {"fault_tolerance", "what happens between steps"},
};

constexpr DigestException kOfPlan[] = {
    {"ranks.worker", "which of several like devices; their hosts and islands are numbered"},
    {"ranks.device", "which of several like devices"},
    {"replication", "a figure of the programs, which follow from job and layout"},
    {"traffic", "a figure of the programs, which follow from job and layout"},
    {"memory", "a figure of the programs, which follow from job and layout"},
    {"model_flops_per_step", "a figure of the programs, which follow from job and layout"},
    {"attention_flops_per_step", "a figure of the programs, which follow from job and layout"},
    {"recomputed_flops_per_step", "a figure of the programs, which follow from job and layout"},
    {"parameters", "a figure of the programs, which follow from job and layout"},
    {"imbalance", "a figure of the chunks"},
    {"data", "data of the job, in other words"},
    {"cannot_fix", "text"},
    {"warnings", "text"},
    {"ownership", "text"},
    {"schedule_choice", "text: the schedule that was chosen is part of the digest"},
    {"tensor_parts_choice", "text: the parts that were chosen are part of the digest"},
    {"device_profile", "what choices were made by; they are part of the digest themselves"},
    {"samples.version",
     "a schema that knows more changes nothing; the channels are part of the digest"},
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
  v1::JobSpec job = spec;
  ClearKeysWithoutEffect(&job);
  for (const DigestException& exception : kOfJob) ClearKey(exception.path, &job);
  ClearEmptyMessages(&job);
  v1::Plan part = plan;
  for (const char* key : {"bucket.elements", "bucket.alignment", "bucket.padding"}) {
    if (!WhyWithoutEffect(spec, fmt::format("parallelism.{}", key)).empty()) ClearKey(key, &part);
  }
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
