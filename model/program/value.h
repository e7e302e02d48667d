// Values of a stage program: typed, with static shapes, placed on the mesh.
#ifndef TROUPE_MODEL_PROGRAM_VALUE_H_
#define TROUPE_MODEL_PROGRAM_VALUE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/placement.h"

namespace troupe::model {

enum class DType : uint8_t { kFloat32, kBFloat16, kFloat64, kInt32, kFloat8E4M3, kFloat8E5M2 };
int64_t SizeOf(DType dtype);    // bytes
const char* Name(DType dtype);  // "f32" "bf16" "f64" "i32" "f8e4m3" "f8e5m2"
// Whether `dtype` is one of the two 8-bit formats (kernels/numerics/float8.h), which are meaningful
// only with a scale.
inline bool IsFloat8(DType dtype) {
  return dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2;
}

enum class Role : uint8_t {
  kParameter,    // float32 master weights; persistent
  kComputeCopy,  // copy that kernels read, if it differs from the master (bf16); persistent
  kGradient,     // float32 accumulator of a parameter's gradient; persistent over a step
  // Float32 gradient of one microbatch, whole on each rank until it is reduced and scattered into
  // its parameter's accumulator. It lives within one piece, and every run overwrites it.
  kMicrobatchGradient,
  kOptimizerState,  // kept by the optimizer, of a parameter; persistent
  kState,           // other state that outlives a microbatch: amax values of a step
  kInput,           // written by the executor: tokens, targets, learning rate, control word …
  kConstant,
  kActivation,  // lives within one piece
  kSaved,       // computed in F, needed by I or W: one copy per buffer
  kBoundary,    // received from or sent to a neighbouring chunk: one copy per buffer
};

const char* Name(Role role);  // "compute_copy"

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

struct Dim {
  std::string name;    // "rows", "hidden", "ffn", "vocab", "qkv" …
  int64_t global = 0;  // extent of the whole tensor (rows: of one microbatch over all data ranks)
  int64_t local = 0;   // extent held by this rank
  bool operator==(const Dim&) const = default;
};

// One of several tensors that share a value along dim 0 of a parameter or the last dim of an
// activation.
struct Segment {
  std::string name;  // "q" "k" "v" "gate" "up"
  int64_t global = 0;
  int64_t local = 0;
  bool operator==(const Segment&) const = default;
};

struct Value {
  ValueId id = kNoValue;
  std::string name;  // "block3.attention.qkv"
  DType dtype = DType::kFloat32;
  Role role = Role::kActivation;
  std::vector<Dim> dims;
  Placement placement;
  std::vector<Segment> segments;  // empty: a single segment
  int chunk = -1;                 // index of the rank's chunk; -1: belongs to the rank
  // A view: shares the storage of `view_of`, beginning `view_offset` elements into it (rows of a
  // larger value).
  ValueId view_of = kNoValue;
  int64_t view_offset = 0;

  int64_t elements() const {
    int64_t product = 1;
    for (const Dim& dim : dims) product *= dim.local;
    return product;
  }
  // The elements of one index of dim 0.
  int64_t row_elements() const {
    int64_t product = 1;
    for (size_t d = 1; d < dims.size(); ++d) product *= dims[d].local;
    return product;
  }
  int64_t bytes() const { return elements() * SizeOf(dtype); }
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_VALUE_H_
