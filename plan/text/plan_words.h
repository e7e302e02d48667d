// The sentences of a plan on ownership and its warnings. Pure.
#ifndef TROUPE_PLAN_TEXT_PLAN_WORDS_H_
#define TROUPE_PLAN_TEXT_PLAN_WORDS_H_

#include <string>
#include <vector>

#include "model/blocks/config.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Lines on the part of every parameter's state of which each rank of data_shard (× expert) has one
// block of rows; none where nothing is sharded.
std::vector<std::string> ShardingLines(const v1::ParallelismSpec& parallelism);

// The owners of embedding, head, norms and tied weights, in the order in which ownership is
// established.
std::vector<std::string> OwnershipLines(const model::ModelConfig& model, const v1::Plan& plan,
                                        bool spreads_experts_over_tensor);

std::vector<std::string> WarningLines(const v1::JobSpec& spec, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_PLAN_WORDS_H_
