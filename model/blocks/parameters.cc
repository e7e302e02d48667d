#include "model/blocks/parameters.h"

#include <algorithm>
#include <cmath>

#include "model/blocks/pattern.h"
#include "model/program/shared_heads.h"

namespace troupe::model {
namespace {

// This rank's slice of `extent`, in whole units.
Range UnitRange(const ProgramBuilder& builder, int64_t extent, int64_t unit) {
  const Range units = builder.TensorRange(extent / unit);
  return {units.begin * unit, units.end * unit};
}

}  // namespace

double ResidualInitStd(const ModelConfig& config) {
  return config.initializer_range / std::sqrt(2.0 * std::max(1, NumLayers(config.blocks)));
}

ValueId AddNorm(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                const std::string& tensor_name) {
  const int64_t hidden = config.hidden_size;
  ParameterSpec spec;
  spec.name = name;
  spec.dims = {{"hidden", hidden, hidden}};
  spec.tensor = Replicated();
  spec.parts = {{tensor_name, {hidden}, {0}, {hidden}, 0}};
  spec.initial = {InitialValue::Kind::kOnes};
  const int index = builder.AddParameter(spec);
  builder.UseForRows(index);
  return builder.Unsharded(index);
}

namespace {

// `range_of` returns this rank's rows of a part.
template <typename RangeOf>
ValueId AddColumns(ProgramBuilder& builder, const std::string& name, const std::string& dim_name,
                   int64_t hidden, const std::vector<FusedPart>& parts, AxisPlacement tensor,
                   const RangeOf& range_of) {
  ParameterSpec spec;
  spec.name = name;
  spec.tensor = tensor;
  Dim rows = {dim_name, 0, 0};
  for (const FusedPart& part : parts) {
    const Range range = range_of(part);
    if (tensor.how == ShardHow::kSegments) {
      spec.segments.push_back({part.segment, part.rows, range.size()});
    }
    spec.parts.push_back({part.tensor_name,
                          {part.rows, hidden},
                          {range.begin, 0},
                          {range.size(), hidden},
                          rows.local});
    rows.global += part.rows;
    rows.local += range.size();
  }
  spec.dims = {rows, {"hidden", hidden, hidden}};
  spec.matrix_rows = rows.local;
  return builder.Unsharded(builder.AddParameter(spec));
}

}  // namespace

ValueId AddFusedColumns(ProgramBuilder& builder, const std::string& name,
                        const std::string& dim_name, int64_t hidden,
                        const std::vector<FusedPart>& parts) {
  return AddColumns(
      builder, name, dim_name, hidden, parts,
      parts.size() > 1 ? Shard(0, ShardHow::kSegments) : Shard(0),
      [&](const FusedPart& part) { return UnitRange(builder, part.rows, part.unit); });
}

ValueId AddSharedColumns(ProgramBuilder& builder, const std::string& name,
                         const std::string& dim_name, int64_t hidden, int64_t heads,
                         const std::vector<FusedPart>& parts) {
  const auto run = static_cast<int>(builder.tensor_degree() / heads);
  const int64_t head = builder.mesh().coordinates[Axis::kTensor] / run;
  return AddColumns(builder, name, dim_name, hidden, parts, SharedHeads(run),
                    [&](const FusedPart& part) {
                      return Range{head * part.unit, (head + 1) * part.unit};
                    });
}

ValueId AddRowParallel(ProgramBuilder& builder, const std::string& name,
                       const std::string& tensor_name, const std::string& dim_name, int64_t hidden,
                       int64_t columns, int64_t unit, double init_std) {
  const Range range = UnitRange(builder, columns, unit);
  ParameterSpec spec;
  spec.name = name;
  spec.dims = {{"hidden", hidden, hidden}, {dim_name, columns, range.size()}};
  spec.matrix_rows = hidden;
  spec.tensor = Shard(1);
  spec.parts = {{tensor_name, {hidden, columns}, {0, range.begin}, {hidden, range.size()}, 0}};
  spec.initial.std = init_std;
  return builder.Unsharded(builder.AddParameter(spec));
}

int AddVocabularyTable(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                       const std::string& tensor_name, bool tied) {
  const Range range = builder.TensorRange(config.vocab_size);
  const int64_t hidden = config.hidden_size;
  ParameterSpec spec;
  spec.name = name;
  spec.dims = {{"vocab", config.vocab_size, range.size()}, {"hidden", hidden, hidden}};
  spec.tensor = Shard(0);
  spec.parts = {
      {tensor_name, {config.vocab_size, hidden}, {range.begin, 0}, {range.size(), hidden}, 0}};
  spec.tied = tied;
  return builder.AddParameter(spec);
}

VocabAttributes VocabularySlice(const ProgramBuilder& builder, const ModelConfig& config) {
  const Range range = builder.TensorRange(config.vocab_size);
  return {range.begin, range.size(), config.vocab_size};
}

}  // namespace troupe::model
