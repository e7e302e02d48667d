// Describes, for the job's receipt, the types, kernels and settings that a rank computes with. Pure
// except that it reads its arguments.
#ifndef TROUPE_WORKER_RANK_RANK_ENVIRONMENT_H_
#define TROUPE_WORKER_RANK_RANK_ENVIRONMENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/compilation.h"
#include "kernels/backend/executed_matmuls.h"
#include "model/program/program.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Returns the settings in `environment` (a process environment: strings NAME=VALUE, the last one
// null) that change how kernels compute or collectives run, sorted.
std::vector<std::string> ComputeFlags(const char* const* environment);

// Returns the types in which the matmuls of `program` were multiplied, as its backend reports them:
// "float32", "bfloat16 matmuls, float32 accumulators", or both with their counts. float8 is listed
// by operation and format, with the number of matmuls multiplied in another type than the program
// asks for ("… multiplied as bfloat16").
std::string MatmulPrecision(const model::Program& program,
                            const std::vector<kernels::ExecutedMatmul>& matmuls);

// The fall-back line of a rank whose daemon does not know the ranks of the host's other daemons,
// which may compute on the same cores. `fault` is the reason.
std::string CoreFallback(const std::string& fault);

// Counts `lines`, each "OPERATION WHERE: WHY", by their first word; sorted.
std::vector<v1::OperationCount> CountFallbacks(const std::vector<std::string>& lines);

// The message of a backend's compilation.
v1::Compilation CompilationToProto(const kernels::Compilation& compilation);

// Writes all of the above into `environment`, and that one program was prepared.
void DescribeProgram(const model::Program& program,
                     const std::vector<kernels::ExecutedMatmul>& matmuls,
                     const std::vector<std::string>& fallbacks,
                     const char* const* process_environment, v1::RankEnvironment* environment);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_ENVIRONMENT_H_
