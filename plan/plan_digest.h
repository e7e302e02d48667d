// The digest of a plan. It is equal for two plans whose steps compute the same results from the
// same state at the same cost. It covers all fields of job and plan except the lists below, so a
// newly added field is covered too. Pure.
#ifndef TROUPE_PLAN_PLAN_DIGEST_H_
#define TROUPE_PLAN_PLAN_DIGEST_H_

#include <span>
#include <string>
#include <string_view>

#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A field that the digest leaves out, with everything below it.
struct DigestException {
  std::string_view path;
  std::string_view reason;
};

std::span<const DigestException> DigestExceptionsOfJob();
std::span<const DigestException> DigestExceptionsOfPlan();

// Returns "sha256:…". For the ranks it covers which of them share a host and an island, but not the
// names of hosts and islands. REQUIRES: defaults are applied to `spec`.
std::string PlanDigest(const v1::JobSpec& spec, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_PLAN_DIGEST_H_
