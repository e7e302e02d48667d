// Parameters that several blocks have.
#ifndef TROUPE_MODEL_BLOCKS_PARAMETERS_H_
#define TROUPE_MODEL_BLOCKS_PARAMETERS_H_

#include <string>

#include "model/config.h"
#include "model/program/builder.h"

namespace troupe::model {

// Standard deviation of initial weights, unless they end in a residual.
inline constexpr double kInitStd = 0.02;

// Weights of an RMSNorm over hidden: f[H], all 1 at first, Replicated on tensor. Returns what F
// reads of it.
ValueId AddNorm(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                const std::string& tensor_name);

// Several [rows, H] matrices fused along dim 0, each a segment sharded by itself over tensor in
// units of `unit` rows. One alone has no segments.
struct FusedPart {
  std::string segment;      // "q"
  std::string tensor_name;  // "model.layers.0.self_attn.q_proj.weight"
  int64_t rows = 0;
  int64_t unit = 1;
};
ValueId AddFusedColumns(ProgramBuilder& builder, const std::string& name,
                        const std::string& dim_name, int64_t hidden,
                        const std::vector<FusedPart>& parts);

// The same of matrices of `heads` units each, a divisor of the tensor degree: neighbours on that axis hold and use one
// head alike (SharedHeads).
ValueId AddSharedColumns(ProgramBuilder& builder, const std::string& name,
                         const std::string& dim_name, int64_t hidden, int64_t heads,
                         const std::vector<FusedPart>& parts);

// A row-parallel [H, columns] matrix: columns sharded over tensor in units of `unit`.
ValueId AddRowParallel(ProgramBuilder& builder, const std::string& name,
                       const std::string& tensor_name, const std::string& dim_name, int64_t hidden,
                       int64_t columns, int64_t unit, double init_std);

// Standard deviation at first of projections that end in a residual: 0.02 / sqrt(2·layers), as
// GPT-2 and llm.c do.
double ResidualInitStd(const ModelConfig& config);

// A [V, H] table by vocabulary, sharded over tensor. Returns the index of the parameter.
int AddVocabularyTable(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                       const std::string& tensor_name, bool tied);
VocabAttributes VocabularySlice(const ProgramBuilder& builder, const ModelConfig& config);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_PARAMETERS_H_
