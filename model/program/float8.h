// Linear layers in float8: which recipe a job follows, and what its quantised values and their scales look like.
//
// A value is quantised to E4M3 (activations and weights) or E5M2 (gradients) after division by a scale, a power of two such
// that the largest magnitude in question is just within the format (kernels/float8.h):
//   current    of the value itself, on this rank
//   delayed    of the last kAmaxSteps steps, over all ranks and microbatches, twice that (for what grows) where there were
//              any; else as current.
//              Weights, which are quantised once a step, are always scaled by themselves
//   blockwise  of 1 x kFloat8Block elements of activations and gradients along what a product sums over, of
//              kFloat8Block x kFloat8Block of weights
#ifndef TROUPE_MODEL_PROGRAM_FLOAT8_H_
#define TROUPE_MODEL_PROGRAM_FLOAT8_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/program/value.h"

namespace troupe::model {

enum class Float8Recipe : uint8_t { kNone, kDelayed, kCurrent, kBlockwise };
const char* Name(Float8Recipe recipe);  // "none" "delayed" "current" "blockwise"

inline constexpr int64_t kFloat8Block = 128;
inline constexpr int64_t kAmaxSteps = 16;
// Of the names of histories in checkpoints: "float8_amax.block3.mlp.down_proj.input".
inline constexpr char kAmaxPrefix[] = "float8_amax.";

// What makes the value that kQuantize quantises: it is there, or is made at once as the operation named would make it, whose
// inputs (without counts) then stand in the value's place. Rounded to bfloat16 first, as if it had been written.
enum class QuantizeSource : uint8_t { kValue, kSwiGlu, kSwiGluGrad };
const char* Name(QuantizeSource source);  // "value" "swiglu" "swiglu_grad"
// How many inputs it takes, which are the operation's first.
inline constexpr size_t InputsOf(QuantizeSource source) { return source == QuantizeSource::kSwiGluGrad ? 2 : 1; }

// Of kQuantize.
struct QuantizeAttributes {
  DType format = DType::kFloat8E4M3;
  bool rows = false, columns = false;  // which forms are made: x as it lies, and its transpose
  int32_t block_rows = 0;              // of a block that has its own scale, 1 or kFloat8Block; 0: one scale in all
  bool folds = false;                  // the largest magnitude is made too
  QuantizeSource source = QuantizeSource::kValue;  // of kSwiGlu in E4M3, of kSwiGluGrad in E5M2 alone
};

// What a quantised value's scale is, or its scales, on a mesh of these degrees: each rank has those of what it holds.
struct ScaleShape {
  std::vector<Dim> dims;
  Placement placement;
};
ScaleShape ScaleShapeOf(const MeshView& mesh, const std::vector<Dim>& dims, const Placement& placement, int block_rows);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_FLOAT8_H_
