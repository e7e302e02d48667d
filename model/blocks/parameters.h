// Parameters that several kinds of block use.
#ifndef TROUPE_MODEL_BLOCKS_PARAMETERS_H_
#define TROUPE_MODEL_BLOCKS_PARAMETERS_H_

#include <string>

#include "model/blocks/config.h"
#include "model/program/builder.h"

namespace troupe::model {

// Adds the weight of an RMSNorm over hidden: f[H], initially 1, Replicated on tensor. Returns the
// value that F reads.
ValueId AddNorm(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                const std::string& tensor_name);

// Several [rows, H] matrices fused along dim 0; each is a segment that is sharded separately over
// tensor in units of `unit` rows. A single matrix has no segments.
struct FusedPart {
  std::string segment;      // "q"
  std::string tensor_name;  // "model.layers.0.self_attn.q_proj.weight"
  int64_t rows = 0;
  int64_t unit = 1;
};
ValueId AddFusedColumns(ProgramBuilder& builder, const std::string& name,
                        const std::string& dim_name, int64_t hidden,
                        const std::vector<FusedPart>& parts);

// Like AddFusedColumns, for matrices of `heads` units each. REQUIRES: `heads` divides the tensor
// degree; neighbours on that axis hold and use the same head (SharedHeads).
ValueId AddSharedColumns(ProgramBuilder& builder, const std::string& name,
                         const std::string& dim_name, int64_t hidden, int64_t heads,
                         const std::vector<FusedPart>& parts);

// A row-parallel [H, columns] matrix: columns are sharded over tensor in units of `unit`.
ValueId AddRowParallel(ProgramBuilder& builder, const std::string& name,
                       const std::string& tensor_name, const std::string& dim_name, int64_t hidden,
                       int64_t columns, int64_t unit, double init_std);

// Initial standard deviation of projections that end in a residual: initializer_range /
// sqrt(2·layers), as in GPT-2 and llm.c.
double ResidualInitStd(const ModelConfig& config);

// Adds a [V, H] table sharded by vocabulary over tensor. Returns the index of the parameter.
int AddVocabularyTable(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                       const std::string& tensor_name, bool tied);
VocabAttributes VocabularySlice(const ProgramBuilder& builder, const ModelConfig& config);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_PARAMETERS_H_
