// Linear layers in float8: the recipes, and the types of FP8 tensors and their scales.
//
// A value is quantised to E4M3 (activations and weights) or E5M2 (gradients) after division by a
// scale. The scale is the power of two for which the amax just fits the format
// (kernels/numerics/float8.h). The recipe determines the amax:
//   current    of the value itself, on this rank
//   delayed    over the last kAmaxSteps steps, all ranks and all microbatches; the scale is twice
//              as large, as a margin for growth. Without history: as current. Weights, which are
//              quantised once per step, always use current scaling.
//   blockwise  of 1 x kFloat8Block elements of activations and gradients along the dim that a
//              matmul sums over; of kFloat8Block x kFloat8Block elements of weights
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
// The prefix of amax histories' names in checkpoints: "float8_amax.block3.mlp.down_proj.input".
inline constexpr char kAmaxPrefix[] = "float8_amax.";

// The source of the value that kQuantize quantises: its input, or the result of the named operation
// on its inputs. In the fused case the operation's inputs (without counts) replace the value, and
// the result is rounded to bfloat16 before it is quantised, as if it had been written.
enum class QuantizeSource : uint8_t { kValue, kSwiGlu, kSwiGluGrad };
const char* Name(QuantizeSource source);  // "value" "swiglu" "swiglu_grad"
// The number of the source's inputs; they are the first inputs of kQuantize.
inline constexpr size_t InputsOf(QuantizeSource source) {
  return source == QuantizeSource::kSwiGluGrad ? 2 : 1;
}

// The attributes of kQuantize.
struct QuantizeAttributes {
  DType format = DType::kFloat8E4M3;
  bool rows = false, columns = false;  // forms to compute: x and its transpose
  // Rows of a block with its own scale, 1 or kFloat8Block; 0: one scale for the whole value.
  int32_t block_rows = 0;
  bool folds = false;  // also compute the amax
  // kSwiGlu only with E4M3, kSwiGluGrad only with E5M2.
  QuantizeSource source = QuantizeSource::kValue;
};

// The type of the scale or scales of an FP8 tensor on a mesh of these degrees; each rank has the
// scales of its slice.
struct ScaleShape {
  std::vector<Dim> dims;
  Placement placement;
};
ScaleShape ScaleShapeOf(const MeshView& mesh, const std::vector<Dim>& dims,
                        const Placement& placement, int block_rows);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_FLOAT8_H_
