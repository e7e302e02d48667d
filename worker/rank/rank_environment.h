// The means that a rank computes with, for its job's receipt. Pure but for reading what it is given.
#ifndef TROUPE_WORKER_RANK_RANK_ENVIRONMENT_H_
#define TROUPE_WORKER_RANK_RANK_ENVIRONMENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "kernels/executed_products.h"
#include "model/program/program.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// The settings of `environment` (as of a process: strings NAME=VALUE, the last one null) that change
// how kernels compute or collectives run, sorted.
std::vector<std::string> ComputeFlags(const char* const* environment);

// In which types the matmuls of `program` were multiplied, as its backend reports them: "float32",
// "bfloat16 products, float32 sums", or both with their numbers; of float8 by operation and format, and
// how many were multiplied in another type than the program asks for ("… multiplied as bfloat16").
std::string ProductPrecision(const model::Program& program,
                             const std::vector<kernels::ExecutedProduct>& products);

// The line of a rank whose daemon does not know of the ranks of the host's other daemons: they may
// compute on the same cores. `fault`: why it does not.
std::string CoreFallback(const std::string& fault);

// `lines`: "OPERATION WHERE: WHY" each. Counted by the first word, sorted.
std::vector<v1::OperationCount> CountFallbacks(const std::vector<std::string>& lines);

// All of the above into `environment`, and that one program was prepared.
void DescribeProgram(const model::Program& program,
                     const std::vector<kernels::ExecutedProduct>& products,
                     const std::vector<std::string>& fallbacks,
                     const char* const* process_environment, v1::RankEnvironment* environment);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_ENVIRONMENT_H_
