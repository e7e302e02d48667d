// The sentences of a plan: who owns what, and what to beware of. Pure.
#ifndef TROUPE_PLAN_PLAN_WORDS_H_
#define TROUPE_PLAN_PLAN_WORDS_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Which part of every parameter's state is a block of rows on each rank of data_shard (× expert);
// none where nothing is sharded.
std::vector<std::string> ShardingLines(const v1::ParallelismSpec& parallelism);

// Owners of embedding, head, norms and tied weights, in the order in which ownership is established.
std::vector<std::string> OwnershipLines(const model::ModelConfig& model, const v1::Plan& plan,
                                        bool spreads_experts_over_tensor);

std::vector<std::string> WarningLines(const v1::JobSpec& spec, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_PLAN_WORDS_H_
