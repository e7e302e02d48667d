// The digest of a plan: equal for two plans whose steps compute the same from the same state and
// cost the same. Everything of job and plan is part of it but for the lists below, so that a field
// that is added is part of it too. Pure.
#ifndef TROUPE_PLAN_PLAN_DIGEST_H_
#define TROUPE_PLAN_PLAN_DIGEST_H_

#include <span>
#include <string>
#include <string_view>

#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A field that is no part of the digest, all below it with it.
struct DigestException {
  std::string_view path;
  std::string_view reason;
};

std::span<const DigestException> DigestExceptionsOfJob();
std::span<const DigestException> DigestExceptionsOfPlan();

// "sha256:…". Of ranks it has which of them share a host and an island, not which those are.
// REQUIRES: defaults are applied to `spec`.
std::string PlanDigest(const v1::JobSpec& spec, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_PLAN_DIGEST_H_
