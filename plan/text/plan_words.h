// The sentences of a plan on ownership and its warnings. Pure.
#ifndef TROUPE_PLAN_TEXT_PLAN_WORDS_H_
#define TROUPE_PLAN_TEXT_PLAN_WORDS_H_

#include <string>
#include <vector>

#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Lines on the part of every parameter's state of which each rank of data_shard (× expert) has one
// block of rows; none where nothing is sharded.
std::vector<std::string> ShardingLines(const DecodedJob& job);

// The owners of embedding, head, norms and tied weights, in the order in which ownership is
// established.
std::vector<std::string> OwnershipLines(const DecodedJob& job, const v1::Plan& plan);

std::vector<std::string> WarningLines(const DecodedJob& job, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_PLAN_WORDS_H_
